"""Keeps the index equal to the files: by a sweep over all of them, or for paths that somebody saw change."""

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
"""Files of one transaction, at most,"""
BATCH_S = 1.0
"""and seconds that one may wait for others."""

Stamp = tuple[int, ...]


@dataclass(frozen=True)
class Progress:
    """How far a sweep has come."""

    done: int
    total: int
    changed: int


class Index:
    """The writing side of the index. One at a time: whoever uses it holds the writer's lock."""

    def __init__(
        self, kv: KVFile, files: CodeFiles, source: UpdateSource, hides: Callable[[bytes], bool] = lambda _: False
    ) -> None:
        """A file whose bytes `hides` something is not kept: a secret in the code is not to be in a second place."""
        self._kv, self._files, self._source, self._hides = kv, files, source, hides
        self._stamps: dict[str, Stamp] | None = None
        """By path, what was read last; None until the file was asked."""
        self._changes: dict[str, bytes | None] = {}
        self._waiting = 0
        self._since = 0.0

    def sweep(self, *, keep_on: Callable[[], bool] = lambda: True) -> Iterator[Progress]:
        """The index is as the files are, once this has ended. Gives a word after each batch; may be stopped between."""
        self._files.forget()
        known = dict(self._known())
        there = self._files.all()
        total, changed = len(there), 0
        for path in known.keys() - set(there):
            changed += self._drop(path)
        for done, path in enumerate(there):
            if not keep_on():
                break
            stamp = _stamp(self._files.root / path)
            if stamp is not None and known.get(path) != stamp:
                changed += self._take(path, stamp)
            if self._is_full():
                self._flush()
                yield Progress(done, total, changed)
        self._flush()
        yield Progress(total, total, changed)

    def touch(self, paths: Iterable[str]) -> int:
        """The index is as those files and folders are; gives how many files had changed."""
        changed = 0
        for path in dict.fromkeys(paths):
            place = self._files.root / path
            if place.is_dir() and not place.is_symlink():
                changed += self._drop(path) + sum(self._look(inner) for inner in self._files.all(path))
            elif self._files.shows(path):
                changed += self._look(path)
            else:
                changed += sum(self._drop(gone) for gone in self._below(path))
            if self._is_full():
                self._flush()
        self._flush()
        return changed

    def start_again(self) -> None:
        """The damaged file is set aside; the next sweep fills a new one."""
        self._kv.set_aside()
        self.forget()

    def forget(self) -> None:
        """Ask the file again what it holds: it may be another one."""
        self._stamps, self._changes, self._waiting = None, {}, 0

    def check(self) -> None:
        """Raises `KVDamaged` unless the whole index is in order. Takes as long as reading it."""
        self._kv.check()
        self._kv.scan("")

    def close(self) -> None:
        """No file is held open."""
        self._kv.close()

    def _look(self, path: str) -> int:
        stamp = _stamp(self._files.root / path)
        return self._take(path, stamp) if stamp is not None else self._drop(path)

    def _take(self, path: str, stamp: Stamp) -> int:
        """Read and extract one file. Where it cannot be read, it is not in the index."""
        language, known = language_of(path), self._known()
        try:
            source = (self._files.root / path).read_bytes()
            source.decode()
        except (OSError, UnicodeDecodeError):
            return self._drop(path)
        if language is None or self._hides(source):
            return self._drop(path)
        rows = FileRows(extract(path, source, language), language, self._source, stamp).rows()
        old = self._old(path) if path in known else ()
        self._changes |= dict.fromkeys(old) | rows
        known[path] = stamp
        self._waiting += 1
        return 1

    def _drop(self, path: str) -> int:
        if self._known().pop(path, None) is None:
            return 0
        self._changes |= dict.fromkeys(self._old(path))
        self._waiting += 1
        return 1

    def _old(self, path: str) -> list[str]:
        """The keys that the file's records have now; those of a batch that waits are written first."""
        key = FILE_KEY + path
        if key in self._changes:
            self._flush()
        rows = self._kv.get([key])
        return [key for row in rows if (found := _read(row.data)) is not None for key in keys_of(found)]

    def _below(self, path: str) -> list[str]:
        """The path and all known ones below it. A deleted folder is told as one name."""
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
            found = [index for row in rows if (index := _read(row.data)) is not None]
            if len(found) < len(rows):
                raise KVDamaged(self._kv.path, problem="it has records of another kind")
            self._stamps = {item.path: item.stamp if item.extractor == EXTRACTOR else () for item in found}
        return self._stamps

    def _is_full(self) -> bool:
        if not self._waiting:
            self._since = time.monotonic()
            return False
        return self._waiting >= BATCH or time.monotonic() - self._since >= BATCH_S

    def _flush(self) -> None:
        if self._changes:
            self._kv.commit(dict(sorted(self._changes.items())), {})  # in the order of the file, it is written faster
        self._changes, self._waiting = {}, 0


def _read(data: bytes) -> FileIndex | None:
    try:
        return FileIndex.model_validate_json(data)
    except ValidationError:
        return None


def _stamp(place: Path) -> Stamp | None:
    """By what a change is noticed without reading; None where there is no file. Times are the kernel's, in ns."""
    try:
        found = place.lstat()
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
