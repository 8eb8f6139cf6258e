"""Checks scripts for their authors: everything that loading checks, then types, by the interpreter's type checker.

Type checking takes 20 to 150 ms per script, so only `check` does it, never a run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from remora.errors import MissingExtra, ToolFailed
from remora.scripts._externals import external_problems
from remora.scripts._modules import ScriptFiles, join_sources, locate_line
from remora.scripts._parse import Parsed, look
from remora.scripts._pool import MB, SETTLE_S
from remora.scripts._problems import Problem
from remora.scripts._read import read_script
from remora.scripts._stubs import stubs

if TYPE_CHECKING:
    import pydantic_monty

CHECK_S = 20.0
_HINTS = {
    "unresolved-reference": "define it above, or declare it as an input or host function",
    "unresolved-attribute": "correct the name",
    "invalid-argument-type": "give a value of the declared type",
    "unused-awaitable": "await it",
}

_MISSING = """
class FileExistsError(OSError): ...
class FileNotFoundError(OSError): ...
class IsADirectoryError(OSError): ...
class NotADirectoryError(OSError): ...
class PermissionError(OSError): ...
class ImportError(Exception): ...
class ModuleNotFoundError(ImportError): ...
class UnboundLocalError(NameError): ...
class UnicodeDecodeError(ValueError): ...
class UnicodeEncodeError(ValueError): ...
filter: Any
format: Any
getattr: Any
hasattr: Any
map: Any
setattr: Any
"""
"""Builtins that scripts have and the type checker's stubs (1.4.0) lack."""


@dataclass(frozen=True)
class CheckResult:
    """The problems of one file, by line and column."""

    file: Path
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems


def check_files(files: Sequence[Path], *, our_host: bool = False) -> list[CheckResult]:
    """Every problem of every file: reading, declarations, unsupported Python, types.

    With `our_host`, also host functions that Remora's agents do not have.
    """
    with _checker() as checker:
        return [CheckResult(file, tuple(_problems(file, checker, our_host))) for file in files]


def _problems(file: Path, checker: pydantic_monty.Monty, our_host: bool) -> list[Problem]:
    text = read_script(file)
    if isinstance(text, Problem):
        return [text]
    parsed = look(text, ScriptFiles(file.parent), file.name)
    if not parsed.source:
        return parsed.problems
    unknown = external_problems(parsed.externals) if our_host else ()
    return sorted([*parsed.problems, *unknown, *_types(parsed, file, checker)])


def _types(parsed: Parsed, file: Path, checker: pydantic_monty.Monty) -> Iterator[Problem]:
    """Problems from the type checker. Positions are right because declarations are blanked, not removed."""
    import pydantic_monty

    session = checker.checkout(
        # No time to run: types are checked before the first step, which then exceeds the limit.
        limits={"max_feed_duration_secs": 0.0, "max_memory": 64 * MB},
        type_check=True,
        type_check_stubs=stubs(parsed.inputs, parsed.externals) + _MISSING,
        type_check_format="json",
    )
    known = {(problem.line, problem.column) for problem in parsed.problems}
    try:
        with session:
            session.feed_run(join_sources(parsed.modules, parsed.source))
    except pydantic_monty.MontyTypingError as error:
        found = (_locate(_problem(item), parsed) for item in orjson.loads(str(error)))
        yield from (problem for problem in found if (problem.line, problem.column) not in known)
    except pydantic_monty.MontyCrashedError as error:
        raise ToolFailed(f"{file}: its check did not finish: {error}") from error
    except pydantic_monty.MontyError as error:
        yield from _parser_problems(error, known, parsed)


def _parser_problems(error: Any, known: set[tuple[int, int]], parsed: Parsed) -> Iterator[Problem]:
    """Problems from Monty's own parser that were not reported yet."""
    for frame in (error.traceback() if hasattr(error, "traceback") else [])[-1:]:
        problem = Problem(frame.line, frame.column, str(error)[:300], "scripts use a subset of Python")
        problem = _locate(problem, parsed)
        if (problem.line, problem.column) not in known:
            yield problem


def _locate(problem: Problem, parsed: Parsed) -> Problem:
    """The problem where its author finds it: in the script, or in a module that it imports."""
    file, line = locate_line(problem.line, "", parsed.modules)
    if not file:
        return replace(problem, line=line)
    return replace(problem, line=1, column=1, what=f"{file}:{line}:{problem.column}: {problem.what}")


def _problem(item: dict[str, Any]) -> Problem:
    place = item["location"]
    hint = _HINTS.get(item["code"], "correct the code or the declared type")
    return Problem(place["row"], place["column"], f"{item['message']} ({item['code']})", hint)


@contextmanager
def _checker() -> Iterator[pydantic_monty.Monty]:
    try:
        import pydantic_monty
    except ImportError as error:
        raise MissingExtra("pydantic-monty, which checks tool scripts,", extra="agents") from error
    # Scripts have no time to run here; the grace after it, a second, would be all that the type checker has.
    with pydantic_monty.Monty(max_processes=1, request_timeout=CHECK_S, feed_duration_limit_grace=None) as checker:
        yield checker
    time.sleep(SETTLE_S)
