"""Rows: what a model is trained on. One line of JSON each: the messages it reads, and the answer it should give.

    {"id": "EPISODE/TURN", "origin": …, "operation": …, "renderer": …, "messages": […], "answer": "{\"tool\":…}"}

An answer is written as the grammar of the embedded model lets it be written: no spaces, a tool's required arguments
first, each in the order of its schema.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

import orjson

from remora.context.contracts import ToolSpec
from remora.context.patterns import redact_values
from remora.context.schema import problems
from remora.events import canonical, digest

SYNTHETIC: Final = "variety"
"""The origin of rows of made-up agents. The word is part of the file format."""
Origin = Literal["trace", "suite", "variety"]
_NEVER_WRITTEN = "\x7f"
"""JSON may hold it, the grammar of llama.cpp does not."""


@dataclass(frozen=True)
class TrainingRow:
    """One decision, and the prompt that it answers."""

    id: str
    """Its episode and its turn, `EPISODE/TURN`: rows of one episode are learned from or judged by together."""
    origin: Origin
    operation: str
    renderer: str
    messages: tuple[Mapping[str, Any], ...]
    answer: str


@dataclass
class RowCounts:
    """How many rows were written, and how many were left out."""

    rows: int = 0
    repeated: int = 0
    """Rows whose messages were there already."""
    by_operation: Counter[str] = field(default_factory=Counter)


def answer_text(tool: str, args: Mapping[str, Any], tools: Sequence[ToolSpec]) -> str | None:
    """The call as a model should write it; None where it is no valid call of these tools."""
    spec = next((each for each in tools if each.name == tool), None)
    if spec is None or problems(spec.parameters, dict(args)):
        return None
    ordered = {name: args[name] for name in _order(spec) if name in args}
    if len(ordered) < len(args):
        return None
    text = orjson.dumps({"tool": tool, "args": ordered}).decode()
    return None if _NEVER_WRITTEN in text else text


class RowFile:
    """A file of rows, packed where its name ends in `.gz`, each prompt once. Until it is whole, it is a `.part`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts = RowCounts()
        self._part = path.with_name(path.name + ".part")
        self._seen: set[str] = set()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._open.enter_context(_opened(self._part, packed=self.path.suffix == ".gz"))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._open.close()
        if kind is None:
            self._part.replace(self.path)

    def add(self, row: TrainingRow) -> None:
        """The row is in the file, unless its prompt was there already. Secrets that a run showed are redacted."""
        known = digest(canonical(row.messages))
        if known in self._seen:
            self.counts.repeated += 1
            return
        self._seen.add(known)
        values = asdict(row)
        self._file.write(orjson.dumps(redact_values(values) if row.origin == "trace" else values) + b"\n")
        self.counts.rows += 1
        self.counts.by_operation[SYNTHETIC if row.origin == SYNTHETIC else row.operation] += 1


def write_rows(path: Path, rows: Iterable[TrainingRow]) -> RowCounts:
    """All rows in `path`, each prompt once. The file is whole or not there."""
    with RowFile(path) as file:
        for row in rows:
            file.add(row)
    return file.counts


def _order(spec: ToolSpec) -> list[str]:
    properties, required = spec.parameters.get("properties", {}), spec.parameters.get("required", ())
    return sorted(properties, key=lambda name: name not in required)


@contextmanager
def _opened(path: Path, *, packed: bool) -> Iterator[Any]:
    with path.open("wb") as file:
        if not packed:
            yield file
            return
        # Without a name and a time, so that the same rows are the same bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as into:
            yield into
