"""Ignore rules: the files that git ignores, and folders that tools create.

Pure: the caller reads the rule files and passes their text. Like git, a walk must not enter an ignored folder: rules
cannot re-include anything below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

RULES = ".gitignore"
"""Rules for the folder that contains this file, and everything below it."""
OWN_RULES = (".git", "info", "exclude")
"""Rules of this checkout. Every other rule file takes precedence."""
MAX_RULES = 1024 * 1024
"""Bytes of a rule file. A larger one is ignored."""
STATE_DIR = ".agentfs"
SKIPPED_DIRS = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages"})
VENV_MARK = "pyvenv.cfg"
"""A folder that contains this file is a virtual environment, and is skipped."""


@dataclass(frozen=True)
class Ignored:
    """The rules that apply in one folder. Paths are relative to the project, with `/`."""

    levels: tuple[tuple[int, GitIgnoreSpec], ...] = ()
    """Nearest first: the length of the path prefix before the rules' folder, and the rules."""

    def within(self, folder: str, rules: bytes | None) -> Self:
        """The rules in `folder` (empty for the project itself), given its own rule file or None."""
        spec = _spec(rules) if rules else None
        if spec is None:
            return self
        return type(self)(((len(folder) + 1 if folder else 0, spec), *self.levels))

    def hides_file(self, path: str) -> bool:
        """Whether the file is ignored."""
        return self._ignores(path)

    def hides_folder(self, path: str) -> bool:
        """Whether the folder, with everything below it, is ignored."""
        name = path.rpartition("/")[2]
        return name.startswith(".") or name in SKIPPED_DIRS or self._ignores(path + "/")

    def _ignores(self, path: str) -> bool:
        for start, spec in self.levels:
            verdict = spec.check_file(path[start:]).include
            if verdict is not None:
                return verdict
        return False


def _spec(rules: bytes) -> GitIgnoreSpec | None:
    """Parse the rules line by line. Invalid lines are skipped, as in git."""
    lines = [_plain(line) for line in rules.decode("utf-8", "replace").split("\n") if _is_rule(line)]
    return GitIgnoreSpec.from_lines(lines) if lines else None


def _plain(line: str) -> str:
    """`y/**` as `y/*`: the same for a walk from the top, but the parser takes the former for `y` itself too."""
    return line[:-1] if line.endswith("/**") else line


def _is_rule(line: str) -> bool:
    if not line.strip() or line.startswith("#"):
        return False
    try:
        GitIgnoreSpec.from_lines([line], backend="simple")
    except (GitIgnorePatternError, ValueError):
        return False
    return True
