"""Checks: whether a task is solved, decided by the files alone.

Nothing that an agent or a model says is asked. `before` is the project as the task has it, `after` the project with
the agent's changes accepted. What must run, runs by the spawner, so the project's code stays in its sandbox.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import orjson

from remora.errors import ToolError
from remora.ports import Spawner
from remora_lab.bench._code import changed_lines, definition, described, parses, target_lines, without_docstring
from remora_lab.bench._fixtures import FIXTURE_TEST
from remora_lab.bench.tasks import DocstringCheck, FilesCheck, LintCheck, SampleDataCheck, Task, TestCheck

IGNORED = frozenset({".agentfs", "__pycache__", ".pytest_cache", ".ruff_cache", ".git"})
"""Folders that are no part of a project's text."""
HIDDEN_TEST = "tests/test_remora_bench_hidden.py"
PASSED, FAILED = 0, 1
"""What pytest returns when tests ran: all passed, some failed."""

Problems = tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """Whether the task is solved, and each reason why not."""

    solved: bool
    problems: Problems = ()


@dataclass(frozen=True)
class _Case:
    """One task with its two trees."""

    task: Task
    before: Path
    after: Path
    spawner: Spawner

    @property
    def was(self) -> str:
        return (self.before / self.task.path).read_text(encoding="utf-8")

    @property
    def now(self) -> str:
        return (self.after / self.task.path).read_text(encoding="utf-8")


async def check(task: Task, before: Path, after: Path, spawner: Spawner) -> Verdict:
    """What the files say about the task."""
    case = _Case(task, before, after, spawner)
    problems = _strays(case) or _broken(case) or await _judged(case)
    return Verdict(not problems, problems)


async def _judged(case: _Case) -> Problems:
    match case.task.check:
        case LintCheck() as wanted:
            return await _lint(case, wanted)
        case DocstringCheck() as wanted:
            return _docstring(case, wanted)
        case TestCheck() as wanted:
            return await _test(case, wanted)
        case SampleDataCheck() as wanted:
            return await _sample_data(case, wanted)
        case FilesCheck() as wanted:
            return _files(case, wanted)


def files_of(root: Path) -> dict[str, bytes]:
    """Every file of a project by its path, without what tools leave behind."""
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    named = {path.relative_to(root): path for path in found}
    return {name.as_posix(): path.read_bytes() for name, path in named.items() if not IGNORED & set(name.parts)}


def _strays(case: _Case) -> Problems:
    """Files that should be as they were, and are not."""
    was, now = files_of(case.before), files_of(case.after)
    gone = [f"`{path}` is gone" for path in was if path not in now and not _is_named(case.task, path)]
    changed = [path for path in was if path in now and was[path] != now[path]]
    other = [f"`{path}` was changed" for path in changed if not _may_change(case.task, path)]
    new = [f"`{path}` is new" for path in now if path not in was and not _may_be_new(case.task, path)]
    return (*gone, *other, *new)


def _may_change(task: Task, path: str) -> bool:
    if _is_named(task, path):
        return True
    return path == task.path and isinstance(task.check, LintCheck | DocstringCheck)


def _may_be_new(task: Task, path: str) -> bool:
    where = PurePosixPath(path)
    if _is_named(task, path):
        return True
    if isinstance(task.check, TestCheck):
        return where.name.startswith("test_") and where.suffix == ".py"
    return isinstance(task.check, SampleDataCheck) and where.suffix == ".json" and "fixtures" in where.parts


def _is_named(task: Task, path: str) -> bool:
    """Whether the check itself says what becomes of the file."""
    return isinstance(task.check, FilesCheck) and path in task.check.files


def _broken(case: _Case) -> Problems:
    """Python files that no longer parse."""
    now = files_of(case.after)
    return tuple(f"`{path}` does not parse" for path in now if path.endswith(".py") and not parses(now[path]))


async def _lint(case: _Case, wanted: LintCheck) -> Problems:
    was, now = await _violations(case, case.before), await _violations(case, case.after)
    target = target_lines(case.now, case.task.node)
    there = {code for code, row in now if row in target}
    problems = [f"{code} is still there" for code in wanted.gone if code in there]
    problems += [f"{code} is gone, but no safe edit can mend it" for code in wanted.stays if code not in there]
    problems += [f"{code} is new" for code in sorted(_codes(now)) if _codes(now)[code] > _codes(was).get(code, 0)]
    if _hidings(case.now) > _hidings(case.was):
        problems.append("an error is hidden by a comment")
    stray = changed_lines(case.was, case.now) - target_lines(case.was, case.task.node)
    problems += [f"line {row} is not the target's, and was changed" for row in sorted(stray)[:3]]
    if wanted.behaviour and not problems:
        problems += await _behaviour(case, wanted.behaviour)
    return tuple(problems)


