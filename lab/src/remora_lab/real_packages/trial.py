"""Runs one row of the bench on one package: agents or ruff, the package's own tests, and a rating for each change."""

from __future__ import annotations

import asyncio
import difflib
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from remora.app import Project, open_project
from remora.ports import AgentResult
from remora.sandbox._allow import find_program
from remora_lab.machine import describe_machine
from remora_lab.real_packages.inputs import Subject, find_subject
from remora_lab.real_packages.linting import ProjectLinter, new_type_errors
from remora_lab.real_packages.pinned import Package
from remora_lab.real_packages.place import SuiteEnd, suite_with, write_files
from remora_lab.real_packages.rating import Change, document_words, rate
from remora_lab.real_packages.results import Offered, RowEnd

RULE, RUFF, RUFF_UNSAFE = "rule", "ruff", "ruff-unsafe"
"""The rows without a model."""
EVERYWHERE = ("lint", "dead_code")
"""Operations that also work on tests."""
IGNORED = (".venv", ".agentfs", "__pycache__", ".git", ".pytest_cache", ".hypothesis")
MAX_DIFF = 6000
"""Characters of a diff in the results."""


@dataclass(frozen=True)
class Row:
    """A row of the table: who decides, by which settings."""

    name: str
    settings: dict[str, Any]

    @property
    def is_ruff(self) -> bool:
        return self.name in (RUFF, RUFF_UNSAFE)


@dataclass(frozen=True)
class Made:
    """One agent's change of one file; for ruff, one file."""

    node: str
    operation: str
    by: str
    unsafe: bool
    path: str
    before: bytes | None
    after: bytes | None
    noticed: tuple[int, int] = (0, 0)


def run_row(
    package: Package,
    root: Path,
    row: Row,
    operations: Sequence[str],
    state: Path,
    before: SuiteEnd,
    tell: Callable[[str], None],
) -> tuple[list[Offered], RowEnd]:
    """Run a row on a prepared package, whose tests ended as `before`. Its files are as before afterwards."""
    kept = _snapshot(root)
    shutil.rmtree(state, ignore_errors=True)
    began = time.monotonic()
    try:
        tell(f"{row.name} {', '.join(operations)}")
        end = RowEnd(package=package.name, version=package.version, row=row.name, operations=tuple(operations))
        made, facts = _ruff(package, root, row) if row.is_ruff else _agents(package, root, row, operations, state)
        seconds = round(time.monotonic() - began, 1)
        tell("tests after")
        broken, after = _judge(root, made, before)
        end = end.model_copy(
            update=facts | {"tests_before": before.passed, "tests_after": after.passed, "seconds": seconds}
        )
        end = end.model_copy(update={"broken": after.new_failures(before), "problem": before.problem})
        write_files(root, _differing(root, kept))
        offered = _rate_all(package, root, row, made, broken)
        return offered, end.model_copy(update={"machine": describe_machine()})
    finally:
        write_files(root, _differing(root, kept))


def _agents(
    package: Package, root: Path, row: Row, operations: Sequence[str], state: Path
) -> tuple[list[Made], dict[str, Any]]:
    """Run the agents. Returns their open changes and what the run came to."""
    project = open_project(root, state_dir=state, settings=row.settings)
    results: list[AgentResult] = []
    made: list[Made] = []
    for paths, names in _work(package, operations):
        results += asyncio.run(_run(project, [root / each for each in paths], names))
        made += asyncio.run(_changes(project))
    decided = Counter[str]()
    for result in results:
        decided.update({each.rung: each.decisions for each in result.decisions})
    return made, {
        "agents": len(results),
        "verdicts": dict(Counter(result.verdict or result.outcome for result in results)),
        "decisions": dict(decided),
    }


