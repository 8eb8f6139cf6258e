"""Packets kept in the index, so that a long stream need not be folded from its beginning.

A checkpoint holds the digest of the line it stands after. That line's `prev` vouches for all lines before it: where
the digest still fits, so does the packet.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from remora.errors import TraceError
from remora.events import digest
from remora.trace._index_fill import read_at
from remora.trace._index_schema import SHIFT

EVERY = 256
"""How many events apart checkpoints are worth keeping."""

_PLACE = f"JOIN streams s ON s.id = e.id >> {SHIFT} WHERE s.stream_id = ?"


@dataclass(frozen=True)
class Checkpoint:
    """A packet as it stood after `seq`."""

    seq: int
    packet_json: bytes


def save(db: sqlite3.Connection, state_dir: Path, stream_id: str, checkpoint: Checkpoint, projector: str) -> bool:
    """Whether the checkpoint is kept; it is not where the index knows no such event."""
    found = db.execute(
        f"SELECT s.id, e.offset, e.length FROM events e {_PLACE} AND e.id = s.id << {SHIFT} | ?",  # noqa: S608
        (stream_id, checkpoint.seq),
    ).fetchone()
    head = _digest_at(state_dir / f"{stream_id}.jsonl", found[1], found[2]) if found else None
    if head is None:
        return False
    values = (found[0], checkpoint.seq, projector, checkpoint.packet_json, head)
    db.execute("REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?)", values)
    return True


def load(db: sqlite3.Connection, state_dir: Path, stream_id: str, projector: str, at_most: int) -> Checkpoint | None:
    """The last checkpoint, at `at_most` or before it, whose line still is what it was."""
    rows = db.execute(
        f"SELECT c.seq, c.packet_json, c.head, e.offset, e.length FROM checkpoints c "  # noqa: S608 (values are bound)
        f"JOIN events e ON e.id = c.stream << {SHIFT} | c.seq {_PLACE} "
        "AND c.projector = ? AND c.seq <= ? ORDER BY c.seq DESC",
        (stream_id, projector, at_most),
    ).fetchall()
    for seq, packet_json, head, offset, length in rows:
        if _digest_at(state_dir / f"{stream_id}.jsonl", offset, length) == head:
            return Checkpoint(seq, packet_json)
    return None


def _digest_at(path: Path, offset: int, length: int) -> str | None:
    try:
        return digest(read_at(path, offset, length))
    except TraceError:
        return None
