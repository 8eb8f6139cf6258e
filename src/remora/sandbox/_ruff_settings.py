"""Keeps ruff from reading settings outside the project, because it quotes lines that it cannot parse.

A project can make `ruff.toml` extend any file of the user, or link to one. ruff would print its lines in an error, and
they would reach the stream and the model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from remora.errors import ToolFailed

NAMES = (".ruff.toml", "ruff.toml", "pyproject.toml")
EXPANDED = ("~", "$")
"""Characters that ruff expands with values of the user's environment."""
MAX_CHAIN = 20


def check_settings(words: Sequence[str], root: Path) -> None:
    """Raises `ToolFailed` if ruff, with these arguments, could read settings outside the project."""
    if "--isolated" in words:
        return
    real_root = root.resolve()
    for folder in _folders(words):
        for name in NAMES:
            _check_file(root / folder / name, real_root, MAX_CHAIN)


def _folders(words: Sequence[str]) -> Iterator[PurePosixPath]:
    """The folders where ruff looks for settings: those of the file, up to the project root."""
    given = [word.partition("=")[2] for word in words if word.startswith("--stdin-filename=")]
    for name in (*given, "x"):
        yield from PurePosixPath(name).parents


def _check_file(path: Path, root: Path, chain: int) -> None:
    real = path.resolve()
    if not path.exists():
        return
    if not real.is_relative_to(root):
        raise _settings_error(path, root, "is a link that leads outside the project")
    extended = _read_extend(real, path.name)
    if extended is None:
        return
    if not chain:
        raise _settings_error(path, root, "starts a chain of `extend` that is too long")
    if not isinstance(extended, str) or any(char in extended for char in EXPANDED):
        raise _settings_error(path, root, "has an `extend` that is not a plain path")
    target = path.parent / extended
    if not target.resolve().is_relative_to(root):
        raise _settings_error(path, root, "has an `extend` that leads outside the project")
    _check_file(target, root, chain - 1)


def _read_extend(real: Path, name: str) -> Any:
    """The value of `extend`. None for a file that cannot be parsed: ruff reports what is wrong with it."""
    try:
        settings: Any = tomllib.loads(real.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if name == "pyproject.toml":
        tool = settings.get("tool")
        settings = tool.get("ruff") if isinstance(tool, dict) else None
    return settings.get("extend") if isinstance(settings, dict) else None


def _settings_error(path: Path, root: Path, what: str) -> ToolFailed:
    shown = path.relative_to(root) if path.is_relative_to(root) else path.name
    return ToolFailed(
        f"`{shown}` {what}: ruff does not run with such settings",
        hint="Put the settings inside the project, or run Remora from the folder that contains both",
    )
