"""Tasks: small projects with seeded, checkable defects, as lines of a JSONL file.

A task defines the initial project, the code that an agent works on, and how the files are checked afterwards. What the
oracle may know beyond the packet is in `solution`, which no agent ever sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, field_validator

from remora.config import validate
from remora.errors import DefinitionError

Half = Literal["train", "eval"]
Level = Literal["easy", "medium", "hard"]
_HINT = "The fields of a task: `docs/reference/bench.md`"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LintCheck(_Strict):
    """These rule codes are gone from the target's lines, and ruff finds no new violations."""

    kind: Literal["lint"] = "lint"
    gone: tuple[str, ...]
    stays: tuple[str, ...] = ()
    """Codes that no safe edit can fix: leaving them is right, hiding them is not."""
    behaviour: str = ""
    """Tests that must still pass: an error removed together with its code does not count."""


class DocstringCheck(_Strict):
    """The docstring documents these parameters and no others. A complete one is left as it is."""

    kind: Literal["docstring"] = "docstring"
    parameters: tuple[str, ...] = ()
    returns: bool = False
    raises: tuple[str, ...] = ()
    unchanged: bool = False


class Mutant(_Strict):
    """A change of the code that a good test detects (mutation testing)."""

    path: str
    old: str
    new: str


class TestCheck(_Strict):
    """The new tests pass on the code as it is, and fail on every mutant."""

    __test__ = False
    kind: Literal["test"] = "test"
    mutants: tuple[Mutant, ...]


class SampleDataCheck(_Strict):
    """The fixture's cases are distinct and fit the signature; at least this many can be passed to the function."""

    kind: Literal["sample_data"] = "sample_data"
    cases: int = 1


class FilesCheck(_Strict):
    """These files have exactly these texts afterwards. One without a text does not exist."""

    kind: Literal["files"] = "files"
    files: dict[str, str | None]


Check = Annotated[LintCheck | DocstringCheck | TestCheck | SampleDataCheck | FilesCheck, Field(discriminator="kind")]


class Task(_Strict):
    """One task of a suite."""

    id: str
    operation: str
    half: Half
    level: Level
    origin: Literal["generated", "hand"]
    files: dict[str, str]
    path: str
    """The file that the agent works on."""
    node: str = ""
    """The qualified name of the function, method or class in it; empty for the file itself."""
    check: Check
    solution: dict[str, Any] = Field(default_factory=dict)
    """What a good answer writes where text is required, or all its `calls`. Only for the oracle."""

    @field_validator("solution")
    @classmethod
    def _sound(cls, solution: dict[str, Any]) -> dict[str, Any]:
        """Check that an oracle can make the solution's `calls`."""
        calls = solution.get("calls", [])
        if not isinstance(calls, list) or not all(map(_is_call, _flat(calls))):
            raise ValueError("`calls` must be a list of `{tool, args}`, or of lists of these")
        return solution


def _flat(calls: list[Any]) -> list[Any]:
    return [call for each in calls for call in (each if isinstance(each, list) else [each])]


def _is_call(value: Any) -> bool:
    known = isinstance(value, dict) and {"tool"} <= value.keys() <= {"tool", "args"}
    return known and isinstance(value["tool"], str) and isinstance(value.get("args", {}), dict)


def read_tasks(paths: Iterable[Path]) -> Iterator[Task]:
    """The tasks of these JSONL files. Raises `DefinitionError` with every problem of the first bad line."""
    for path in paths:
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            yield _task(line, f"{path}:{number}")


def _task(line: bytes, where: str) -> Task:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DefinitionError(where, [f"not JSON: {error}"], hint=_HINT) from error
    return validate(Task, value, where, hint=_HINT)
