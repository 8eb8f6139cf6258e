"""Copies the project as a workspace has it: project files, with the changed ones on top."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

CHUNK = 1024 * 1024
HIDDEN = frozenset({".git", ".hg", ".svn", ".jj", ".bzr", ".agentfs"})
"""Names hidden from tests at any depth: history may contain keys, and our state contains other agents' work."""
SKIPPED = HIDDEN | frozenset(
    {".venv", "venv", "node_modules", ".tox", ".nox", "__pycache__"}
    | {".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
)
"""Folders that are not copied, at any depth, because tests do not need them."""


def copy_view(base: str, over: str | None, target: str, hidden: Collection[str] = ()) -> None:
    """Copy the files of `base` to `target`, then those of `over` on top. Links stay links."""
    _copy(base, target, "", frozenset(hidden))
    copy_changed(over, target)


def copy_changed(over: str | None, target: str) -> None:
    """Copy the files of `over` into `target`."""
    if over is not None and os.path.isdir(over):
        _copy(over, target, "", frozenset())


def _copy(source: str, target: str, below: str, hidden: frozenset[str]) -> None:
    with os.scandir(source) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            goal = os.path.join(target, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED and entry.name.lower() not in HIDDEN and path not in hidden:
                    _make_folder(goal)
                    _copy(entry.path, goal, f"{path}/", hidden)
            elif path not in hidden and entry.name.lower() not in HIDDEN:
                _copy_file(entry, goal)


def _make_folder(goal: str) -> None:
    if os.path.islink(goal):
        os.unlink(goal)
    os.makedirs(goal, exist_ok=True)


def _copy_file(entry: os.DirEntry[str], goal: str) -> None:
    if os.path.islink(goal):
        os.unlink(goal)
    if entry.is_symlink():
        if not os.path.lexists(goal):
            os.symlink(os.readlink(entry.path), goal)
    elif entry.is_file(follow_symlinks=False):
        try:
            source = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
        except PermissionError:
            return  # Tests may not read what the user may not.
        _copy_bytes(source, goal)


def _copy_bytes(source: int, goal: str) -> None:
    """Copy the file to `goal` with its mode and times. Closes `source`."""
    facts = os.fstat(source)
    target = os.open(goal, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        while chunk := os.read(source, CHUNK):
            while chunk:
                chunk = chunk[os.write(target, chunk) :]
        os.fchmod(target, facts.st_mode & 0o777)
        os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    finally:
        os.close(source)
        os.close(target)
