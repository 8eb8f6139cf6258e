"""`TraceIndex`: finds events and streams of a state directory. Can be deleted and rebuilt at any time.

Each query first updates the index, unless another process is doing so. Whatever is still missing is read from the
streams. All methods block. One index can be used from several threads.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from remora.errors import ConfigError, TraceError
from remora.trace.files.lines import StreamKind
from remora.trace.index.database import SCHEMA, IndexFile, can_search
from remora.trace.index.fill import StreamRow, Texts, fingerprint_of, known_streams
from remora.trace.index.query import Clean, Filter, Found, Hit, Located, Source, View, excerpt, match_query
from remora.trace.index.update import CatchUp, Progress, Tail, Updater
from remora.trace.turns.keys import TraceKey, trace_key

T = TypeVar("T")

_ATTEMPTS = 3
_EVERYTHING = Filter()
_OF_AGENT = "WHERE id IN (SELECT stream FROM owners WHERE run_id = ? AND operation = ? AND node_id = ?)"


@dataclass(frozen=True)
class StreamInfo:
    """One stream, as far as it can be read."""

    stream_id: str
    kind: StreamKind
    run_id: str
    agent_id: str
    operation: str
    node_id: str
    started: str
    events: int
    bytes: int
    sealed: bool
    outcome: str
    """Empty while it has not ended."""
    problem: str
    """The first damage, if any."""
    changes: int = 0
    """Number of its events that change files."""
    name: str = ""
    """The name that the run was given, or the title that its log has."""
    goal: str = ""
    """The beginning of the goal."""
    ended: str = ""
    """When its last event was recorded."""
    turns: int = 0
    tokens: int = 0
    """Of all its prompts, as the receipts count them."""
    model: str = ""
    """What decided: the model's name, or the policy."""
    verdict: str = ""
    """What its check says about the files; empty where it has none."""


