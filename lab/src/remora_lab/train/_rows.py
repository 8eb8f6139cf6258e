"""Training rows, one line of JSON each: the messages that a model reads, and the answer it should give.

    {"id": "EPISODE/TURN", "origin": …, "operation": …, "renderer": …, "messages": […], "answer": "{\"tool\":…}"}

An answer is written as the grammar of the embedded model allows: no spaces, a tool's required arguments first, each in
the order of its schema.
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
from remora.context.schema import problems
from remora.events import canonical, digest

SYNTHETIC: Final = "variety"
"""The origin of rows of synthetic agents. The word is part of the file format."""
Origin = Literal["trace", "suite", "variety"]
_NEVER_WRITTEN = "\x7f"
"""Valid in JSON, but not in llama.cpp's grammar."""


@dataclass(frozen=True)
class TrainingRow:
    """One decision, and its prompt."""

    id: str
    """Episode and turn, `EPISODE/TURN`: rows of one episode are all for training or all for evaluation."""
    origin: Origin
    operation: str
    renderer: str
    messages: tuple[Mapping[str, Any], ...]
    answer: str


@dataclass
class RowCounts:
    """Number of rows written and left out."""

    rows: int = 0
    repeated: int = 0
    """Rows whose messages were a duplicate."""
    by_operation: Counter[str] = field(default_factory=Counter)


def answer_text(tool: str, args: Mapping[str, Any], tools: Sequence[ToolSpec]) -> str | None:
    """The call as a model should write it; None if it is not a valid call of these tools."""
    spec = next((each for each in tools if each.name == tool), None)
    if spec is None or problems(spec.parameters, dict(args)):
        return None
    ordered = {name: args[name] for name in _order(spec) if name in args}
    if len(ordered) < len(args):
        return None
    text = orjson.dumps({"tool": tool, "args": ordered}).decode()
    return None if _NEVER_WRITTEN in text else text


class RowFile:
    """A file of rows without duplicates, gzipped if its name ends in `.gz`.

    Until it is complete, it is a `.part` file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts = RowCounts()
        self._part = path.with_name(path.name + ".part")
        self._seen: set[str] = set()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._open.enter_context(_open_file(self._part, packed=self.path.suffix == ".gz"))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._open.close()
        if kind is None:
            self._part.replace(self.path)

    def add(self, row: TrainingRow) -> None:
        """Write the row, unless its prompt is a duplicate."""
        known = digest(canonical(row.messages))
        if known in self._seen:
            self.counts.repeated += 1
            return
        self._seen.add(known)
        self._file.write(orjson.dumps(asdict(row)) + b"\n")
        self.counts.rows += 1
        self.counts.by_operation[SYNTHETIC if row.origin == SYNTHETIC else row.operation] += 1


def write_rows(path: Path, rows: Iterable[TrainingRow]) -> RowCounts:
    """Write all rows to `path`, without duplicates, atomically."""
    with RowFile(path) as file:
        for row in rows:
            file.add(row)
    return file.counts


def _order(spec: ToolSpec) -> list[str]:
    properties, required = spec.parameters.get("properties", {}), spec.parameters.get("required", ())
    return sorted(properties, key=lambda name: name not in required)


@contextmanager
def _open_file(path: Path, *, packed: bool) -> Iterator[Any]:
    with path.open("wb") as file:
        if not packed:
            yield file
            return
        # Without name and time, so that the same rows give the same bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as into:
            yield into
