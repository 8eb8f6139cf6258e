"""Filling the index from streams. Only new bytes are read, and only records that the chain confirms are indexed.

A stream is read again from its beginning if it is not the one that was indexed (shorter, another inode, other bytes at
either end of the indexed part), or if its new part is damaged. So the rows do not depend on when the stream was read.

A row has an event's offset, what it is filtered by, and its searchable text, all derived from the event's line. An
event found through the index is shown only if its line, read back from the stream, gives the same row.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from remora.errors import TraceDamaged, TraceError, TraceNotFound
from remora.events import digest, order_of
from remora.trace.files.blobs import FileBlobs
from remora.trace.files.lines import SEAL, StreamKind
from remora.trace.files.reader import MAX_READ_LINE, Position, Record, read_records
from remora.trace.index.database import SHIFT

MAX_TEXT = 4096
"""Characters of a raw value that are indexed."""

MAX_LABEL = 200
"""Characters of a stream's name and goal in the list of streams."""
_INT_MAX = 2**63 - 1
_WORDS = ("goal", "text", "message", "summary", "reason")
_TEXTUAL = ("utf-8", "json", "exact-json")
_READ_ERRORS = (OSError, EOFError, zlib.error, TraceError)


class Owner(NamedTuple):
    """The run, agent, operation and node of an event."""

    run_id: str
    agent_id: str
    operation: str
    node_id: str


class EventRow(NamedTuple):
    """One event, without its text."""

    seq: int
    offset: int
    length: int
    ts: str
    type: str
    turn: int | None
    tool: str | None
    outcome: str | None
    owner: Owner


def event_row(offset: int, length: int, fields: dict[str, Any]) -> EventRow:
    """The row of a parsed line. Values of the wrong type are ignored."""
    data = fields.get("data")
    data = data if isinstance(data, dict) else {}
    turn = fields.get("turn", 0)
    return EventRow(
        fields["seq"],
        offset,
        length,
        _text(fields.get("ts")) or "",
        fields["type"],
        turn if type(turn) is int and 0 <= turn <= _INT_MAX else None,
        _text(data.get("tool")),
        _text(data.get("outcome")),
        owner_of(fields),
    )


def owner_of(fields: dict[str, Any]) -> Owner:
    """The owner of a parsed line's event."""
    get = fields.get
    return Owner(
        _text(get("run_id")) or "",
        _text(get("agent_id")) or "",
        _text(get("operation")) or "",
        _text(get("node_id")) or "",
    )


class Texts:
    """Extracts searchable text from events, and from the beginning of blobs in `state_dir`."""

    def __init__(self, state_dir: Path) -> None:
        self._blobs = FileBlobs(state_dir)

    def extract(self, fields: dict[str, Any]) -> str:
        """Summaries, errors, goals, messages, and the beginning of the raw value; empty if there are none."""
        data = fields.get("data")
        if not isinstance(data, dict):
            return ""
        found = [data.get(word) for word in _WORDS]
        found.append(_at(data, "result", "summary"))
        found.append(_at(data, "delta", "action", "summary"))
        found.append(_at(data, "delta", "error", "set"))
        found.append(self._raw(data))
        texts = [text[:MAX_TEXT] for text in found if isinstance(text, str) and text]
        return "\n".join(dict.fromkeys(texts)) if texts else ""

    def _raw(self, data: dict[str, Any]) -> str:
        raw = data.get("raw")
        if raw is None:
            reference = data.get("raw_ref")
            return self._blob(reference) if isinstance(reference, dict) else ""
        return raw[:MAX_TEXT] if isinstance(raw, str) else _json_head(raw)

    def _blob(self, reference: dict[str, Any]) -> str:
        """The beginning of the blob; empty if it is missing or damaged."""
        digest = reference.get("blob")
        if not isinstance(digest, str) or reference.get("encoding") not in _TEXTUAL:
            return ""
        try:
            return _head(self._blob_head(digest, MAX_TEXT * 4))
        except _READ_ERRORS:
            return ""

    def _blob_head(self, digest: str, length: int) -> bytes:
        path = self._blobs.path(digest)
        if path is None:
            return b""
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(length)


def _head(data: bytes) -> str:
    return data[: MAX_TEXT * 4].decode("utf-8", "ignore")[:MAX_TEXT]


def _json_head(value: Any) -> str:
    try:
        return _head(orjson.dumps(value))
    except TypeError:  # nested deeper than the encoder allows
        return ""


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= _INT_MAX else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_FLUSH = 20_000
_FLUSH_TEXT = 16 * 1024 * 1024