class TraceIndex:
    """Finds events of `state_dir` by turn, filter or word. With `text=False`, indexing is faster and words cannot be
    searched.

    With `trusted=False` every answer comes from the streams, because somebody else may have written the index.
    """

    def __init__(
        self, state_dir: Path, *, text: bool = True, trusted: bool = True, progress: Progress | None = None
    ) -> None:
        self._state_dir = state_dir
        self._progress = progress
        self._file = IndexFile(state_dir, trusted=trusted)
        self._text = text
        self._texts = Texts(state_dir)
        self._updater = Updater(state_dir, self._file, text=text)
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._db_inode = 0
        self._broken: str | None = None
        self.notices: list[str] = []
        """Why the index or a stream was read again since this was created."""

    def catch_up(self, progress: Progress | None = None) -> CatchUp:
        """Index all new records of all streams, unless another process is doing so."""
        with self._lock:
            return self._catch_up(progress)

    def rebuild(self, progress: Progress | None = None) -> CatchUp:
        """Rebuild the index from the streams. Raises `TraceLocked` while another process is indexing."""
        with self._lock:
            self._broken = None
            return self._updater.rebuild(progress)

    def read_again(self, stream_ids: Collection[str]) -> CatchUp:
        """Index these streams again from their beginning."""
        with self._lock:
            return self._catch_up(reread=stream_ids)

    def find_events(self, wanted: Filter = _EVERYTHING, *, limit: int | None = None) -> list[Found]:
        """The matching events, by stream and `seq`. Raises `ConfigError` for an invalid filter."""
        return self._ask(lambda view: list(islice(_events(view, view.events(wanted)), limit)))

    def find_streams_by(self, wanted: Filter = _EVERYTHING) -> list[StreamInfo]:
        """The matching streams, in the order of recording; with `tool`, those that used it."""
        return self._ask(lambda view: [_info(stream) for stream in view.streams(wanted)])

    def newest_streams(
        self, wanted: Filter = _EVERYTHING, *, kind: StreamKind = "traces", limit: int
    ) -> tuple[list[StreamInfo], int]:
        """The newest `limit` matching streams, in the order of recording, and how many match in all."""
        rows, total = self._ask(lambda view: view.newest(wanted, kind, limit))
        return [_info(stream) for stream in rows], total

    def search(self, text: str, wanted: Filter = _EVERYTHING, *, limit: int = 50, clean: Clean = str) -> list[Hit]:
        """The newest matching events that contain every word of `text`, newest stream first.

        Raises `ConfigError` if `text` has no word.
        """
        query = match_query(text)
        if not self._text or not can_search():
            why = "this index was opened without texts" if not self._text else "this SQLite was built without FTS5"
            raise ConfigError(f"Full-text search is not available: {why}", hint="Use filters alone")
        return self._ask(lambda view: list(islice(self._hits(view, query, text, wanted, clean), limit)), text=True)

    def turn(self, key: TraceKey) -> list[Found]:
        """All events of one turn."""
        with self._lock:
            wanted = Filter(run=key.run_id, operation=key.operation, node=key.node_id, turn=key.turn)
            return self._quick(wanted) or self.find_events(wanted)

    def turns(self, wanted: Filter = _EVERYTHING) -> list[TraceKey]:
        """The turns in which a tool was called, by stream and turn, each once."""
        return self._ask(lambda view: list(dict.fromkeys(_keys(view, wanted))))

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, question: Callable[[View], T], *, text: bool = False) -> T:
        """Answer from index and streams together. Ask again if the index turns out to be wrong."""
        with self._lock:
            reread: set[str] = set()
            for attempt in range(_ATTEMPTS):
                scanned = self._catch_up(self._progress, reread).scanned
                try:
                    with self._view(scanned, reread, text=text, alone=attempt == _ATTEMPTS - 1) as view:
                        answer = question(view)
                        if not view.stale - reread:
                            break
                        reread |= view.stale
                except sqlite3.DatabaseError as error:
                    if attempt == _ATTEMPTS - 1:
                        raise TraceError(f"The streams cannot be searched: {error}") from error
                    self._broken = f"it cannot be used ({error})"
            return answer

    def _catch_up(self, progress: Progress | None = None, reread: Collection[str] = ()) -> CatchUp:
        done = self._updater.catch_up(progress, reread, self._broken)
        if done.complete:
            self._broken = None
        self.notices.extend(done.notices)
        return done

    @contextmanager
    def _view(
        self, scanned: Mapping[str, str] | None, reread: Collection[str], *, text: bool, alone: bool
    ) -> Iterator[View]:
        """A snapshot of the index and the streams beyond it; with `alone`, only the streams."""
        db = None if alone else self._reader()
        if db is not None:
            db.execute("BEGIN")
        tail: Tail | None = None
        try:
            tail = self._updater.tail(db, scanned, reread, text=text)
            sources = [Source(db, *tail[1:]) if tail else Source(db)] if db else []
            sources += [Source(tail.db)] if tail else []
            with View(self._state_dir, sources) as view:
                yield view
        finally:
            if tail is not None:
                tail.db.close()
            if db is not None and db.in_transaction:
                db.execute("ROLLBACK")

    def _reader(self) -> sqlite3.Connection | None:
        """A connection to the index, or None if there is no usable one. Raises `sqlite3.DatabaseError`."""
        inode = self._file.inode()
        if self._db is not None and inode != self._db_inode:
            self.close()
        if not inode or self._broken:
            return None
        if self._db is None:
            self._db, self._db_inode = self._file.reader(), inode
        return self._db if self._db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA else None

    def _quick(self, wanted: Filter) -> list[Found]:
        """The events of the turn, if the index is provably current without looking at every stream."""
        try:
            db = self._reader() if self._file.is_settled() else None
            if db is None or not self._is_fresh(db, wanted):
                return []
            with View(self._state_dir, [Source(db)]) as view:
                found = list(_events(view, view.events(wanted)))
                return [] if view.stale else found
        except sqlite3.DatabaseError:
            return []

    def _is_fresh(self, db: sqlite3.Connection, wanted: Filter) -> bool:
        """Whether the streams of this agent are unchanged since they were indexed."""
        streams = known_streams(db, _OF_AGENT, (wanted.run, wanted.operation, wanted.node)).values()
        return all(fingerprint_of(self._state_dir / f"{each.stream_id}.jsonl") == each.fingerprint for each in streams)

    def _hits(self, view: View, query: str, text: str, wanted: Filter, clean: Clean) -> Iterator[Hit]:
        for at in view.matches(query, wanted):
            if found := view.read(at, self._texts):
                event = found[0].event
                key = trace_key(event.run_id, event.operation, event.node_id, event.turn)
                yield Hit(at.stream_id, event, key, excerpt(clean(found[1]), text))


def _events(view: View, rows: Iterable[Located]) -> Iterator[Found]:
    return (found[0] for at in rows if (found := view.read(at)))


def _keys(view: View, wanted: Filter) -> Iterator[TraceKey]:
    for at in view.turns(wanted):
        if view.read(at) and at.row.turn is not None:
            yield TraceKey(at.row.owner.run_id, at.row.owner.operation, at.row.owner.node_id, at.row.turn)


def _info(stream: StreamRow) -> StreamInfo:
    return StreamInfo(
        stream_id=stream.stream_id,
        kind=stream.kind,
        run_id=stream.run_id,
        agent_id=stream.agent_id,
        operation=stream.operation,
        node_id=stream.node_id,
        started=stream.started,
        events=stream.last_seq + 1,
        bytes=stream.bytes,
        sealed=bool(stream.sealed),
        outcome=stream.outcome,
        problem=stream.problem,
        changes=stream.changes,
        name=stream.name,
        goal=stream.goal,
        ended=stream.ended,
        turns=stream.turns,
        tokens=stream.tokens,
        model=stream.model,
        verdict=stream.verdict,
    )
