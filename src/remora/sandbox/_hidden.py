"""Paths of a project hidden from its tests: version control, which may contain keys, and our own state, at any depth.

The first search walks the whole tree. Later ones only list folders whose modification time changed, so a command costs
one `stat` for each folder.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from remora.sandbox._jail._view import HIDDEN

MAX_HIDDEN = 1000
"""Number of paths that can be hidden."""
_POINTER = b"gitdir:"
_MAX_POINTER = 4096
_SETTLED_NS = 2 * 10**9
"""Age of a folder's last change before its times are trusted: file system clocks are coarse."""


class TooManyHidden(Exception):
    """There are more paths to hide than `MAX_HIDDEN`."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """The entries of a folder when it was last listed."""

    mark: tuple[int, int, int] | None
    """Inode and times of change. None if another change might not alter them."""
    folders: tuple[str, ...]
    hidden: tuple[str, ...]


class Hidden:
    """Finds the hidden paths of one project, with a cache between commands."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._folders: dict[str, _Folder] = {}
        self._lock = threading.Lock()

    def find(self) -> frozenset[str]:
        """Current hidden paths, relative to the project root. Raises `TooManyHidden`."""
        with self._lock:
            if not self._is_unchanged():
                self._walk()
            paths = {below + name for below, folder in self._folders.items() for name in folder.hidden}
            paths.update(place for name in list(paths) for place in self._linked_paths(name))
        if len(paths) > MAX_HIDDEN:
            raise TooManyHidden
        return frozenset(paths)

    def _is_unchanged(self) -> bool:
        """Whether every known folder is unchanged. If so, there are no new folders either."""
        begin = f"{self._root}/"
        try:
            for below, known in self._folders.items():
                facts = os.stat(begin + below, follow_symlinks=False)  # noqa: PTH116 - a path object doubles the cost
                if known.mark != (facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns):
                    return False
        except OSError:
            return False
        return bool(self._folders)

    def _walk(self) -> None:
        known: dict[str, _Folder] = {}
        todo, places = [""], 0
        while todo:
            below = todo.pop()
            folder = self._list_folder(below)
            if folder is not None:
                known[below] = folder
                todo += [f"{below}{name}/" for name in folder.folders]
                places += len(folder.hidden)
            if places > MAX_HIDDEN:
                raise TooManyHidden
        self._folders = known

    def _list_folder(self, below: str) -> _Folder | None:
        """List a folder. None if it is gone or unreadable: then tests cannot read it either."""
        path = f"{self._root}/{below}"
        try:
            facts = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - as above
            known = self._folders.get(below)
            if known is not None and known.mark == _mark(facts):
                return known
            with os.scandir(path) as entries:
                return _sort_entries(list(entries), facts)
        except OSError:
            return None

    def _linked_paths(self, name: str) -> list[str]:
        """The target of a `.git` file or link, if it is inside the project."""
        root = Path(self._root).resolve()
        try:
            target = _target(Path(self._root, name))
            inside = target is not None and target != root and target.is_relative_to(root) and target.exists()
        except (OSError, ValueError, RuntimeError):
            return []
        return [target.relative_to(root).as_posix()] if target is not None and inside else []


def _target(path: Path) -> Path | None:
    """The target of a link, or of a `gitdir:` file, as submodules have."""
    if path.is_symlink():
        return path.resolve()
    if not path.is_file():
        return None
    with path.open("rb") as file:
        text = file.read(_MAX_POINTER)
    if not text.startswith(_POINTER):
        return None
    return (path.parent / os.fsdecode(text[len(_POINTER) :].strip())).resolve()


def _sort_entries(entries: list[os.DirEntry[str]], facts: os.stat_result) -> _Folder:
    hidden = tuple(entry.name for entry in entries if entry.name[0] == "." and entry.name.lower() in HIDDEN)
    folders = tuple(entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name not in hidden)
    is_settled = time.time_ns() - facts.st_mtime_ns > _SETTLED_NS
    return _Folder(_mark(facts) if is_settled else None, folders, hidden)


def _mark(facts: os.stat_result) -> tuple[int, int, int]:
    return facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns
