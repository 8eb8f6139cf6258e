"""The database file of the index: tables, locking, and when it must be rebuilt.

{state_dir}/index.db     SQLite, WAL
{state_dir}/index.lock   locked (flock) by the one process that writes; contains the stamp

An event's id is its stream's number shifted by 32 bits, plus its `seq`. So the events of a stream are one range of ids,
and the id is also the rowid of the event's text.

Only the holder of `index.lock` opens the database for writing, and closes it before unlocking. Readers open it
read-only, so SQLite never deletes the WAL when they close. The holder can replace the files while readers have the old
ones open.

The stamp records the size and time of the files after the last write. If they differ, another program changed the
files. SQLite would not notice most such changes, so the index is rebuilt.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from remora.trace.files.disk import FILE_MODE
from remora.trace.files.state import KINDS

SCHEMA = 6
APPLICATION = 0x52454D4F
SHIFT = 32

_TABLES = """
CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    stream_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    fingerprint TEXT NOT NULL,    -- inode, size and time of the file before it was last read
    bytes INTEGER NOT NULL,       -- how far it is indexed
    last_seq INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    last_digest TEXT NOT NULL,
    first_length INTEGER NOT NULL,
    first_digest TEXT NOT NULL,
    sealed INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    problem TEXT NOT NULL,        -- what ends the readable part, if it is damaged
    run_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    node_id TEXT NOT NULL,
    started TEXT NOT NULL,
    sort_key TEXT NOT NULL,       -- what it sorts by: its id, or for another name one made of its first event's time
    changes INTEGER NOT NULL,     -- how many of its events change files
    name TEXT NOT NULL,           -- its name, or the title of the log that it was imported from
    goal TEXT NOT NULL,           -- the beginning of its goal
    ended TEXT NOT NULL,          -- when its last event was recorded
    turns INTEGER NOT NULL,
    tokens INTEGER NOT NULL,      -- of all its prompts
    model TEXT NOT NULL,          -- what decided
    verdict TEXT NOT NULL         -- what its check says about the files
);
CREATE TABLE owners (
    id INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    node_id TEXT NOT NULL,
    UNIQUE (stream, run_id, agent_id, operation, node_id)
);
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    turn INTEGER,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    ts TEXT NOT NULL,
    type TEXT NOT NULL,
    tool TEXT,
    outcome TEXT
);
CREATE INDEX owners_by_run ON owners (run_id, operation, node_id);
CREATE INDEX owners_by_node ON owners (node_id);
CREATE INDEX owners_by_operation ON owners (operation);
CREATE INDEX streams_by_run ON streams (run_id)
"""

# Created after a bulk load, which makes the load twice as fast.
_INDEXES = """
CREATE INDEX IF NOT EXISTS events_by_turn ON events (owner, turn);
CREATE INDEX IF NOT EXISTS events_by_tool ON events (tool, outcome) WHERE tool IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_by_time ON events (ts)
"""

_TEXT = "CREATE VIRTUAL TABLE texts USING fts5 (body)"


def create(db: sqlite3.Connection, *, text: bool) -> None:
    """Create the tables, all or none."""
    db.execute("BEGIN IMMEDIATE")
    run(db, _TABLES)
    if text:
        db.execute(_TEXT)
    db.execute(f"PRAGMA application_id={APPLICATION}")
    db.execute(f"PRAGMA user_version={SCHEMA}")
    db.execute("COMMIT")


def create_indexes(db: sqlite3.Connection) -> None:
    """Create the indexes."""
    run(db, _INDEXES)


def run(db: sqlite3.Connection, script: str) -> None:
    """Execute each statement within the current transaction."""
    for statement in script.split(";"):
        db.execute(statement)


def has_text(db: sqlite3.Connection) -> bool:
    """Whether the database has a table of texts."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone() is not None


def forget_deleted(db: sqlite3.Connection) -> None:
    """Remove the words of deleted rows from the file. FTS5 keeps them until it merges its segments."""
    db.execute("INSERT INTO texts (texts) VALUES ('optimize')")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def can_search() -> bool:
    """Whether this SQLite was built with full-text search."""
    db = sqlite3.connect(":memory:")
    try:
        db.execute(_TEXT)
    except sqlite3.OperationalError:
        return False
    finally:
        db.close()
    return True


BUSY_S = 5.0
_SETTLED_NS = 1_000_000_000
_MAX_STAMP = 4096
# Errors that say nothing about the content: busy, locked, read-only, I/O error, full, cannot open.
_PASSING = frozenset({5, 6, 8, 10, 13, 14})


