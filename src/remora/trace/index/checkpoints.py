"""Packets kept in the index, so that a long stream need not be folded from its beginning.

A checkpoint holds one digest over the line it stands after and over its own bytes. That line's `prev` vouches for all
lines before it: where the digest still fits, so does the packet.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from remora.errors import TraceError
from remora.events import digest
from remora.trace.files.reader import Position
from remora.trace.index.database import SHIFT
from remora.trace.index.fill import read_at

_PLACE = f"JOIN streams s ON s.id = e.id >> {SHIFT} WHERE s.stream_id = ?"


@dataclass(frozen=True)
class Checkpoint:
    """A packet as it stood after `seq`."""

    seq: int
    packet_json: bytes
    line: bytes
    """The line of `seq`, without its newline."""
    behind: Position
    """The place after that line."""


def save(db: sqlite3.Connection, state_dir: Path, stream_id: str, projector: str, seq: int, packet_json: bytes) -> bool:
    """Whether the packet after `seq` is kept; it is not where the index knows no such event."""
    found = db.execute(
        f"SELECT s.id, e.offset, e.length FROM events e {_PLACE} AND e.id = s.id << {SHIFT} | ?",  # noqa: S608
        (stream_id, seq),
    ).fetchone()
    line = _line_at(state_dir / f"{stream_id}.jsonl", found[1], found[2]) if found else None
    if line is None:
        return False
    values = (found[0], seq, projector, packet_json, digest(line + packet_json))
    db.execute("REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?)", values)
    return True


def load(
    db: sqlite3.Connection, state_dir: Path, stream_id: str, projector: str, turn: int | None
) -> Checkpoint | None:
    """The last checkpoint, at `turn` or before it, that is what it was, as is its line."""
    rows = db.execute(
        f"SELECT c.seq, c.packet_json, c.head, e.offset, e.length FROM checkpoints c "  # noqa: S608 (values are bound)
        f"JOIN events e ON e.id = c.stream << {SHIFT} | c.seq {_PLACE} "
        "AND c.projector = ? AND e.turn <= ifnull(?, e.turn) ORDER BY c.seq DESC",
        (stream_id, projector, turn),
    )
    for seq, packet_json, head, offset, length in rows:
        line = _line_at(state_dir / f"{stream_id}.jsonl", offset, length)
        if line is not None and isinstance(packet_json, bytes) and digest(line + packet_json) == head:
            return Checkpoint(seq, packet_json, line, Position(seq + 1, offset + length + 1, digest(line)))
    return None


def _line_at(path: Path, offset: int, length: int) -> bytes | None:
    try:
        return read_at(path, offset, length)
    except TraceError:
        return None
