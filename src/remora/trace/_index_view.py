"""The index together with what it lacks yet, as one.

A view asks two databases of the same form: the index as it stands, and one in memory with the rows of whatever the
streams hold beyond it. So an answer is complete also while another process is still indexing. What it gives out was
read back from the stream, and still was what the row says; a stream where it was not is noted in `stale`.
"""

from __future__ import annotations

import heapq
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from remora.errors import TraceError
from remora.events import from_record
from remora.trace._index_fill import Indexed, known_streams, line_at
from remora.trace._index_rows import Owner, Row, Texts, row_of
from remora.trace._index_schema import SHIFT
from remora.trace._parse import parse
from remora.trace._search import Condition, Filter, Found, event_condition, stream_condition

_SEQ = (1 << SHIFT) - 1
_COLUMNS = (
    "s.stream_id, e.id, e.offset, e.length, e.ts, e.type, e.turn, e.tool, e.outcome, "
    "o.run_id, o.agent_id, o.operation, o.node_id, s.place"
)
_JOINS = f"events e JOIN owners o ON o.id = e.owner JOIN streams s ON s.id = e.id >> {SHIFT}"


@dataclass(frozen=True)
class Source:
    """One database of a view."""

    db: sqlite3.Connection
    replaced: frozenset[int] = frozenset()
    """Numbers of streams whose events are not believed here."""
    outdated: frozenset[int] = frozenset()
    """Numbers of streams that another source knows more of."""


class Located(NamedTuple):
    """An event's row, and which source has it."""

    stream_id: str
    number: int
    row: Row
    source: Source
    place: str
    """What its stream sorts by."""


class View:
    """Answers from several sources, each event read back from its stream. Closes the files it opened."""

    def __init__(self, state_dir: Path, sources: list[Source]) -> None:
        self._state_dir = state_dir
        self._sources = sources
        self._handles: dict[str, int] = {}
        self.stale: set[str] = set()
        """Streams that hold something else than the index says."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def events(self, wanted: Filter) -> Iterator[Located]:
        """Rows of the wanted events, by stream and `seq`."""
        condition = event_condition(wanted)
        sql = f"SELECT {_COLUMNS} FROM {_JOINS} WHERE {condition.sql} ORDER BY s.stream_id, e.id"  # noqa: S608
        return self._merged(sql, condition.values, newest_first=False)

    def turns(self, wanted: Filter) -> Iterator[Located]:
        """The row of the first tool event of each wanted turn, by stream and `seq`."""
        condition = event_condition(wanted)
        sql = (
            f"SELECT {_COLUMNS}, min(e.id) FROM {_JOINS} WHERE {condition.sql} "  # noqa: S608 (values are bound)
            "AND e.type IN ('tool_call', 'tool_result') AND e.turn IS NOT NULL GROUP BY e.owner, e.turn "
            "ORDER BY s.stream_id, e.id"
        )
        return self._merged(sql, condition.values, newest_first=False)

    def matches(self, query: str, wanted: Filter) -> Iterator[Located]:
        """Rows of the wanted events whose text fits `query`: the newest stream first, and of each the newest event."""
        condition = event_condition(wanted)
        sql = (
            f"SELECT {_COLUMNS} FROM texts JOIN {_JOINS.replace('events e', 'events e ON e.id = texts.rowid', 1)} "  # noqa: S608
            f"WHERE texts MATCH ? AND {condition.sql} ORDER BY s.place DESC, s.stream_id DESC, e.id DESC"
        )
        return self._merged(sql, (query, *condition.values), newest_first=True)

    def streams(self, wanted: Filter) -> list[Indexed]:
        """The wanted streams as they were recorded; with `tool`, `type` or `turn`, those that hold such an event."""
        condition = stream_condition(wanted)
        holding = self._holding(Filter(tool=wanted.tool, type=wanted.type, turn=wanted.turn))
        found = [row for source in self._sources for row in self._stream_rows(source, condition)]
        kept = (row for row in found if holding is None or row.stream_id in holding)
        return sorted(kept, key=lambda row: (row.place, row.stream_id))

    def read(self, at: Located, texts: Texts | None = None) -> tuple[Found, str] | None:
        """The event and (with `texts`) its text; None, and its stream is stale, if the stream holds no such event."""
        parsed = self._parsed(at)
        text = texts.of(parsed) if parsed and texts else ""
        if parsed is None or (texts is not None and text != _body(at)):
            self.stale.add(at.stream_id)
            return None
        try:
            return Found(at.stream_id, from_record(parsed)), text
        except TraceError:
            return None  # a foreign envelope: no reader gives such an event out

    def _parsed(self, at: Located) -> dict[str, Any] | None:
        """The line as it is in the stream, if it still gives the row."""
        try:
            parsed = parse(self._line(at)).fields or {}
        except (TraceError, OSError):
            return None
        return parsed if row_of(at.row.offset, at.row.length, parsed) == at.row else None

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
                row = Row._make((number & _SEQ, *rest[:7], Owner._make(rest[7:11])))
                yield Located(stream_id, number, row, source, rest[11])

    def _holding(self, wanted: Filter) -> set[str] | None:
        return {at.stream_id for at in self.events(wanted)} if wanted != Filter() else None

    def _stream_rows(self, source: Source, condition: Condition) -> list[Indexed]:
        found = known_streams(source.db, f"s WHERE {condition.sql}", condition.values)
        return [row for row in found.values() if row.id not in source.outdated]


def _by_place(at: Located) -> tuple[str, int]:
    return at.stream_id, at.row.seq


def _by_recording(at: Located) -> tuple[str, str, int]:
    return at.place, at.stream_id, at.row.seq


def _body(at: Located) -> str:
    found = at.source.db.execute("SELECT body FROM texts WHERE rowid = ?", (at.number,)).fetchone()
    return str(found[0]) if found else ""
