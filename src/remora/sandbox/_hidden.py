"""What tests do not see of a project: version control, which may hold keys, and our own state, at any depth.

To find it the whole tree is walked once. After that a folder is only looked into where its time of change says that
something in it came or went, so a later command costs one `stat` for each folder.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from remora.sandbox._jail._view import HIDDEN

MAX_HIDDEN = 1000
"""Places that are hidden one by one."""
_POINTER = b"gitdir:"
_MAX_POINTER = 4096
_SETTLED_NS = 2 * 10**9
"""How old a folder's last change must be to be sure that the next one shows: clocks of file systems are coarse."""


class TooManyHidden(Exception):
    """There are more places than can be hidden one by one."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """What was in a folder when it was looked into."""

    mark: tuple[int, int, int] | None
    """Its inode and times of change; none if it might change again without showing it."""
    folders: tuple[str, ...]
    hidden: tuple[str, ...]


class Hidden:
    """The places of one project that are hidden, found again for every command."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._known: dict[str, _Folder] = {}
        self._lock = threading.Lock()

    def find(self) -> frozenset[str]:
        """Paths below the project's root as they are now. Raises `TooManyHidden`."""
        with self._lock:
            if not self._is_unchanged():
                self._walk()
            found = {below + name for below, folder in self._known.items() for name in folder.hidden}
            found.update(place for name in list(found) for place in self._elsewhere(name))
        if len(found) > MAX_HIDDEN:
            raise TooManyHidden
        return frozenset(found)

    def _is_unchanged(self) -> bool:
        """Whether every folder is as it was: then there are no others either."""
        begin = f"{self._root}/"
        try:
            for below, known in self._known.items():
                facts = os.stat(begin + below, follow_symlinks=False)  # noqa: PTH116 - a path object costs as much
                if known.mark != (facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns):
                    return False
        except OSError:
            return False
        return bool(self._known)

    def _walk(self) -> None:
        known: dict[str, _Folder] = {}
        todo, places = [""], 0
        while todo:
            below = todo.pop()
            folder = self._look(below)
            if folder is not None:
                known[below] = folder
                todo += [f"{below}{name}/" for name in folder.folders]
                places += len(folder.hidden)
            if places > MAX_HIDDEN:
                raise TooManyHidden
        self._known = known

    def _look(self, below: str) -> _Folder | None:
        """What is in the folder; None where it is gone, or not for us to enter: then tests may not either."""
        path = f"{self._root}/{below}"
        try:
            facts = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - as above
            known = self._known.get(below)
            if known is not None and known.mark == _mark(facts):
                return known
            with os.scandir(path) as entries:
                return _sorted_out(list(entries), facts)
        except OSError:
            return None

    def _elsewhere(self, name: str) -> list[str]:
        """Where a `.git` that is a file or a link leads, if that is in the project."""
        root = Path(self._root).resolve()
        try:
            target = _target(Path(self._root, name))
            inside = target is not None and target != root and target.is_relative_to(root) and target.exists()
        except (OSError, ValueError, RuntimeError):
            return []
        return [target.relative_to(root).as_posix()] if target is not None and inside else []


def _target(path: Path) -> Path | None:
    """Where a link leads, or a file that names a repository elsewhere, as those of submodules do."""
    if path.is_symlink():
        return path.resolve()
    if not path.is_file():
        return None
    with path.open("rb") as file:
        text = file.read(_MAX_POINTER)
    if not text.startswith(_POINTER):
        return None
    return (path.parent / os.fsdecode(text[len(_POINTER) :].strip())).resolve()


def _sorted_out(entries: list[os.DirEntry[str]], facts: os.stat_result) -> _Folder:
    hidden = tuple(entry.name for entry in entries if entry.name[0] == "." and entry.name.lower() in HIDDEN)
    folders = tuple(entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name not in hidden)
    is_settled = time.time_ns() - facts.st_mtime_ns > _SETTLED_NS
    return _Folder(_mark(facts) if is_settled else None, folders, hidden)


def _mark(facts: os.stat_result) -> tuple[int, int, int]:
    return facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns
