"""The SQLite file of a key-value store.

{path}            SQLite, WAL: key, value (JSON), version, checksum
{path}.lock       locked (flock) shared by writers, exclusively by a process that moves a damaged file aside
{path}.damaged    a damaged file that was moved aside

Several processes can read while one writes; a second writer waits. Readers open the file read-only, so only a holder of
the lock ever deletes a WAL. Versions only grow, over all keys of the file: a version from before a delete never matches
again.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from remora.errors import KVBusy, KVConflict, KVDamaged, KVError

T = TypeVar("T")

ABSENT = 0
"""The version of a missing key."""

BUSY_S = 5.0
_APPLICATION = 0x52454B56
_SCHEMA = 1
_TABLES = (
    "CREATE TABLE records (key BLOB PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL, sum INTEGER NOT NULL) "
    "WITHOUT ROWID",  # one tree: no index that could differ from its table
    "CREATE TABLE state (version INTEGER NOT NULL)",
    "INSERT INTO state VALUES (0)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_SCHEMA}",
)
_AT_ONCE = 500
_FILE_MODE = 0o600
# Not a database, malformed, or without our tables.
_DAMAGED = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_MISMATCH})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class KVRow(NamedTuple):
    """The stored record of a key."""

    key: str
    data: bytes
    version: int


class CommitResult(NamedTuple):
    """The result of a commit."""

    version: int
    """The version of everything that it wrote."""
    deleted: int


class KVFile:
    """The database file of one store. All methods block. It can be used from several threads."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.path = path
        self._durable = durable
        self._lock_path = path.with_name(path.name + ".lock")
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._reader_inode = self._writer_inode = self._seen = 0
        self._handle: int | None = None

    def read(self, ask: Callable[[sqlite3.Connection], T], empty: T) -> T:
        """Query the file; return `empty` if nothing was ever written."""
        with self._reading, self._translated():
            if self._reader is not None and self._reader_inode != self._inode():
                self._reader.close()
                self._reader = None
            if self._reader is None:
                self._reader, self._reader_inode = self._open_reader(), self._seen
            return empty if self._reader is None or not _has_tables(self._reader) else ask(self._reader)

    def snapshot(self) -> sqlite3.Connection | None:
        """A new connection that reads a snapshot; None if nothing was ever written."""
        with self._translated():
            db = self._open_reader()
            if db is None:
                return None
            db.execute("BEGIN")
            if _has_tables(db):
                return db
            db.close()
            return None

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction."""
        with self._writing, self._translated():
            db = self._open_writer()
            try:
                db.execute("BEGIN IMMEDIATE")
                if not _has_tables(db):
                    for statement in _TABLES:
                        db.execute(statement)
                result = work(db)
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
            return result

    def check(self) -> None:
        """Raises `KVDamaged` if the file is damaged. Reads the whole file."""
        found = self.read(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0], "ok")
        if found != "ok":
            raise KVDamaged(self.path, problem=found)

    def set_aside(self) -> Path:
        """Move the damaged file aside and return its new path. The next write creates a new file."""
        aside = self.path.with_name(self.path.name + ".damaged")
        self.close()
        with self._writing, self._translated():
            self._lock(fcntl.LOCK_EX, wait_s=0)
            try:
                if self._inode() == self._seen:  # else another process has moved it
                    # Move the database last: a new database would apply an old WAL beside it.
                    for suffix in ("-shm", "-wal", ""):
                        with suppress(FileNotFoundError):
                            aside.with_name(aside.name + suffix).unlink()
                        with suppress(FileNotFoundError):
                            self.path.with_name(self.path.name + suffix).rename(aside.with_name(aside.name + suffix))
            finally:
                self._unlock()
        return aside

    def close(self) -> None:
        """Close all connections."""
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
        with self._writing:
            self._close_writer()

    def _open_reader(self) -> sqlite3.Connection | None:
        while before := self._inode():
            self._seen = before
            db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=ro",
                uri=True,
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._check_kind(db)
            except BaseException:
                db.close()
                raise
            # Replaced between opening the database and its WAL: they do not belong together.
            if before == self._inode():
                return db
            db.close()
        return None

    def _open_writer(self) -> sqlite3.Connection:
        if self._writer is not None and self._writer_inode == self._inode():
            return self._writer
        self._close_writer()
        self._lock(fcntl.LOCK_SH, wait_s=BUSY_S)
        try:
            self._writer = self._connect_writer()
        except BaseException:
            self._unlock()
            raise
        self._writer_inode = self._inode()
        return self._writer

    def _connect_writer(self) -> sqlite3.Connection:
        with suppress(FileExistsError):
            # SQLite creates its other files with the mode of this one.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _FILE_MODE))
        self._seen = self._inode()
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._check_kind(db)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'NORMAL'}")
            db.execute("PRAGMA secure_delete=ON")  # deleted values must not stay readable in the file
        except BaseException:
            db.close()
            raise
        return db

    def _check_kind(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN")  # one snapshot for both: a writer may be creating the file
        application, version = (
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        db.execute("COMMIT")
        if (application, version) not in ((0, 0), (_APPLICATION, _SCHEMA)):
            problem = (
                "it is not a key-value file of Remora" if application != _APPLICATION else f"it has schema {version}"
            )
            raise KVDamaged(self.path, problem=f"{problem}: expected schema {_SCHEMA}")

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._unlock()

    def _lock(self, kind: int, *, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _FILE_MODE)
        while True:
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < until:
                    time.sleep(0.005)
                    continue
                os.close(handle)
                raise KVBusy(self.path) from None
            self._handle = handle
            return

    def _unlock(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _inode(self) -> int:
        """The inode of the file; 0 if there is none. Raises for a symbolic link: it could redirect a write."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return 0
        if self.path.is_symlink():
            raise KVError(f"`{self.path}` is a symbolic link: expected a regular file")
        return found.st_ino

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_INTERNAL) & 0xFF
            if code in _BUSY:
                raise KVBusy(self.path) from error
            if code in _DAMAGED:
                raise KVDamaged(self.path, problem=str(error)) from error
            raise KVError(f"`{self.path}` cannot be used: {error}") from error
        except OSError as error:
            raise KVError(f"`{self.path}` cannot be used: {error.strerror}") from error

    def get(self, keys: Sequence[str]) -> list[KVRow]:
        """The current records of the keys that exist."""
        empty: list[KVRow] = []
        return self.read(lambda db: self.rows_of(db, keys), empty)

    def scan(self, prefix: str, limit: int = -1) -> list[KVRow]:
        """The current records whose keys begin with `prefix`, by key; with `limit`, the first ones."""
        empty: list[KVRow] = []
        return self.read(lambda db: self.rows_with_prefix(db, prefix, limit), empty)

    def rows_of(self, db: sqlite3.Connection, keys: Sequence[str]) -> list[KVRow]:
        """The records of the keys that exist, in a snapshot."""
        wanted = [to_bytes(key) for key in keys]
        parts = (wanted[place : place + _AT_ONCE] for place in range(0, len(wanted), _AT_ONCE))
        return [row for part in parts for row in self._rows(db, f"key IN ({', '.join('?' * len(part))})", part)]

    def rows_with_prefix(self, db: sqlite3.Connection, prefix: str, limit: int = -1) -> list[KVRow]:
        """The records whose keys begin with `prefix`, in a snapshot, by key; with `limit`, the first ones."""
        low = to_bytes(prefix)
        return self._rows(db, "key >= ? AND key < ?", [low, low + b"\xff"], limit)  # no key contains this byte

    def commit(self, changes: Mapping[str, bytes | None], expected: Mapping[str, int]) -> CommitResult:
        """Apply all changes (None deletes), or none. Raises `KVConflict` if a version is not the expected one."""
        return self.write(lambda db: self._change(db, changes, expected))

    def _change(
        self, db: sqlite3.Connection, changes: Mapping[str, bytes | None], expected: Mapping[str, int]
    ) -> CommitResult:
        there = {row.key: row.version for row in self.rows_of(db, list(expected))}
        for key, version in expected.items():
            if there.get(key, ABSENT) != version:
                raise KVConflict(key, expected=version, found=there.get(key, ABSENT))
        db.execute("UPDATE state SET version = version + 1")
        version = int(db.execute("SELECT version FROM state").fetchone()[0])
        gone = [(to_bytes(key),) for key, data in changes.items() if data is None]
        kept = [(to_bytes(key), data, version) for key, data in changes.items() if data is not None]
        deleted = db.executemany("DELETE FROM records WHERE key = ?", gone).rowcount if gone else 0
        db.executemany("REPLACE INTO records VALUES (?, ?, ?, ?)", ((*each, _sum(*each)) for each in kept))
        return CommitResult(version, deleted)

    def _rows(self, db: sqlite3.Connection, condition: str, values: Sequence[bytes], limit: int = -1) -> list[KVRow]:
        """The matching records by key, each checked against its checksum."""
        with self._translated():
            sql = f"SELECT key, value, version, sum FROM records WHERE {condition} ORDER BY key LIMIT ?"  # noqa: S608
            return [self._checked(*row) for row in db.execute(sql, [*values, limit])]

    def _checked(self, key: bytes, data: bytes, version: int, total: int) -> KVRow:
        try:
            if _sum(key, data, version) == total:
                return KVRow(key.decode("utf-8", "surrogatepass"), data, version)
        except (TypeError, ValueError):
            pass  # types that we never write
        raise KVDamaged(self.path, problem=f"the record {key!r:.80} is not as it was written")


def to_bytes(key: str) -> bytes:
    """The key as stored. Any text, including a path that is not valid UTF-8."""
    return key.encode("utf-8", "surrogatepass")


def _sum(key: bytes, data: bytes, version: int) -> int:
    return zlib.crc32(data, zlib.crc32(b"%d:%b" % (version, key)))


def _has_tables(db: sqlite3.Connection) -> bool:
    return bool(db.execute("PRAGMA user_version").fetchone()[0])