class IndexFile:
    """The database file of one state directory. With `trusted=False` it is neither read nor written."""

    def __init__(self, state_dir: Path, *, trusted: bool = True) -> None:
        self.path = state_dir / "index.db"
        self._trusted = trusted
        self._state_dir = state_dir
        self._lock_path = state_dir / "index.lock"
        self._handle: int | None = None

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Try to lock the index for writing; yield False at once if another process has it, or it is read-only."""
        handle = self._try_lock()
        self._handle = handle
        try:
            yield handle is not None
        finally:
            self._handle = None
            if handle is not None:
                os.close(handle)

    def _try_lock(self) -> int | None:
        if not self._trusted:
            return None
        try:
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return handle

    def problem(self) -> str | None:
        """Why the index must be rebuilt, or None. Requires the lock."""
        if any(file.is_symlink() for file in self._files()):
            return "it is a link"
        if not self.exists():
            return None
        stamp = self._stamp()
        if not stamp.get("writing") and stamp.get("files") != self._looks():
            return "it was changed by something else"
        try:
            with closing(self.reader()) as db:
                return _content_problem(db, thorough=bool(stamp.get("writing")))
        except sqlite3.DatabaseError as error:
            return None if is_passing(error) else f"it cannot be read ({error})"

    @contextmanager
    def writing(self, *, text: bool) -> Iterator[sqlite3.Connection]:
        """Open a connection for writing and update the stamp afterwards. Requires the lock."""
        self._put_stamp({"writing": True})
        with closing(self._writer(text=text)) as db:
            yield db
        self._put_stamp({"files": self._looks()})

    def reader(self) -> sqlite3.Connection:
        """Open a read-only connection. Raises `sqlite3.DatabaseError`."""
        uri = self.path.absolute().as_uri() + "?mode=ro"
        for _ in range(10):
            before = self.inode()
            db = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                db.execute("PRAGMA user_version").fetchone()
            except BaseException:
                db.close()
                raise
            # Replaced between opening the database and its WAL: they do not belong together.
            if before == self.inode():
                return db
            db.close()
        raise sqlite3.OperationalError("the index is being replaced again and again")

    def discard(self) -> None:
        """Delete the index. Requires the lock."""
        self._put_stamp({})
        for file in self._files():
            file.unlink(missing_ok=True)

    def exists(self) -> bool:
        """Whether the database file exists, whatever it contains."""
        return self.path.is_file()

    def inode(self) -> int:
        """The inode of the file; 0 if there is none, or if it is not trusted."""
        try:
            return self.path.stat().st_ino if self._trusted else 0
        except OSError:
            return 0

    def settle(self, folders: dict[str, int]) -> None:
        """Record the folders' times in the stamp, if they have not changed for a while. Requires the lock."""
        assert self._handle is not None  # noqa: S101 (only within `lock`)
        os.utime(self._handle)
        now = os.fstat(self._handle).st_mtime_ns  # the current time, by the same clock as the folders' times
        settled = {name: at for name, at in folders.items() if now - at > _SETTLED_NS}
        stamp = self._stamp()
        if stamp.get("files") and settled and stamp.get("folders") != settled:
            self._put_stamp({"files": stamp["files"], "folders": settled})

    def is_settled(self) -> bool:
        """Whether the index is unchanged since its last update, and no stream was created or deleted."""
        stamp = self._stamp()
        return (
            stamp.get("folders") == self.folders()
            and stamp.get("files") is not None
            and stamp["files"] == self._looks()
        )

    def folders(self) -> dict[str, int]:
        """Modification times of the stream folders."""
        return {kind: _changed(self._state_dir / kind) for kind in KINDS}

    def _writer(self, *, text: bool) -> sqlite3.Connection:
        with suppress(FileExistsError):
            # SQLite creates its other files with the mode of this one.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE))
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("PRAGMA secure_delete=ON")  # pruned text must not stay in the file
            if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
                create(db, text=text)
        except BaseException:
            db.close()
            raise
        return db

    def _files(self) -> list[Path]:
        return [self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm")]

    def _looks(self) -> list[list[int]]:
        """Size and time of the database and its WAL. An empty WAL counts as none."""
        found = []
        for file in self._files()[:2]:
            try:
                stat = file.stat()
                found.append([stat.st_size, stat.st_mtime_ns] if stat.st_size else [])
            except OSError:
                found.append([])
        return found

    def _stamp(self) -> dict[str, Any]:
        try:
            with self._lock_path.open("rb") as file:
                stamp = orjson.loads(file.read(_MAX_STAMP))
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}

    def _put_stamp(self, stamp: dict[str, Any]) -> None:
        assert self._handle is not None  # noqa: S101 (only within `lock`)
        data = orjson.dumps(stamp)
        os.pwrite(self._handle, data, 0)
        os.ftruncate(self._handle, len(data))


def is_passing(error: sqlite3.Error) -> bool:
    """Whether the error says nothing about the content of the database."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING


def _content_problem(db: sqlite3.Connection, *, thorough: bool) -> str | None:
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        return "it is not an index of Remora"
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA:
        return f"its schema is {version}, and {SCHEMA} is expected"
    # The last writer did not finish, so the stamp does not cover the file.
    if thorough and db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        return "it is damaged"
    return None


def _changed(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0