def _work(package: Package, operations: Sequence[str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Which paths each operation works on: lint and dead_code also on the tests."""
    if everywhere := [name for name in operations if name in EVERYWHERE]:
        yield (*package.code, *package.tests), everywhere
    if others := [name for name in operations if name not in EVERYWHERE]:
        yield package.code, others


async def _run(project: Project, paths: Sequence[Path], operations: Sequence[str]) -> list[AgentResult]:
    return await project.runs.analyze(paths, operations)


async def _changes(project: Project) -> list[Made]:
    """The open changes of the latest run. They are rejected afterwards, so that the next run has only its own."""
    made = []
    found = await project.review.diff()
    await project.review.reject()
    for diff in found:
        summary = diff.summary
        models = [each.rung for each in summary.decisions if each.rung not in ("by rule", "first-candidate")]
        made += [
            Made(
                summary.node_id,
                summary.operation,
                models[0] if models else RULE,
                summary.verdict == "unsafe",
                change.path,
                change.base,
                change.after,
                _noticed(str(summary.check.get("why", ""))),
            )
            for change in diff.changes
        ]
    return made


def _noticed(why: str) -> tuple[int, int]:
    found = re.search(r"notices? (\d+) of (\d+) changes", why)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _ruff(package: Package, root: Path, row: Row) -> tuple[list[Made], dict[str, Any]]:
    """What `ruff check --fix` changes, with its own settings and defaults, as anybody would run it."""
    before = _snapshot(root)
    unsafe = ["--unsafe-fixes"] if row.name == RUFF_UNSAFE else []
    argv = [
        str(find_program("ruff")),
        "check",
        "--fix",
        *unsafe,
        "--no-cache",
        "--quiet",
        *package.code,
        *package.tests,
    ]
    subprocess.run(argv, cwd=root, capture_output=True, check=False, timeout=300)
    after = _snapshot(root)
    changed = sorted(path for path in before if after.get(path) != before[path])
    made = [Made(path, "lint", RUFF, False, path, before[path], after.get(path)) for path in changed]
    write_files(root, {path: before[path] for path in changed})
    return made, {"agents": 0}


def _judge(root: Path, made: Sequence[Made], before: SuiteEnd) -> tuple[dict[int, tuple[str, ...]], SuiteEnd]:
    """The tests that each change breaks, and how the tests end with all changes of a bulk accept."""
    safe = [place for place, each in enumerate(made) if not each.unsafe]
    bulk = suite_with(root, _together([made[place] for place in safe])) if safe else before
    broken = _blame(root, made, safe, before, bulk)
    unsafe = [place for place, each in enumerate(made) if each.unsafe]
    if unsafe:
        everything = suite_with(root, _together([*(made[place] for place in safe), *(made[one] for one in unsafe)]))
        broken |= _blame(root, made, unsafe, before, everything)
    return broken, bulk


def _blame(
    root: Path, made: Sequence[Made], places: Sequence[int], before: SuiteEnd, end: SuiteEnd
) -> dict[int, tuple[str, ...]]:
    """If tests fail with all changes, try each alone."""
    if not end.new_failures(before):
        return {}
    alone = {place: suite_with(root, _together([made[place]])).new_failures(before) for place in places}
    return {place: found for place, found in alone.items() if found}


def _together(made: Sequence[Made]) -> dict[str, bytes | None]:
    """The files with all changes, merged as `accept` merges them. A change that conflicts is left out."""
    from remora.workspaces import merge

    files: dict[str, bytes | None] = {}
    for each in made:
        if each.path not in files or each.before is None or each.after is None:
            files[each.path] = each.after
            continue
        now = files[each.path]
        merged = merge(each.before, now, each.after) if now is not None else None
        files[each.path] = merged if merged is not None else now
    return files


def _rate_all(
    package: Package, root: Path, row: Row, made: Sequence[Made], broken: dict[int, tuple[str, ...]]
) -> list[Offered]:
    linter, imports, words, lines = ProjectLinter(root), _imports(root), _all_words(root), _python_lines(root)
    offered = []
    for place, each in enumerate(made):
        change = _change(each, linter, imports)
        change = replace(
            change, elsewhere=frozenset().union(*(own for path, own in words.items() if path != each.path))
        )
        if each.operation in ("test", "sample_data"):
            change = replace(change, subject=_subject(root, each.node, lines))
        if each.operation == "annotations":
            change = replace(change, type_errors=new_type_errors(root, each.path, change.before, change.after))
        rating, why = rate(replace(change, broken=broken.get(place, ())))
        offered.append(
            Offered(
                package=package.name,
                row=row.name,
                operation=each.operation,
                node=each.node,
                path=each.path,
                by=each.by,
                unsafe=each.unsafe,
                rating=rating,
                why=why,
                size=change.size,
                diff=_diff(each)[:MAX_DIFF],
            )
        )
    return offered


def _change(made: Made, linter: ProjectLinter, imports: dict[str, set[str]]) -> Change:
    before, after = (_text(data) for data in (made.before, made.after))
    was = linter.count(made.path, before) if made.path.endswith(".py") and made.before is not None else Counter[str]()
    now = linter.count(made.path, after) if made.path.endswith(".py") and made.after is not None else Counter[str]()
    return Change(
        operation=made.operation,
        path=made.path,
        before=before,
        after=after,
        lint_before=was.total(),
        lint_after=now.total(),
        lint_new=tuple(code for code in now if now[code] > was[code]) if made.before is not None else (),
        imported=tuple(sorted(imports.get(_stem(made.path), ()))),
        noticed=made.noticed,
    )


def _all_words(root: Path) -> dict[str, frozenset[str]]:
    """By file, its words, versions and paths, and its own path."""
    found = {}
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        words = document_words(path.read_text(encoding="utf-8", errors="replace"))
        found[name] = frozenset([*words, *(part for word in words for part in re.findall(r"\w+", word)), name])
    return found


def _python_lines(root: Path) -> tuple[str, ...]:
    """The lines of all Python files, and of documents with examples."""
    kinds = (".py", ".md", ".rst", ".txt")
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in _files(root) if path.suffix in kinds]
    return tuple(line for text in texts for line in text.splitlines())


def _subject(root: Path, node: str, lines: tuple[str, ...]) -> Subject:
    path, _, name = node.partition(":")
    file = root / path
    source = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    return find_subject(name.partition("#")[0], source, lines)


def _imports(root: Path) -> dict[str, set[str]]:
    """By the last part of a module's name, the names that files of the project import from it."""
    found: dict[str, set[str]] = {}
    for path in _files(root):
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8", errors="replace")
            for module, names in re.findall(r"from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]+)", text):
                words = re.findall(r"\w+", re.sub(r"#[^\n]*|\bas\s+\w+", "", names))
                found.setdefault(module.rpartition(".")[2], set()).update(words)
    return found


def _stem(path: str) -> str:
    parts = Path(path).with_suffix("").parts
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]


def _diff(made: Made) -> str:
    old, new = (_text(data).splitlines(keepends=True) for data in (made.before, made.after))
    return "".join(difflib.unified_diff(old, new, f"a/{made.path}", f"b/{made.path}", n=2))


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode(errors="replace")


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not set(path.relative_to(root).parts).intersection(IGNORED):
            yield path


def _snapshot(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in _files(root)}


def _differing(root: Path, kept: dict[str, bytes]) -> dict[str, bytes | None]:
    """What must be written so that all files are as they were."""
    now = _snapshot(root)
    return {path: kept.get(path) for path in {*kept, *now} if now.get(path) != kept.get(path)}
