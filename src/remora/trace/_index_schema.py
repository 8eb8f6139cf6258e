"""The tables of `index.db`.

An event's id is its stream's number shifted by 32 bits, plus its `seq`: the events of a stream are one range, and the
id is also the row of its text.
"""

from __future__ import annotations

import sqlite3

SCHEMA = 3
APPLICATION = 0x52454D4F
SHIFT = 32

_TABLES = """
CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    stream_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    looks TEXT NOT NULL,          -- inode, size and time of the file before it was last read
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
    place TEXT NOT NULL,          -- what it sorts by: its id, or for another name one made of its first event's time
    changes INTEGER NOT NULL      -- how many of its events change files
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
CREATE TABLE checkpoints (
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    projector TEXT NOT NULL,
    packet_json BLOB NOT NULL,
    head TEXT NOT NULL,           -- digest of the line of `seq` and the packet
    PRIMARY KEY (stream, seq, projector)
) WITHOUT ROWID;
CREATE INDEX owners_by_run ON owners (run_id, operation, node_id);
CREATE INDEX owners_by_node ON owners (node_id);
CREATE INDEX owners_by_operation ON owners (operation);
CREATE INDEX streams_by_run ON streams (run_id)
"""

# Made after a bulk load, which is then twice as fast.
_INDEXES = """
CREATE INDEX IF NOT EXISTS events_by_turn ON events (owner, turn);
CREATE INDEX IF NOT EXISTS events_by_tool ON events (tool, outcome) WHERE tool IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_by_time ON events (ts)
"""

_TEXT = "CREATE VIRTUAL TABLE texts USING fts5 (body)"


def create(db: sqlite3.Connection, *, text: bool) -> None:
    """The empty tables are there, all or none of them."""
    db.execute("BEGIN IMMEDIATE")
    run(db, _TABLES)
    if text:
        db.execute(_TEXT)
    db.execute(f"PRAGMA application_id={APPLICATION}")
    db.execute(f"PRAGMA user_version={SCHEMA}")
    db.execute("COMMIT")


def create_indexes(db: sqlite3.Connection) -> None:
    """Events are found fast."""
    run(db, _INDEXES)


def run(db: sqlite3.Connection, script: str) -> None:
    """Each statement of `script` was executed, within whatever transaction there is."""
    for statement in script.split(";"):
        db.execute(statement)


def has_text(db: sqlite3.Connection) -> bool:
    """Whether texts are kept, and can be searched here."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone() is not None


def forget_deleted(db: sqlite3.Connection) -> None:
    """Words of deleted rows do not stay in the file: FTS5 else keeps them until it happens to merge its parts."""
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
