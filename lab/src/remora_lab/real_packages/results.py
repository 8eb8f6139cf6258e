"""Results of the bench on packages: one line of JSON for every offered change, and one for each row of a package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from remora.errors import ConfigError
from remora.validation import validate


class Offered(BaseModel):
    """One change that a row offered for a package, and its rating."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["change"] = "change"
    package: str
    row: str
    operation: str
    node: str
    path: str
    by: str
    """`rule` if no model was asked, else the model; `ruff` for the rows of ruff."""
    unsafe: bool = False
    """Whether it is marked as unsafe, and so not part of a bulk accept."""
    rating: Literal["merge", "useless", "wrong"]
    why: str
    size: int
    diff: str


class RowEnd(BaseModel):
    """How one row did on one package as a whole."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["row"] = "row"
    package: str
    version: str
    row: str
    operations: tuple[str, ...]
    agents: int = 0
    verdicts: dict[str, int] = Field(default_factory=dict)
    decisions: dict[str, int] = Field(default_factory=dict)
    seconds: float = 0.0
    tests_before: int = 0
    tests_after: int = 0
    broken: tuple[str, ...] = ()
    """Tests that failed after a bulk accept and passed before."""
    problem: str = ""
    """Why the package's tests could not judge."""
    machine: dict[str, Any] = Field(default_factory=dict)


def write_lines(path: Path, lines: Iterable[Offered | RowEnd]) -> None:
    """Append results to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for line in lines:
            file.write(orjson.dumps(line.model_dump(mode="json")) + b"\n")


def read_lines(paths: Iterable[Path]) -> tuple[list[Offered], list[RowEnd]]:
    """The results of several files. Of a row that ran the same operations twice on a package, the later counts.

    Raises `ConfigError`.
    """
    changes: dict[tuple[str, ...], list[Offered]] = {}
    ends: dict[tuple[str, ...], RowEnd] = {}
    for path in paths:
        waiting: dict[tuple[str, str], list[Offered]] = {}
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            value = _read(line, path, number)
            key = (str(value.get("package")), str(value.get("row")))
            if value.get("kind") == "change":
                waiting.setdefault(key, []).append(validate(Offered, value, path))
            else:
                end = validate(RowEnd, value, path)
                whole = (*key, *end.operations)
                ends[whole], changes[whole] = end, waiting.pop(key, [])
    return [change for found in changes.values() for change in found], list(ends.values())


def _read(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"`{path}` line {number} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"`{path}` line {number} is not a result: expected a JSON object")
    return value
