"""Tasks: small projects with seeded, checkable defects, as lines of a JSONL file.

A task says what the project looks like before, which code an agent is set on, and how the files are judged
afterwards. What an oracle may know beyond the packet stands in `solution`, and no agent ever sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, field_validator, model_serializer

from remora.errors import DefinitionError
from remora.validation import validate

Half = Literal["train", "eval"]
Level = Literal["easy", "medium", "hard"]
_HINT = "The fields of a task: `docs/reference/bench.md`"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LintCheck(_Strict):
    """These rule codes are gone from the target's lines, and ruff finds nothing that was not there before."""

    kind: Literal["lint"] = "lint"
    gone: tuple[str, ...]
    stays: tuple[str, ...] = ()
    """Codes that no safe edit can mend: leaving them is right, hiding them is not."""
    behaviour: str = ""
    """Tests that passed before and must pass afterwards: an error that was cut out together with its code is none."""


class DocstringCheck(_Strict):
    """The docstring names these parameters and no others; a complete one was left as it is."""

    kind: Literal["docstring"] = "docstring"
    parameters: tuple[str, ...] = ()
    returns: bool = False
    raises: tuple[str, ...] = ()
    unchanged: bool = False


class Mutant(_Strict):
    """A change of the code that a good test notices."""

    path: str
    old: str
    new: str


class TestCheck(_Strict):
    """The tests written pass on the code as it is, and fail on every mutant."""

    __test__ = False
    kind: Literal["test"] = "test"
    mutants: tuple[Mutant, ...]


class SampleDataCheck(_Strict):
    """The fixture's cases are distinct and fit the signature; at least so many can be given to the function."""

    kind: Literal["sample_data"] = "sample_data"
    cases: int = 1


class FilesCheck(_Strict):
    """These files have exactly these texts afterwards; one without a text does not exist."""

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
    """The file that the agent is set on."""
    node: str = ""
    """The qualified name of the function, method or class in it; empty for the file itself."""
    goal: str = ""
    """What a person asks for, in place of the goal that the agent's definition has; empty for that one."""
    check: Check
    solution: dict[str, Any] = Field(default_factory=dict)
    """What a good answer says where text is asked for, or all its `calls`: for the oracle alone."""

    @model_serializer(mode="wrap")
    def _without_an_empty_goal(self, encode: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As tasks were before they could have goals, so that results of then still name them by their digest."""
        told: dict[str, Any] = encode(self)
        return told if self.goal else {name: value for name, value in told.items() if name != "goal"}

    @field_validator("solution")
    @classmethod
    def _sound(cls, solution: dict[str, Any]) -> dict[str, Any]:
        """A solution whose `calls` an oracle can make."""
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
    """The tasks of these JSONL files. Raises `DefinitionError` that names every problem of the first bad line."""
    for path in paths:
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            yield _task(line, f"{path}:{number}")


def _task(line: bytes, where: str) -> Task:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DefinitionError(where, [f"not JSON: {error}"], hint=_HINT) from error
    return validate(Task, value, where, hint=_HINT)
