"""Which names of a project are not its own code: what git ignores, and folders that tools fill.

Pure: whoever walks the folders reads the rules and hands in their text. A walk must not enter a hidden folder, since
nothing beneath it can be taken back in; that is git's own rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

RULES = ".gitignore"
"""The rules of the folder that this file is in, and of all beneath it."""
OWN_RULES = (".git", "info", "exclude")
"""Rules of this checkout alone. Every other file of rules goes before them."""
MAX_RULES = 1024 * 1024
"""Bytes of rules that are read; a larger file holds none."""
STATE_DIR = ".agentfs"
SKIPPED_DIRS = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages"})
VENV_MARK = "pyvenv.cfg"
"""A folder that holds this file is a virtual environment, and is skipped as a whole."""


@dataclass(frozen=True)
class Ignored:
    """The rules that hold in one folder. Paths are relative to the project, with `/`."""

    levels: tuple[tuple[int, GitIgnoreSpec], ...] = ()
    """The nearest first: how many characters of a path stand before its part below the rules' folder, and the rules."""

    def within(self, folder: str, rules: bytes | None) -> Self:
        """The rules in `folder` (empty for the project itself), given the text of its own, or None without any."""
        spec = _spec(rules) if rules else None
        if spec is None:
            return self
        return type(self)(((len(folder) + 1 if folder else 0, spec), *self.levels))

    def hides_file(self, path: str) -> bool:
        """Whether the file is not looked at."""
        return self._ignores(path)

    def hides_folder(self, path: str) -> bool:
        """Whether the folder, and all beneath it, is not looked at."""
        name = path.rpartition("/")[2]
        return name.startswith(".") or name in SKIPPED_DIRS or self._ignores(path + "/")

    def _ignores(self, path: str) -> bool:
        for start, spec in self.levels:
            verdict = spec.check_file(path[start:]).include
            if verdict is not None:
                return verdict
        return False


def _spec(rules: bytes) -> GitIgnoreSpec | None:
    """The rules, line by line. One that is none is left out, as git does."""
    lines = [line for line in rules.decode("utf-8", "replace").split("\n") if _is_rule(line)]
    return GitIgnoreSpec.from_lines(lines) if lines else None


def _is_rule(line: str) -> bool:
    if not line.strip() or line.startswith("#"):
        return False
    try:
        GitIgnoreSpec.from_lines([line], backend="simple")
    except (GitIgnorePatternError, ValueError):
        return False
    return True
