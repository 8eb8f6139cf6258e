"""Keeps the index equal to the files: by a sweep over all of them, or for given paths."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from remora.discovery import CodeFiles, extract, language_of
from remora.errors import KVDamaged
from remora.hub._models import EXTRACTOR, FILE_KEY, FileIndex, UpdateSource
from remora.hub._rows import FileRows, keys_of
from remora.kv import KVFile

BATCH = 200
"""Most files in one transaction,"""
BATCH_S = 1.0
"""and most seconds to wait for more."""

Stamp = tuple[int, ...]


@dataclass(frozen=True)
class Progress:
    """The progress of a sweep."""

    done: int
    total: int
    changed: int


class Index:
    """The writing side of the index. The caller must hold the writer lock."""

    def __init__(
        self, kv: KVFile, files: CodeFiles, source: UpdateSource, hides: Callable[[bytes], bool] = lambda _: False
    ) -> None:
        """A file for which `hides` is true is not stored: a secret in the code must not be stored in a second place."""
        self._kv, self._files, self._source, self._hides = kv, files, source, hides
        self._stamps: dict[str, Stamp] | None = None
        """Stamps by path; None until read from the index."""
        self._changes: dict[str, bytes | None] = {}
        self._pending = 0
        self._since = 0.0

    def sweep(self, *, should_continue: Callable[[], bool] = lambda: True) -> Iterator[Progress]:
        """Bring the index up to date. Yields progress after each batch, and can be stopped in between."""
        self._files.forget()
        known = dict(self._known())
        there = self._files.all()
        total, changed = len(there), 0
        for path in known.keys() - set(there):
            changed += self._drop(path)
        for done, path in enumerate(there):
            if not should_continue():
                break
            stamp = _stamp(self._files.root / path)
            if stamp is not None and known.get(path) != stamp:
                changed += self._add(path, stamp)
            if self._is_full():
                self._flush()
                yield Progress(done, total, changed)
        self._flush()
        yield Progress(total, total, changed)

    def touch(self, paths: Iterable[str]) -> int:
        """Update the index for these files and folders. Returns the number of changed files."""
        changed = 0
        for path in dict.fromkeys(paths):
            place = self._files.root / path
            if place.is_dir() and not place.is_symlink():
                changed += self._drop(path) + sum(self._update_file(inner) for inner in self._files.all(path))
            elif self._files.shows(path):
                changed += self._update_file(path)
            else:
                changed += sum(self._drop(gone) for gone in self._below(path))
            if self._is_full():
                self._flush()
        self._flush()
        return changed

    def start_again(self) -> None:
        """Set the damaged file aside. The next sweep fills a new one."""
        self._kv.set_aside()
        self.forget()

    def forget(self) -> None:
        """Drop cached state: the file may have been replaced."""
        self._stamps, self._changes, self._pending = None, {}, 0

    def check(self) -> None:
        """Raises `KVDamaged` if the index is damaged. Reads all of it."""
        self._kv.check()
        self._kv.scan("")

    def close(self) -> None:
        """Close the file."""
        self._kv.close()

    def _update_file(self, path: str) -> int:
        stamp = _stamp(self._files.root / path)
        return self._add(path, stamp) if stamp is not None else self._drop(path)

    def _add(self, path: str, stamp: Stamp) -> int:
        """Read and index one file. A file that cannot be read is removed from the index."""
        language, known = language_of(path), self._known()
        try:
            source = (self._files.root / path).read_bytes()
            source.decode()
        except (OSError, UnicodeDecodeError):
            return self._drop(path)
        if language is None or self._hides(source):
            return self._drop(path)
        rows = FileRows(extract(path, source, language), language, self._source, stamp).rows()
        old = self._stored_keys(path) if path in known else ()
        self._changes |= dict.fromkeys(old) | rows
        known[path] = stamp
        self._pending += 1
        return 1

    def _drop(self, path: str) -> int:
        if self._known().pop(path, None) is None:
            return 0
        self._changes |= dict.fromkeys(self._stored_keys(path))
        self._pending += 1
        return 1

    def _stored_keys(self, path: str) -> list[str]:
        """The keys of the file's current records. Flushes a pending batch that contains them."""
        key = FILE_KEY + path
        if key in self._changes:
            self._flush()
        rows = self._kv.get([key])
        return [key for row in rows if (index := _read(row.data)) is not None for key in keys_of(index)]

    def _below(self, path: str) -> list[str]:
        """The path, or all known paths below it: deleting a folder is reported as one path."""
        known = self._known()
        if path in known:
            return [path]
        if path.endswith(self._files.suffixes):
            return []
        prefix = FILE_KEY + path.rstrip("/") + "/"
        rows = self._kv.scan(prefix)
        return [row.key.removeprefix(FILE_KEY) for row in rows]

    def _known(self) -> dict[str, Stamp]:
        if self._stamps is None:
            rows = self._kv.scan(FILE_KEY)
            indexes = [index for row in rows if (index := _read(row.data)) is not None]
            if len(indexes) < len(rows):
                raise KVDamaged(self._kv.path, problem="it has records of another kind")
            self._stamps = {item.path: item.stamp if item.extractor == EXTRACTOR else () for item in indexes}
        return self._stamps

    def _is_full(self) -> bool:
        if not self._pending:
            self._since = time.monotonic()
            return False
        return self._pending >= BATCH or time.monotonic() - self._since >= BATCH_S

    def _flush(self) -> None:
        if self._changes:
            self._kv.commit(dict(sorted(self._changes.items())), {})  # sorted, because writing in key order is faster
        self._changes, self._pending = {}, 0


def _read(data: bytes) -> FileIndex | None:
    try:
        return FileIndex.model_validate_json(data)
    except ValidationError:
        return None


def _stamp(place: Path) -> Stamp | None:
    """Size, times and inode, which show a change without reading; None if there is no file."""
    try:
        info = place.lstat()
    except OSError:
        return None
    return (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