@dataclass
class StreamRow:
    """A row of `streams`: one stream as far as it is indexed."""

    id: int
    stream_id: str
    kind: StreamKind
    fingerprint: str = ""
    bytes: int = 0
    last_seq: int = -1
    last_offset: int = 0
    last_digest: str = ""
    first_length: int = 0
    first_digest: str = ""
    sealed: int = 0
    outcome: str = ""
    problem: str = ""
    run_id: str = ""
    agent_id: str = ""
    operation: str = ""
    node_id: str = ""
    started: str = ""
    sort_key: str = ""
    changes: int = 0
    name: str = ""
    goal: str = ""
    ended: str = ""
    turns: int = 0
    tokens: int = 0
    model: str = ""
    verdict: str = ""

    def take(self, record: Record, parsed: dict[str, Any], row: EventRow) -> None:
        """Extend the row by one record."""
        if record.seq == 0:
            self.first_length, self.first_digest, self.started = len(record.raw), record.digest, row.ts
            self.run_id, self.agent_id, self.operation, self.node_id = owner_of(parsed)
            self.sort_key = order_of(self.stream_id.partition("/")[2], row.ts)
            self._describe(parsed.get("data"))
        self.last_seq, self.last_offset, self.last_digest = record.seq, record.offset, record.digest
        self.bytes = record.offset + len(record.raw) + 1
        self.sealed = int(record.type == SEAL)
        data = parsed.get("data")
        self.changes += isinstance(data, dict) and bool(data.get("files"))
        self.ended, self.turns = row.ts, max(self.turns, row.turn or 0)
        if record.type == "model_request" and isinstance(data, dict):
            self.tokens = min(self.tokens + _count(_at(data, "tokens", "total")), _INT_MAX)
        if record.type in (SEAL, "run_end"):
            self.outcome = row.outcome or "success"
            self.verdict = (_text(_at(data, "verdict")) or "")[:MAX_LABEL]

    def _describe(self, data: Any) -> None:
        """Take the stream's name and goal from its first record."""
        if isinstance(data, dict):
            self.name = (_text(data.get("name")) or _text(_at(data, "parent", "title")) or "")[:MAX_LABEL]
            self.goal = (_text(data.get("goal")) or "")[:MAX_LABEL]
            named = _text(_at(data, "model", "model")) or _text(_at(data, "model", "policy"))
            self.model = (named or _text(data.get("policy")) or "")[:MAX_LABEL]