async def _violations(case: _Case, root: Path) -> list[tuple[str, int]]:
    """Code and line of all that ruff finds in the target's file, by the project's own settings."""
    argv = ["ruff", "check", "--output-format=json", f"--stdin-filename={case.task.path}", "-"]
    done = await case.spawner.run(argv, cwd=root, stdin=(root / case.task.path).read_bytes())
    return [(str(found["code"]), int(found["location"]["row"])) for found in orjson.loads(done.stdout)]


def _codes(found: Sequence[tuple[str, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for code, _ in found:
        counts[code] = counts.get(code, 0) + 1
    return counts


def _hidings(text: str) -> int:
    return sum(text.lower().count(word) for word in ("noqa", "ruff: ", "type: ignore"))


async def _behaviour(case: _Case, tests: str) -> Problems:
    code = await _pytest(case, [HIDDEN_TEST], {HIDDEN_TEST: tests})
    return () if code == PASSED else ("the code no longer does what it did",)


def _docstring(case: _Case, wanted: DocstringCheck) -> Problems:
    if wanted.unchanged:
        return () if case.was == case.now else ("the docstring was complete, and was changed",)
    found = definition(case.now, case.task.node)
    doc = described(found) if found else None
    if doc is None:
        return (f"`{case.task.node}` has no docstring",)
    problems = [f"`{name}` is described, but is no parameter" for name in doc.parameters - {*wanted.parameters}]
    # Names that say enough need no list, but a list is whole.
    if doc.parameters:
        problems += [f"`{name}` is not described" for name in wanted.parameters if name not in doc.parameters]
    if doc.raises:
        problems += [f"`{name}` is not told as raised" for name in wanted.raises if name not in doc.raises]
    problems += [f"`{name}` is told as raised, but is not" for name in doc.raises - {*wanted.raises}]
    if wanted.returns and doc.parameters and not doc.returns:
        problems.append("the result is not described")
    if len(doc.summary.split()) < 3:
        problems.append("the first sentence says nothing")
    if without_docstring(case.was, case.task.node) != without_docstring(case.now, case.task.node):
        problems.append("more than the docstring was changed")
    return tuple(problems)


async def _test(case: _Case, wanted: TestCheck) -> Problems:
    new = [path for path in files_of(case.after) if path not in files_of(case.before)]
    if not new:
        return ("no test was written",)
    if await _pytest(case, new, {}) != PASSED:
        return ("the tests do not pass",)
    missed = []
    for mutant in wanted.mutants:
        text = (case.after / mutant.path).read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return (f"`{mutant.old}` is not there once: the mutant cannot be made",)
        if await _pytest(case, new, {mutant.path: text.replace(mutant.old, mutant.new)}) != FAILED:
            missed.append(f"the tests do not notice `{mutant.new.strip()}` for `{mutant.old.strip()}`")
    return tuple(missed)


async def _sample_data(case: _Case, wanted: SampleDataCheck) -> Problems:
    new = [path for path in files_of(case.after) if path not in files_of(case.before)]
    if len(new) != 1:
        return (f"{len(new)} fixture files were written: expected one",)
    spec = {"fixture": new[0], "module": _module(case), "node": case.task.node, "cases": wanted.cases}
    code = await _pytest(case, [HIDDEN_TEST], {HIDDEN_TEST: FIXTURE_TEST.replace("SPEC", repr(spec), 1)})
    return () if code == PASSED else ("the cases cannot be given to the function",)


def _files(case: _Case, wanted: FilesCheck) -> Problems:
    now = files_of(case.after)
    problems = [f"`{path}` is there" for path, text in wanted.files.items() if text is None and path in now]
    kept = {path: text.encode() for path, text in wanted.files.items() if text is not None}
    problems += [f"`{path}` is not there" for path in kept if path not in now]
    problems += [f"`{path}` has another text" for path, text in kept.items() if now.get(path, text) != text]
    return tuple(problems)


def _module(case: _Case) -> str:
    """The target's module as the project's own tests import it."""
    parts = PurePosixPath(case.task.path).with_suffix("").parts
    is_root = parts[0] in ("src", "lib", "python") and not (case.after / parts[0] / "__init__.py").exists()
    return ".".join(parts[1:] if is_root else parts)


async def _pytest(case: _Case, paths: Sequence[str], over: Mapping[str, str]) -> int:
    """What pytest returns for these tests, with `over` in the place of the project's files; -1 where it cannot run."""
    argv = ["pytest", "-q", "-x", "--no-header", "--tb=line", "-p", "no:cacheprovider", *paths]
    async with _placed(over) as folder:
        try:
            return (await case.spawner.run(argv, cwd=case.after, over=folder)).returncode
        except ToolError:
            return -1


@asynccontextmanager
async def _placed(files: Mapping[str, str]) -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="remora-bench-") as name:
        for path, text in files.items():
            place = Path(name, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        yield Path(name)
