"""Files that somebody else may have put there: read once, and only where they are plain and of a sane size."""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from remora.errors import ConfigError
from remora.snapshot import Snapshot

MAX_FILES = 1000
"""Files of one folder, those in folders below included."""
MAX_BYTES = 16 * 1024 * 1024
"""Bytes of all of them together."""
MAX_DEPTH = 16
CACHES = frozenset({"__pycache__", ".pytest_cache"})
"""Folders that tools fill: neither read nor digested, so nothing in them can be loaded."""
_PLAIN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def read_plain(path: Path, most: int, *, links: bool = False) -> bytes:
    """The bytes of a plain file. Raises `ConfigError` for anything else, or one over `most` bytes; `OSError` if none.

    Nothing of what the file holds is in the error. With `links`, a link is followed.
    """
    return _read(str(path), path, most, None, links=links)


def read_below(folder: Path, name: str, most: int) -> bytes:
    """The bytes of the plain file `NAME` or `FOLDER/NAME` below `folder`. Raises as `read_plain`, also for links."""
    inner, _, last = name.rpartition("/")
    if not inner:
        return read_plain(folder / name, most)
    place = folder / inner
    try:
        handle = os.open(place, _flags(links=False) | os.O_DIRECTORY)
    except FileNotFoundError:
        raise
    except OSError as error:
        problem = _link(place) if place.is_symlink() else ConfigError(f"`{place}` cannot be read: {error.strerror}")
        raise problem from error
    try:
        return _read(last, folder / name, most, handle, links=False)
    finally:
        os.close(handle)


def read_folder(folder: Path, *, links: bool = False) -> Snapshot:
    """All files at and below `folder`, but those of caches. Raises `ConfigError` for links, other than files, too much.

    With `links` they are followed: for a folder of ours, which an installer may have laid out in links.
    """
    walk = _Walk(folder, links)
    handle = walk.enter(str(folder), folder, None)
    try:
        walk.read(handle, "", 0)
    finally:
        os.close(handle)
    twins = [name for name, number in Counter(name.casefold() for name in walk.files).items() if number > 1]
    if twins:
        names = ", ".join(f"`{name}`" for name in sorted(walk.files) if name.casefold() == twins[0])
        raise ConfigError(f"`{folder}`: {names} differ only in case: not every disk tells them apart")
    return Snapshot(folder, walk.files)


@dataclass
class _Walk:
    """One reading of a folder. Every name is opened below the folder that it was found in, never by its whole path."""

    top: Path
    links: bool
    files: dict[str, bytes] = field(default_factory=dict)
    left: int = MAX_BYTES

    def enter(self, name: str, path: Path, within: int | None) -> int:
        try:
            return os.open(name, _flags(links=self.links) | os.O_DIRECTORY, dir_fd=within)
        except OSError as error:
            if path.is_symlink() and not self.links:
                raise _link(path) from error
            raise ConfigError(f"`{path}` cannot be read: {error.strerror}") from error

    def read(self, handle: int, before: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ConfigError(f"`{self.top}` is nested more than {MAX_DEPTH} folders deep")
        with os.scandir(handle) as entries:
            found = sorted((entry.name, self._is_folder(entry)) for entry in entries)
        for name, is_folder in found:
            path = self.top / before / name
            if not is_folder:
                self._take(name, path, before, handle)
            elif name not in CACHES:
                inner = self.enter(name, path, handle)
                try:
                    self.read(inner, f"{before}{name}/", depth + 1)
                finally:
                    os.close(inner)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        return entry.is_dir(follow_symlinks=self.links)

    def _take(self, name: str, path: Path, before: str, handle: int) -> None:
        if len(self.files) >= MAX_FILES:
            raise ConfigError(f"`{self.top}` holds more than {MAX_FILES:,} files: expected the few of one agent")
        try:
            data = _read(name, path, self.left, handle, links=self.links)
        except OSError as error:
            raise ConfigError(f"`{path}` cannot be read: {error.strerror}") from error
        self.left -= len(data)
        self.files[before + name] = data


def _read(name: str, path: Path, most: int, within: int | None, *, links: bool) -> bytes:
    try:
        handle = os.open(name, _flags(links=links), dir_fd=within)
    except OSError as error:
        if path.is_symlink() and not links:
            raise _link(path) from error
        raise
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ConfigError(f"`{path}` is not a plain file")
        # One more than allowed: a file may grow while it is read.
        data = opened.read(most + 1)
    if len(data) > most:
        raise ConfigError(f"`{path}` is too large: at most {most:,} bytes are read here")
    return data


def _flags(*, links: bool) -> int:
    return _PLAIN if links else _PLAIN | os.O_NOFOLLOW


def _link(path: Path) -> ConfigError:
    return ConfigError(f"`{path}` is a link: expected a plain file or folder, which cannot change unseen")
