"""`TraceIndex`: the disposable view over all streams of a state directory, so that events are found fast.

Every question first brings the index up to date, if no other process is doing so; whatever is still lacking then is
read from the streams. Everything here blocks; one index may be used from several threads.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from remora.errors import ConfigError
from remora.events import digest
from remora.trace._index_file import IndexFile, is_passing
from remora.trace._index_fill import Indexed, known_streams, looks_of
from remora.trace._index_rows import Texts
from remora.trace._index_schema import SHIFT, can_search
from remora.trace._index_update import CatchUp, Progress, Updater
from remora.trace._index_view import Located, Source, View
from remora.trace._keys import TraceKey, trace_key
from remora.trace._lines import StreamKind
from remora.trace._search import Filter, Found, Hit, excerpt, match_query

T = TypeVar("T")

_ATTEMPTS = 3
_EVERYTHING = Filter()


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
    """What ends the readable part of a damaged stream."""


@dataclass(frozen=True)
class Checkpoint:
    """A packet as it stood after `seq`."""

    seq: int
    packet_json: bytes


class TraceIndex:
    """Finds events of `state_dir` by turn, filter or word. With `text=False` it is made faster, and finds no words."""

    def __init__(self, state_dir: Path, *, text: bool = True) -> None:
        self._state_dir = state_dir
        self._file = IndexFile(state_dir)
        self._text = text
        self._texts = Texts(state_dir)
        self._updater = Updater(state_dir, self._file, text=text)
        self._one_at_a_time = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._db_inode = 0
        self._broken: str | None = None
        self.notices: list[str] = []
        """What was thrown away or read again since this was made, and why."""

    def catch_up(self, progress: Progress | None = None) -> CatchUp:
        """The index knows every whole record of every stream, unless another process is just about to see to that."""
        with self._one_at_a_time:
            return self._catch_up(progress)

    def rebuild(self, progress: Progress | None = None) -> CatchUp:
        """The index was made anew from the streams. Raises `TraceLocked` while another process is indexing."""
        with self._one_at_a_time:
            self._broken = None
            return self._updater.rebuild(progress)

    def find_events(self, wanted: Filter = _EVERYTHING, *, limit: int | None = None) -> list[Found]:
        """The wanted events, by stream and `seq`. Raises `ConfigError` for a filter that makes no sense."""
        return self._ask(lambda view: list(islice(_events(view, view.events(wanted)), limit)))

    def find_streams_by(self, wanted: Filter = _EVERYTHING) -> list[StreamInfo]:
        """The wanted streams, oldest id first; with `tool`, those that used it."""
        return self._ask(lambda view: [_info(stream) for stream in view.streams(wanted)])

    def search(self, text: str, wanted: Filter = _EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """The newest wanted events that hold every word of `text`. Raises `ConfigError` if there is no word in it."""
        query = match_query(text)
        if not self._text or not can_search():
            why = "this index was opened without texts" if not self._text else "this SQLite was built without FTS5"
            raise ConfigError(f"Words cannot be searched: {why}", hint="Filters work without it")
        return self._ask(lambda view: list(islice(self._hits(view, query, text, wanted), limit)), text=True)

    def turn(self, key: TraceKey) -> list[Found]:
        """All events of one turn."""
        with self._one_at_a_time:
            wanted = Filter(run=key.run_id, operation=key.operation, node=key.node_id, turn=key.turn)
            return self._quick(wanted) or self.find_events(wanted)

    def turns(self, wanted: Filter = _EVERYTHING) -> list[TraceKey]:
        """The turns in which a tool was called, by stream and turn, each once."""
        return self._ask(lambda view: list(dict.fromkeys(_keys(view, wanted))))

    def save_checkpoint(self, stream_id: str, seq: int, packet_json: bytes, projector: str) -> bool:
        """Whether the packet after `seq` is now kept. It is not while another process is indexing: nothing is lost."""
        with self._one_at_a_time:
            found = self._ask(lambda view: _line(view, stream_id, seq))
            if not found or not self._catch_up().complete:
                return False
            with self._file.lock() as ours:
                return ours and self._put_checkpoint(stream_id, seq, packet_json, projector, digest(found[0]))

    def load_checkpoint(self, stream_id: str, projector: str, *, at_most: int | None = None) -> Checkpoint | None:
        """The last kept packet of the stream (after `at_most` or earlier) whose event still is the one it was."""
        found = self._ask(lambda view: self._checkpoints(view, stream_id, projector, at_most))
        return found[0] if found else None

    def close(self) -> None:
        """No file is held open."""
        with self._one_at_a_time:
            if self._db is not None:
                self._db.close()
                self._db = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
