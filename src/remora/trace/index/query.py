"""Queries: filters, words to search for, and the view that answers them.

Values are bound and words are quoted: no input becomes part of an SQL statement or of the search syntax.

A `View` queries two databases with the same tables: the index, and one in memory with the rows that the index lacks. So
answers are complete while another process is still indexing. Every event is read back from its stream and compared with
its row; streams where they differ are collected in `stale`.
"""

from __future__ import annotations

import heapq
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from remora import events
from remora.context.text import one_line
from remora.errors import ConfigError, TraceError
from remora.events import timestamp
from remora.trace.files.lines import StreamKind, parse
from remora.trace.index.database import SHIFT
from remora.trace.index.fill import EventRow, Owner, StreamRow, Texts, event_row, known_streams, line_at

if TYPE_CHECKING:
    from remora.events import Event

MAX_QUERY = 1000
_EXCERPT = 160
_INT_MAX = 2**63 - 1


@dataclass(frozen=True)
class Filter:
    """Selects events or streams. None matches anything."""

    run: str | None = None
    node: str | None = None
    operation: str | None = None
    tool: str | None = None
    outcome: str | None = None
    """Of the event; when streams are selected, of the stream."""
    since: str | datetime | None = None
    """From this moment on. ISO 8601; UTC if it has no time zone."""
    until: str | datetime | None = None
    """Before this moment."""
    type: str | None = None
    turn: int | None = None


@dataclass(frozen=True)
class Condition:
    """A condition of a `WHERE` clause, and its bound values."""

    sql: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Found:
    """An event, read from its stream."""

    stream_id: str
    event: Event


@dataclass(frozen=True)
class Hit:
    """An event that contains the words."""

    stream_id: str
    event: Event
    key: str
    """The trace key of its turn."""
    excerpt: str
    """One line of text around the first word."""


def event_condition(wanted: Filter) -> Condition:
    """The condition for events `e` with their owners `o`. Raises `ConfigError`."""
    return _all(
        ("o.run_id = ?", wanted.run),
        ("o.node_id = ?", wanted.node),
        ("o.operation = ?", wanted.operation),
        ("e.tool = ?", wanted.tool),
        ("e.outcome = ?", wanted.outcome),
        ("e.ts >= ?", _moment(wanted.since)),
        ("e.ts < ?", _moment(wanted.until)),
        ("e.type = ?", wanted.type),
        ("e.turn = ?", _turn(wanted.turn)),
    )


def stream_condition(wanted: Filter) -> Condition:
    """The condition for streams `s`, without `tool`, `type` and `turn`, which streams lack. Raises `ConfigError`."""
    return _all(
        ("s.run_id = ?", wanted.run),
        ("s.node_id = ?", wanted.node),
        ("s.operation = ?", wanted.operation),
        ("s.outcome = ?", wanted.outcome),
        ("s.started >= ?", _moment(wanted.since)),
        ("s.started < ?", _moment(wanted.until)),
    )


def match_query(text: str) -> str:
    """The FTS5 query for events that contain every word of `text`. Raises `ConfigError` if it has none."""
    words = _words(text)
    if not words:
        raise ConfigError(
            "Nothing to search for: expected a word of letters or digits", hint="Give a word, or use filters alone"
        )
    return " ".join(f'"{word}"' for word in words)


Clean = Callable[[str], str]
"""Returns a text as it is shown."""


