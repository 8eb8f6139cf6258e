"""Counts how often a project's files break the rules of its linter: shows whether the project really runs it."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remora.errors import ToolError
from remora.ports import Completed, FileLinter

FLAGS = ("--output-format=concise", "--no-cache", "--no-fix", "--force-exclude", "--exit-zero", "--quiet")
FILES_AT_ONCE = 500
"""Files of one command: its arguments have a limit."""
MAX_BROKEN = 300
"""Files with errors in one group: the first in sorted order."""
MAX_FILES = 5_000
"""Files to check: the first in sorted order. They are evidence enough."""
PYTHON = (".py", ".pyi")
FindFiles = Callable[[str], Awaitable[Sequence[str]]]
"""Finds the files at and below a folder."""
_LINE = re.compile(rb"([^\n:]+):\d+:\d+: ([A-Z]+[0-9]+)\b")


@dataclass(frozen=True)
class Totals:
    """The errors of a project's files."""

    files: tuple[str, ...] = ()
    """The Python files that were checked."""
    errors: dict[str, dict[str, int]] = field(default_factory=dict)
    """By path and rule code, the number of errors."""
    since: dict[str, str] = field(default_factory=dict)
    """By rule code, the version of ruff in which the rule became stable."""

    def groups(self) -> dict[str, dict[str, Any]]:
        """The number of files, and the errors of the first of them: of the project's code, and of what is `beside`."""
        # A shared module imports this package, as scripts do.
        from remora.scripts.shared.places import is_beside, is_in_tests

        kinds = {path: "beside" if is_in_tests(path) or is_beside(path) else "code" for path in self.files}
        found: dict[str, dict[str, Any]] = {}
        for kind in ("code", "beside"):
            errors = [(path, codes) for path, codes in self.errors.items() if kinds.get(path) == kind]
            found[kind] = {"files": list(kinds.values()).count(kind), "errors": dict(errors[:MAX_BROKEN])}
        return found | {"since": self.since}


class Survey:
    """Counts the errors of a project: once for each set of flags, for all agents of a run."""

    def __init__(self, linter: FileLinter, root: Path) -> None:
        self._linter = linter
        self._root = root
        self._known: dict[tuple[str, ...], Totals] = {}
        self._versions: dict[str, str] | None = None
        self._turn = asyncio.Lock()

    async def totals(self, flags: Sequence[str], under: str, find_files: FindFiles) -> Totals:
        """The errors of the Python files in a folder, as they are on the disk; none if ruff cannot check them."""
        key = (under, *flags)
        async with self._turn:
            if key not in self._known:
                files = [path for path in await find_files(under) if path.endswith(PYTHON)]
                self._known[key] = await self._count(flags, files[:MAX_FILES])
            return self._known[key]

    async def _count(self, flags: Sequence[str], files: Sequence[str]) -> Totals:
        errors: dict[str, Counter[str]] = {}
        for start in range(0, len(files), FILES_AT_ONCE):
            part = files[start : start + FILES_AT_ONCE]
            try:
                done = await self._linter.check_files([*FLAGS, *flags], part, cwd=self._root)
            except ToolError:
                return Totals()
            if done.returncode:
                return Totals()
            for path, code in _errors(done):
                errors.setdefault(path, Counter())[code] += 1
        since = {
            code: await self._first_version(code) for code in sorted({each for one in errors.values() for each in one})
        }
        return Totals(tuple(files), {path: dict(found) for path, found in sorted(errors.items())}, since)

    async def _first_version(self, code: str) -> str:
        if self._versions is None:
            self._versions = _versions(await self._linter.describe_rules(cwd=self._root))
        return self._versions.get(code, "0")


def _versions(done: Completed) -> dict[str, str]:
    """By rule code, the version of ruff in which the rule became stable; empty if ruff does not say."""
    try:
        rules = json.loads(b"".join(done.full.get("stdout", [done.stdout])))
        found = {rule["code"]: rule["status"].get("Stable", {}).get("since", "0") for rule in rules}
    except (ValueError, TypeError, KeyError, AttributeError):  # another version of ruff
        return {}
    return {str(code): str(since).removeprefix("v") for code, since in found.items()}


def _errors(done: Completed) -> Iterator[tuple[str, str]]:
    """The path and rule code of each error that ruff printed."""
    rest = b""
    for chunk in done.full.get("stdout", [done.stdout]):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from _matching(lines)
    yield from _matching([rest])


def _matching(lines: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if found := _LINE.match(line):
            yield found[1].decode("utf-8", "replace").removeprefix("./"), found[2].decode()
