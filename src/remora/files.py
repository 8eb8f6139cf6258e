"""Reads untrusted files once, and only regular files of a limited size."""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from remora.errors import ConfigError
from remora.snapshot import Snapshot

MAX_FILES = 1000
"""Most files in one folder, subfolders included."""
MAX_BYTES = 16 * 1024 * 1024
"""Total bytes of all of them."""
MAX_DEPTH = 16
CACHES = frozenset({"__pycache__", ".pytest_cache"})
"""Cache folders of tools: neither read nor hashed, so nothing in them can be loaded."""
_PLAIN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def read_plain(path: Path, most: int, *, links: bool = False) -> bytes:
    """Read a regular file.

    Raises `ConfigError` for anything else or more than `most` bytes; `OSError` if there is none.

    The error contains nothing of the file's content. With `links`, links are followed.
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
        if place.is_symlink():
            raise _link_error(place) from error
        raise ConfigError(f"`{place}` cannot be read: {error.strerror}") from error
    try:
        return _read(last, folder / name, most, handle, links=False)
    finally:
        os.close(handle)


def read_folder(folder: Path, *, links: bool = False) -> Snapshot:
    """Read all files in `folder`, except caches. Raises `ConfigError` for links, special files, or too much data.

    With `links`, links are followed: for our own folder, which an installer may have laid out with links.
    """
    walk = _Walk(folder, links)
    handle = walk.enter(str(folder), folder, None)
    try:
        walk.read(handle, "", 0)
    finally:
        os.close(handle)
    duplicates = [name for name, number in Counter(name.casefold() for name in walk.files).items() if number > 1]
    if duplicates:
        names = ", ".join(f"`{name}`" for name in sorted(walk.files) if name.casefold() == duplicates[0])
        raise ConfigError(f"`{folder}`: {names} differ only in case: some file systems cannot distinguish them")
    return Snapshot(folder, walk.files)


@dataclass
class _Walk:
    """Reads a folder. Every name is opened relative to its open parent folder, never by its whole path."""

    top: Path
    links: bool
    files: dict[str, bytes] = field(default_factory=dict)
    left: int = MAX_BYTES

    def enter(self, name: str, path: Path, within: int | None) -> int:
        try:
            return os.open(name, _flags(links=self.links) | os.O_DIRECTORY, dir_fd=within)
        except OSError as error:
            if path.is_symlink() and not self.links:
                raise _link_error(path) from error
            raise ConfigError(f"`{path}` cannot be read: {error.strerror}") from error

    def read(self, handle: int, before: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ConfigError(f"`{self.top}` is nested more than {MAX_DEPTH} folders deep")
        with os.scandir(handle) as entries:
            entries_found = sorted((entry.name, self._is_folder(entry)) for entry in entries)
        for name, is_folder in entries_found:
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
            raise ConfigError(
                f"`{self.top}` contains more than {MAX_FILES:,} files: expected the few files of one agent"
            )
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
            raise _link_error(path) from error
        raise
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ConfigError(f"`{path}` is not a regular file")
        # One byte more than allowed: a file may grow while it is read.
        data = opened.read(most + 1)
    if len(data) > most:
        raise ConfigError(f"`{path}` is too large: the limit is {most:,} bytes")
    return data


def _flags(*, links: bool) -> int:
    return _PLAIN if links else _PLAIN | os.O_NOFOLLOW


def _link_error(path: Path) -> ConfigError:
    return ConfigError(
        f"`{path}` is a link: expected a regular file or folder, so that its content is what was checked"
    )