_COLUMNS = tuple(field.name for field in fields(StreamRow))
_values = attrgetter(*_COLUMNS)
_SELECT_OWNER = (
    "SELECT id FROM owners WHERE stream = ? AND run_id = ? AND agent_id = ? AND operation = ? AND node_id = ?"
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM streams"  # noqa: S608 (our own names)
_REPLACE = f"REPLACE INTO streams ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608


def known_streams(db: sqlite3.Connection, where: str = "", parameters: tuple[Any, ...] = ()) -> dict[str, StreamRow]:
    """All stream rows, by stream id."""
    return {row[1]: StreamRow(*row) for row in db.execute(f"{_SELECT} {where}", parameters)}


def fingerprint_of(path: Path | os.DirEntry[str]) -> str:
    """Inode, size and time of a file; empty if there is none. Equal ones mean that nothing is new."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}" if stat.S_ISREG(found.st_mode) else ""


class Filler:
    """Inserts the rows of streams into one database, within the caller's transaction."""

    def __init__(self, db: sqlite3.Connection, *, text: Callable[[dict[str, Any]], str] | None) -> None:
        self._db = db
        self._text = text
        self._next_stream = _highest(db, "streams") + 1
        self._next_owner = _highest(db, "owners") + 1
        self._owners: dict[Owner, int] = {}
        self._is_new = True
        """Whether the database has no rows of the current stream."""
        self._new_owners: list[tuple[Any, ...]] = []
        self._streams: list[tuple[Any, ...]] = []
        self._rows: list[tuple[Any, ...]] = []
        self._texts: list[tuple[int, str]] = []
        self._text_size = 0
        self.events = 0
        """Number of events that were inserted."""

    def fill(self, path: Path, stream_id: str, known: StreamRow | None, *, trust: bool = True) -> bool:
        """Insert the rows of all intact records. True if the `known` rows had to be replaced."""
        fingerprint = fingerprint_of(path)
        if known is not None and trust and _continues(path, fingerprint, known):
            try:
                self._load(path, replace(known, fingerprint=fingerprint))
            except TraceError:
                pass  # read from the beginning: an earlier record may be damaged
            else:
                return False
        if known is not None:
            self.drop(known.id)
        number, self._next_stream = self._next_stream, self._next_stream + 1
        kind, _, name = stream_id.partition("/")
        fresh = StreamRow(
            number, stream_id, "runs" if kind == "runs" else "traces", fingerprint=fingerprint, sort_key=order_of(name)
        )
        try:
            self._load(path, fresh)
        except TraceError as error:
            fresh.problem = error.problem if isinstance(error, TraceDamaged) else error.message
            self._save(fresh)
        return known is not None

    def adopt(self, known: StreamRow) -> StreamRow:
        """A copy of a row of another database, with a number of this one."""
        number, self._next_stream = self._next_stream, self._next_stream + 1
        return replace(known, id=number)

    def drop(self, number: int) -> None:
        """Delete all rows of the stream."""
        self.flush()
        span = (number << SHIFT, (number + 1) << SHIFT)
        self._db.execute("DELETE FROM events WHERE id >= ? AND id < ?", span)
        if self._text is not None:
            self._db.execute("DELETE FROM texts WHERE rowid >= ? AND rowid < ?", span)
        self._db.execute("DELETE FROM owners WHERE stream = ?", (number,))
        self._db.execute("DELETE FROM streams WHERE id = ?", (number,))

    def flush(self) -> None:
        """Write everything buffered to the database."""
        self._db.executemany(_REPLACE, self._streams)
        self._db.executemany("INSERT INTO owners VALUES (?, ?, ?, ?, ?, ?)", self._new_owners)
        self._db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self._rows)
        if self._texts:
            self._db.executemany("INSERT INTO texts (rowid, body) VALUES (?, ?)", self._texts)
        for filled in (self._streams, self._new_owners, self._rows, self._texts):
            filled.clear()
        self._text_size = 0

    def _load(self, path: Path, stream: StreamRow) -> None:
        self._owners, self._is_new = {}, not stream.bytes
        start = Position(stream.last_seq + 1, stream.bytes, stream.last_digest or None)
        try:
            for record in read_records(path, start=start, torn_ok=True):
                self._take(stream, record, record.fields or {})
        except TraceNotFound:
            pass  # deleted meanwhile: the next update removes it
        self._save(stream)

    def _take(self, stream: StreamRow, record: Record, parsed: dict[str, Any]) -> None:
        row = event_row(record.offset, len(record.raw), parsed)
        number = stream.id << SHIFT | row.seq
        owner = self._owners.get(row.owner) or self._owner(stream.id, row.owner)
        self._rows.append((number, owner, row.turn, row.offset, row.length, row.ts, row.type, row.tool, row.outcome))
        text = self._text(parsed) if self._text is not None else ""
        if text:
            self._texts.append((number, text))
            self._text_size += len(text)
        stream.take(record, parsed, row)
        self.events += 1
        if len(self._rows) >= _FLUSH or self._text_size >= _FLUSH_TEXT:
            self.flush()

    def _owner(self, stream: int, owner: Owner) -> int:
        found = None if self._is_new else self._db.execute(_SELECT_OWNER, (stream, *owner)).fetchone()
        if found is None:
            self._new_owners.append((self._next_owner, stream, *owner))
            found, self._next_owner = (self._next_owner,), self._next_owner + 1
        self._owners[owner] = found[0]
        return int(found[0])

    def _save(self, stream: StreamRow) -> None:
        self._streams.append(_values(stream))


def _continues(path: Path, fingerprint: str, known: StreamRow) -> bool:
    """Whether the file still begins with the indexed part. False for a sealed stream, which nothing may follow."""
    if fingerprint.split(":")[0] != known.fingerprint.split(":")[0] or known.sealed or not known.bytes or known.problem:
        return False
    first = (0, known.first_length, known.first_digest)
    last = (known.last_offset, known.bytes - known.last_offset - 1, known.last_digest)
    try:
        return all(digest(read_at(path, offset, length)) == expected for offset, length, expected in (first, last))
    except TraceError:
        return False


def read_at(path: Path, offset: int, length: int) -> bytes:
    """Read the line of `length` bytes at `offset`. Raises `TraceError` unless there is exactly such a line."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise TraceError(f"`{path}` cannot be read: {error.strerror}") from error
    try:
        return line_at(handle, path, offset, length)
    finally:
        os.close(handle)


def line_at(handle: int, path: Path, offset: int, length: int) -> bytes:
    """Like `read_at`, from an open file."""
    if not 0 <= length <= MAX_READ_LINE:  # a row of the index may be wrong
        raise TraceError(f"`{path}` can have no line of {length:,} bytes")
    start = max(offset - 1, 0)
    data = os.pread(handle, offset - start + length + 1, start)
    before, line, after = data[: offset - start], data[offset - start : -1], data[-1:]
    if before not in (b"", b"\n") or after != b"\n" or len(line) != length or b"\n" in line:
        raise TraceError(f"`{path}` has no line of {length:,} bytes at byte {offset:,}")
    return line


def _highest(db: sqlite3.Connection, table: str) -> int:
    return int(db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])  # noqa: S608 (our own names)
