"""Updating the index from the streams, and filling a database in memory with what the index lacks."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from remora.errors import TraceError, TraceLocked
from remora.trace.files.lines import check_stream_id
from remora.trace.files.state import KINDS
from remora.trace.index.database import (
    IndexFile,
    can_search,
    create,
    create_indexes,
    forget_deleted,
    has_text,
    is_passing,
)
from remora.trace.index.fill import Filler, StreamRow, Texts, fingerprint_of, known_streams

Progress = Callable[[int, int], None]
"""Called with the number of bytes read, and their total."""

_COMMIT = 50_000


@dataclass(frozen=True)
class CatchUp:
    """The result of an update."""

    complete: bool
    """False if another process is indexing, or nothing can be written. Readers then read the streams."""
    streams: int = 0
    """Streams that were read."""
    events: int = 0
    removed: int = 0
    """Streams that were deleted."""
    notices: tuple[str, ...] = ()
    """Why the index or a stream was read again."""
    scanned: Mapping[str, str] | None = None
    """The fingerprints of the existing streams; None if they were not scanned."""


class Tail(NamedTuple):
    """What the index lacks, and the numbers of its streams that are wrong or outdated."""

    db: sqlite3.Connection
    replaced: frozenset[int]
    outdated: frozenset[int]


class Updater:
    """Writes the index of a state directory."""

    def __init__(self, state_dir: Path, file: IndexFile, *, text: bool) -> None:
        self._state_dir = state_dir
        self._file = file
        self._text = text and can_search()
        self._texts = Texts(state_dir)

    def catch_up(self, progress: Progress | None, reread: Collection[str], broken: str | None) -> CatchUp:
        """Index all complete records. Reads the `reread` streams again; rebuilds the index if it is `broken`."""
        with self._file.lock() as ours:
            if not ours:
                return CatchUp(complete=False)
            try:
                return self._update(progress, reread, broken)
            except OSError as error:
                return CatchUp(complete=False, notices=(f"The index cannot be written: {error.strerror}",))
            except sqlite3.DatabaseError as error:
                if is_passing(error):
                    return CatchUp(complete=False, notices=(f"The index cannot be written: {error}",))
                return self._update(progress, (), f"it cannot be used ({error})")

    def rebuild(self, progress: Progress | None) -> CatchUp:
        """Rebuild the index. Raises `TraceLocked` if another process is indexing."""
        with self._file.lock() as ours:
            if not ours:
                raise TraceLocked(f"`{self._file.path}` cannot be rebuilt: another process is indexing")
            return replace(self._update(progress, (), "a rebuild was requested"), notices=())

    def tail(
        self,
        index: sqlite3.Connection | None,
        scanned: Mapping[str, str] | None,
        reread: Collection[str],
        *,
        text: bool,
    ) -> Tail | None:
        """Index in memory what the index lacks; None if that is nothing. `scanned`: known fingerprints."""
        current = scan(self._state_dir) if scanned is None else scanned
        if index is not None and _is_current(index, current, reread):
            return None
        known = {} if index is None else known_streams(index)
        changes = _find_changes(current, known, reread)
        if not changes:
            return None
        db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        create(db, text=text and self._text)
        filler = Filler(db, text=self._texts.extract if text and self._text else None)
        adopted = replace(changes, known={name: filler.adopt(known[name]) for name in changes.sizes if name in known})
        replaced = {known[name].id for name in self._filled(filler, adopted)}
        create_indexes(db)
        gone = {stream.id for stream in changes.gone}
        outdated = {known[name].id for name in adopted.known}
        return Tail(db, frozenset(replaced | gone), frozenset(outdated | gone))

    def _update(self, progress: Progress | None, reread: Collection[str], broken: str | None) -> CatchUp:
        notices = self._throw_away(broken)
        folders = self._file.folders()  # before scanning them
        current = scan(self._state_dir)
        changes = self._find_changes(current, reread)
        events = 0
        if changes:
            events, again = self._write(changes, progress)
            notices += [f"Stream `{name}` differs from the index: it was read again" for name in again]
        self._file.settle(folders)
        return CatchUp(True, len(changes.sizes), events, len(changes.gone), tuple(notices), current)

    def _throw_away(self, broken: str | None) -> list[str]:
        problem = broken or self._file.problem() or self._lacks_text()
        if problem is None:
            return []
        self._file.discard()
        return [f"The index was rebuilt: {problem}"]

    def _lacks_text(self) -> str | None:
        if not self._text or not self._file.exists():
            return None
        with closing(self._file.reader()) as db:
            return None if has_text(db) else "it has no texts"

    def _find_changes(self, current: Mapping[str, str], reread: Collection[str]) -> _Changes:
        if not self._file.exists():
            return _find_changes(current, {}, reread)
        with closing(self._file.reader()) as db:
            return (
                _NO_CHANGES if _is_current(db, current, reread) else _find_changes(current, known_streams(db), reread)
            )

    def _write(self, changes: _Changes, progress: Progress | None) -> tuple[int, list[str]]:
        """Number of indexed events, and the streams that had to be read again."""
        with self._file.writing(text=self._text) as db:
            filler = Filler(db, text=self._texts.extract if has_text(db) else None)
            db.execute("BEGIN IMMEDIATE")
            for stream in changes.gone:
                filler.drop(stream.id)
            again = list(self._filled(filler, changes, db, progress))
            db.execute("COMMIT")
            create_indexes(db)
            if (changes.gone or again) and has_text(db):
                forget_deleted(db)
        return filler.events, again

    def _filled(
        self, filler: Filler, changes: _Changes, db: sqlite3.Connection | None = None, progress: Progress | None = None
    ) -> Iterator[str]:
        """Index stream by stream; yield the names of those whose known rows had to be replaced."""
        total, done, committed = sum(changes.sizes.values()), 0, 0
        for name, size in changes.sizes.items():
            path = self._state_dir / f"{name}.jsonl"
            if filler.fill(path, name, changes.known.get(name), trust=name not in changes.reread):
                yield name
            done += size
            if progress is not None:
                progress(done, total)
            # Commit only between streams: the rows of a stream belong to one transaction.
            if db is not None and filler.events - committed >= _COMMIT:
                filler.flush()
                db.execute("COMMIT")
                db.execute("BEGIN IMMEDIATE")
                committed = filler.events
        filler.flush()


@dataclass(frozen=True)
class _Changes:
    """How the streams differ from the index."""

    known: Mapping[str, StreamRow]
    sizes: Mapping[str, int]
    """Bytes to read of each changed stream."""
    gone: tuple[StreamRow, ...]
    reread: Collection[str]

    def __bool__(self) -> bool:
        return bool(self.sizes or self.gone)


_NO_CHANGES = _Changes({}, {}, (), ())


def _is_current(db: sqlite3.Connection, current: Mapping[str, str], reread: Collection[str]) -> bool:
    """Whether the index has exactly the existing streams, unchanged."""
    return not reread and dict(db.execute("SELECT stream_id, fingerprint FROM streams")) == current


def _find_changes(current: Mapping[str, str], known: Mapping[str, StreamRow], reread: Collection[str]) -> _Changes:
    changed = [
        name for name in current if name in reread or name not in known or known[name].fingerprint != current[name]
    ]
    sizes = {name: int(current[name].split(":")[1]) - (known[name].bytes if name in known else 0) for name in changed}
    gone = tuple(stream for name, stream in known.items() if name not in current)
    return _Changes(known, {name: max(size, 0) for name, size in sizes.items()}, gone, reread)


def scan(state_dir: Path) -> dict[str, str]:
    """The fingerprints of the existing streams, oldest id first."""
    return {name: fingerprint for kind in KINDS for name, fingerprint in sorted(_scan_folder(state_dir, kind))}


def _scan_folder(state_dir: Path, kind: str) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(state_dir / kind) as entries:
            for entry in entries:
                name = f"{kind}/{entry.name.removesuffix('.jsonl')}"
                if entry.name.endswith(".jsonl") and _is_stream_id(name) and (fingerprint := fingerprint_of(entry)):
                    yield name, fingerprint
    except OSError:
        return


def _is_stream_id(name: str) -> bool:
    try:
        check_stream_id(name)
    except TraceError:
        return False
    return True