def excerpt(body: str, text: str) -> str:
    """One line of `body` around the first word of `text` in it."""
    lower = body.lower()
    places = [lower.find(part) for word in _words(text) for part in re.findall(r"\w+", word.lower())]
    first = min((place for place in places if place >= 0), default=0)
    start = max(first - _EXCERPT // 3, 0)
    return ("…" if start else "") + one_line(body[start : start + 2 * _EXCERPT], _EXCERPT)


def _words(text: str) -> list[str]:
    """The words, without characters that would end a quoted word or that SQLite cannot store."""
    plain = text[:MAX_QUERY].encode("utf-8", "replace").decode().replace("\0", " ").replace('"', " ")
    return [word for word in plain.split() if any(letter.isalnum() for letter in word)]


def _all(*parts: tuple[str, str | int | None]) -> Condition:
    given = [(sql, value) for sql, value in parts if value is not None]
    return Condition(" AND ".join(sql for sql, _ in given) or "1", tuple(_bindable(value) for _, value in given))


def _bindable(value: str | int) -> str | int | bytes:
    """`value` as SQLite can store it. Lone surrogates are in no stream: such text becomes bytes, which never match."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def _turn(turn: int | None) -> int | None:
    if turn is not None and not 0 <= turn <= _INT_MAX:
        raise ConfigError(f"Turn {turn} does not exist: expected 0 or more")
    return turn


def _moment(value: str | datetime | None) -> str | None:
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{str(value)[:80]!r} is not a time: expected ISO 8601, such as `2026-11-15` or `2026-11-15T18:20:45Z`"
        ) from error


_SEQ = (1 << SHIFT) - 1
_COLUMNS = (
    "s.stream_id, e.id, e.offset, e.length, e.ts, e.type, e.turn, e.tool, e.outcome, "
    "o.run_id, o.agent_id, o.operation, o.node_id, s.sort_key"
)
_JOINS = f"events e JOIN owners o ON o.id = e.owner JOIN streams s ON s.id = e.id >> {SHIFT}"


@dataclass(frozen=True)
class Source:
    """One database of a view."""

    db: sqlite3.Connection
    replaced: frozenset[int] = frozenset()
    """Numbers of streams whose events are ignored here."""
    outdated: frozenset[int] = frozenset()
    """Numbers of streams that another source has more of."""


class Located(NamedTuple):
    """An event's row, and the source that has it."""

    stream_id: str
    number: int
    row: EventRow
    source: Source
    sort_key: str
    """What its stream is sorted by."""


class View:
    """Answers from several databases. Reads each event back from its stream, and closes the files that it opened."""

    def __init__(self, state_dir: Path, sources: list[Source]) -> None:
        self._state_dir = state_dir
        self._sources = sources
        self._handles: dict[str, int] = {}
        self.stale: set[str] = set()
        """Streams that differ from the index."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def events(self, wanted: Filter) -> Iterator[Located]:
        """Rows of the matching events, by stream and `seq`."""
        condition = event_condition(wanted)
        sql = f"SELECT {_COLUMNS} FROM {_JOINS} WHERE {condition.sql} ORDER BY s.stream_id, e.id"  # noqa: S608
        return self._merged(sql, condition.values, newest_first=False)

    def turns(self, wanted: Filter) -> Iterator[Located]:
        """The row of the first tool event of each matching turn, by stream and `seq`."""
        condition = event_condition(wanted)
        sql = (
            f"SELECT {_COLUMNS}, min(e.id) FROM {_JOINS} WHERE {condition.sql} "  # noqa: S608 (values are bound)
            "AND e.type IN ('tool_call', 'tool_result') AND e.turn IS NOT NULL GROUP BY e.owner, e.turn "
            "ORDER BY s.stream_id, e.id"
        )
        return self._merged(sql, condition.values, newest_first=False)

    def matches(self, query: str, wanted: Filter) -> Iterator[Located]:
        """Rows of the matching events whose text matches `query`: newest stream first, newest event first."""
        condition = event_condition(wanted)
        sql = (
            f"SELECT {_COLUMNS} FROM texts JOIN {_JOINS.replace('events e', 'events e ON e.id = texts.rowid', 1)} "  # noqa: S608
            f"WHERE texts MATCH ? AND {condition.sql} ORDER BY s.sort_key DESC, s.stream_id DESC, e.id DESC"
        )
        return self._merged(sql, (query, *condition.values), newest_first=True)

    def streams(self, wanted: Filter) -> list[StreamRow]:
        """The matching streams in the order of recording; with `tool`, `type` or `turn`, those with such an event."""
        condition = stream_condition(wanted)
        holding = self._holding(_of_events(wanted))
        found = [row for source in self._sources for row in self._stream_rows(source, condition)]
        kept = (row for row in found if holding is None or row.stream_id in holding)
        return sorted(kept, key=_by_start)

    def newest(self, wanted: Filter, kind: StreamKind, limit: int) -> tuple[list[StreamRow], int]:
        """The newest `limit` matching streams of this kind in the order of recording, and how many match in all."""
        if _of_events(wanted) != Filter() or any(source.outdated for source in self._sources):
            every = [row for row in self.streams(wanted) if row.kind == kind]
            return every[-limit:], len(every)
        condition = stream_condition(wanted)
        where, values = f"s WHERE {condition.sql} AND s.kind = ?", (*condition.values, kind)
        last = f"{where} ORDER BY s.sort_key DESC, s.stream_id DESC LIMIT ?"
        count = f"SELECT count(*) FROM streams {where}"  # noqa: S608 (values are bound)
        found = [row for source in self._sources for row in known_streams(source.db, last, (*values, limit)).values()]
        total = sum(source.db.execute(count, values).fetchone()[0] for source in self._sources)
        return sorted(found, key=_by_start)[-limit:], total

    def read(self, at: Located, texts: Texts | None = None) -> tuple[Found, str] | None:
        """Read the event and (with `texts`) its text. None, and the stream is stale, if it differs."""
        parsed = self._parsed(at)
        text = texts.extract(parsed) if parsed and texts else ""
        if parsed is None or (texts is not None and text != _body(at)):
            self.stale.add(at.stream_id)
            return None
        try:
            return Found(at.stream_id, events.from_record(parsed)), text
        except TraceError:
            return None  # an invalid envelope: no reader yields such an event

    def _parsed(self, at: Located) -> dict[str, Any] | None:
        """Parse the line from the stream, if it still gives the same row."""
        try:
            parsed = parse(self._line(at)).fields or {}
        except (TraceError, OSError):
            return None
        return parsed if event_row(at.row.offset, at.row.length, parsed) == at.row else None

    def _line(self, at: Located) -> bytes:
        path = self._state_dir / f"{at.stream_id}.jsonl"
        if at.stream_id not in self._handles:
            self._close_some()
            self._handles[at.stream_id] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return line_at(self._handles[at.stream_id], path, at.row.offset, at.row.length)

    def _close_some(self) -> None:
        while len(self._handles) >= 32:  # an answer may span thousands of streams
            os.close(self._handles.pop(next(iter(self._handles))))

    def _merged(self, sql: str, values: tuple[Any, ...], *, newest_first: bool) -> Iterator[Located]:
        rows = [self._located(source, sql, values) for source in self._sources]
        return heapq.merge(*rows, key=_by_recording if newest_first else _by_place, reverse=newest_first)

    def _located(self, source: Source, sql: str, values: tuple[Any, ...]) -> Iterator[Located]:
        for stream_id, number, *rest in source.db.execute(sql, values):
            if number >> SHIFT not in source.replaced:
                row = EventRow._make((number & _SEQ, *rest[:7], Owner._make(rest[7:11])))
                yield Located(stream_id, number, row, source, rest[11])

    def _holding(self, wanted: Filter) -> set[str] | None:
        return {at.stream_id for at in self.events(wanted)} if wanted != Filter() else None

    def _stream_rows(self, source: Source, condition: Condition) -> list[StreamRow]:
        found = known_streams(source.db, f"s WHERE {condition.sql}", condition.values)
        return [row for row in found.values() if row.id not in source.outdated]


def _of_events(wanted: Filter) -> Filter:
    """The part of a filter that streams have no column for."""
    return Filter(tool=wanted.tool, type=wanted.type, turn=wanted.turn)


def _by_start(row: StreamRow) -> tuple[str, str]:
    return row.sort_key, row.stream_id


def _by_place(at: Located) -> tuple[str, int]:
    return at.stream_id, at.row.seq


def _by_recording(at: Located) -> tuple[str, str, int]:
    return at.sort_key, at.stream_id, at.row.seq


def _body(at: Located) -> str:
    found = at.source.db.execute("SELECT body FROM texts WHERE rowid = ?", (at.number,)).fetchone()
    return str(found[0]) if found else ""
