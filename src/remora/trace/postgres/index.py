"""Finds streams and events of a Postgres store by SQL. Answers the same questions as `TraceIndex`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from remora import events
from remora.errors import TraceError
from remora.trace.files.lines import StreamKind, parse
from remora.trace.index.fill import Texts
from remora.trace.index.index import StreamInfo
from remora.trace.index.query import (
    Clean,
    Condition,
    Filter,
    Hit,
    event_condition,
    excerpt,
    match_query,
    stream_condition,
)
from remora.trace.turns.keys import trace_key

if TYPE_CHECKING:
    from remora.trace.index.update import Progress
    from remora.trace.postgres.blobs import PostgresBlobs
    from remora.trace.postgres.mirror import StoreReader

AT_ONCE = 2_000
"""Records that one statement indexes."""
_COLUMNS = (
    "t.stream_id, s.run_id, s.agent_id, s.operation, s.node_id, s.started, t.records, t.bytes, t.sealed, s.outcome, "
    "s.changes, s.name, s.goal, s.ended, s.turns, s.tokens, s.model, s.verdict"
)
_FROM = "@.index_streams s JOIN @.streams t ON t.id = s.stream"
_ORDER = 's.sort_key, t.stream_id COLLATE "C"'
_LAST = 's.sort_key DESC, t.stream_id COLLATE "C" DESC'
READ_ONLY = "25006"
OWNER_ONLY = "Only the store's owner may: connect as that role"


class StoreIndex:
    """The index of one store. Every question first brings it up to date."""

    def __init__(self, reader: StoreReader, blobs: PostgresBlobs, progress: Progress | None = None) -> None:
        self._reader = reader
        self._texts = StoredTexts(blobs)
        self._progress = progress
        self.notices: list[str] = []

    def catch_up(self) -> int:
        """Index all new records. Returns how many there were."""
        total = self._reader.ask(
            "SELECT coalesce(sum(t.records - coalesce(i.records, 0)), 0)::bigint FROM @.streams t "
            "LEFT JOIN @.index_streams i ON i.stream = t.id WHERE t.records > coalesce(i.records, 0)"
        )[0][0]
        done = 0
        try:
            while done < total and (added := self._reader.ask("SELECT @.update_index(%s)", [AT_ONCE])[0][0]):
                done += added
                if self._progress is not None:
                    self._progress(min(done, total), total)
        except TraceError as error:
            if getattr(error.__cause__, "sqlstate", "") != READ_ONLY:
                raise
            self.notices.append(f"This server is read-only: {total:,} events are not indexed yet")
        return done

    def rebuild(self) -> int:
        """Build the index from the records again. Only the store's owner may."""
        self._reader.ask("SELECT @.forget_index()", hint=OWNER_ONLY)
        return self.catch_up()

    def streams(self, wanted: Filter, kind: StreamKind) -> list[StreamInfo]:
        """The matching streams, in the order of recording; with `tool`, `type` or `turn`, those with such an event."""
        where, values = self._streams_where(wanted, kind)
        return [
            _info(row) for row in self._ask(f"SELECT {_COLUMNS} FROM {_FROM} WHERE {where} ORDER BY {_ORDER}", values)
        ]

    def newest(self, wanted: Filter, kind: StreamKind, limit: int) -> tuple[list[StreamInfo], int]:
        """The newest `limit` matching streams, in the order of recording, and how many match in all."""
        where, values = self._streams_where(wanted, kind)
        rows = self._ask(f"SELECT {_COLUMNS} FROM {_FROM} WHERE {where} ORDER BY {_LAST} LIMIT %s", [*values, limit])
        counted = self._ask(f"SELECT count(*) FROM {_FROM} WHERE {where}", values)
        return [_info(row) for row in reversed(rows)], counted[0][0] if counted else 0

    def search(self, text: str, wanted: Filter, limit: int, clean: Clean = str) -> list[Hit]:
        """The newest matching events that contain every word of `text`, newest stream first."""
        words = re.findall(r'"([^"]+)"', match_query(text))
        condition = _adapted(event_condition(wanted), "o.", "e.")
        matches = " AND ".join(["e.words @@ phraseto_tsquery('simple', @.divided(%s))"] * len(words))
        rows = self._ask(
            f"SELECT t.stream_id, r.line FROM @.index_events e JOIN {_FROM} ON t.id = e.stream "
            f"JOIN @.records r ON r.stream = e.stream AND r.seq = e.seq WHERE {matches} AND {condition.sql} "
            f"ORDER BY {_LAST}, e.seq DESC LIMIT %s",
            [*words, *condition.values, limit],
        )
        return [hit for stream_id, line in rows if (hit := self._hit(stream_id, line, text, clean)) is not None]

    def _hit(self, stream_id: str, line: bytes, text: str, clean: Clean) -> Hit | None:
        try:
            fields = parse(line).fields or {}
            event = events.from_record(fields)
        except TraceError:
            return None  # no reader yields such an event
        key = trace_key(event.run_id, event.operation, event.node_id, event.turn)
        return Hit(stream_id, event, key, excerpt(clean(self._texts.extract(fields)), text))

    def _streams_where(self, wanted: Filter, kind: StreamKind) -> tuple[str, list[Any]]:
        condition = _adapted(stream_condition(wanted), "", "")
        where, values = f"t.stream_id LIKE %s AND {condition.sql}", [f"{kind}/%", *condition.values]
        of_events = Filter(tool=wanted.tool, type=wanted.type, turn=wanted.turn)
        if of_events != Filter():
            inner = _adapted(event_condition(of_events), "o.", "e.")
            where += f" AND EXISTS (SELECT FROM @.index_events e WHERE e.stream = t.id AND {inner.sql})"
            values += inner.values
        return where, values

    def _ask(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if any(isinstance(value, bytes) or (isinstance(value, str) and "\0" in value) for value in values):
            return []  # lone surrogates and NUL are in no text that Postgres can compare
        self.catch_up()
        return self._reader.ask(sql, values)


class StoredTexts(Texts):
    """Extracts searchable text from events, and from the beginning of blobs in a store."""

    def __init__(self, blobs: PostgresBlobs) -> None:
        self._stored = blobs

    def _blob_head(self, digest: str, length: int) -> bytes:
        return self._stored.head(digest, length)


def _adapted(condition: Condition, alias: str, replacement: str) -> Condition:
    """A condition of the SQLite index for Postgres."""
    sql = condition.sql.replace(alias, replacement) if alias else condition.sql
    return Condition("true" if sql == "1" else sql.replace("?", "%s"), condition.values)


def _info(row: Iterable[Any]) -> StreamInfo:
    stream_id, run_id, agent_id, operation, node_id, started, records, size, sealed, outcome, *labels = row
    changes, name, goal, ended, turns, tokens, model, verdict = labels
    return StreamInfo(
        stream_id=stream_id,
        kind="runs" if stream_id.startswith("runs/") else "traces",
        run_id=run_id,
        agent_id=agent_id,
        operation=operation,
        node_id=node_id,
        started=started,
        events=records,
        bytes=size,
        sealed=sealed,
        outcome=outcome,
        problem="",
        changes=changes,
        name=name,
        goal=goal,
        ended=ended,
        turns=turns,
        tokens=tokens,
        model=model,
        verdict=verdict,
    )
