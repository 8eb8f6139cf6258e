"""All streams of one project, for those who read them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath

from remora.errors import TraceError
from remora.events import AgentEndEvent, AgentFinishedEvent, Event, decode
from remora.trace._index import StreamInfo, TraceIndex
from remora.trace._prune import PruneResult, prune
from remora.trace._reader import Position, read_events, read_records
from remora.trace._retention import PrunePlan, Retention, plan_prune
from remora.trace._search import Filter, Hit
from remora.trace._state import find_streams, resolve
from remora.trace._verify import StreamReport, verify

LOOK_AGAIN_S = 0.1
_EVERYTHING = Filter()


class Library:
    """Reads the streams below `state_dir`. A stream is named by the beginning or the end of its id."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.notices: list[str] = []
        """What of the index was thrown away and made anew, and why."""

    def find(self, fragment: str) -> Path:
        """The file of the one stream that `fragment` names."""
        return resolve(self.state_dir, fragment)

    def is_run(self, fragment: str) -> bool:
        """Whether the stream is a run's, not an agent's."""
        return self.find(fragment).parent.name == "runs"

    def events(self, fragment: str) -> Iterator[Event]:
        """The events of one stream. Raises `TraceDamaged` after the last one before a damage."""
        return read_events(self.find(fragment))

    def runs(self) -> list[Path]:
        """The files of all runs, oldest first."""
        return find_streams(self.state_dir, "runs")

    def run_events(self) -> Iterator[Event]:
        """The events of all runs, as far as each is intact; `verify` tells of the rest."""
        for path in self.runs():
            try:
                yield from read_events(path, torn_ok=True)
            except TraceError:
                continue

    def agents(self, wanted: Filter = _EVERYTHING) -> list[StreamInfo]:
        """One row an agent's stream, oldest first."""
        with self._index(text=False) as index:
            return [info for info in index.find_streams_by(wanted) if info.kind == "traces"]

    def search(self, text: str, wanted: Filter = _EVERYTHING, *, limit: int = 50) -> list[Hit]:
        """The newest events that hold every word of `text`."""
        with self._index(text=True) as index:
            return index.search(text, wanted, limit=limit)

    def verify(self, fragment: str | None = None) -> list[StreamReport]:
        """What the bytes of one stream, or of all, prove; an agent's is held against the head that its run noted."""
        paths = [self.find(fragment)] if fragment else [*self.runs(), *find_streams(self.state_dir, "traces")]
        finished = (event for event in self.run_events() if isinstance(event, AgentFinishedEvent))
        heads = {event.agent_id: event.head for event in finished if event.head}
        return [verify(path, head=heads.get(path.stem)) for path in paths]

    async def tail(self, fragment: str, *, follow: bool = False) -> AsyncIterator[Event]:
        """The events of one stream; with `follow`, also those still to come, until it is sealed."""
        path, here = self.find(fragment), Position()
        while True:
            for record in read_records(path, start=here, torn_ok=True):
                here = Position(record.line, record.offset + len(record.raw) + 1, record.digest)
                event = decode(record.raw)
                yield event
                if isinstance(event, AgentEndEvent):
                    return
            if not follow:
                return
            await asyncio.sleep(LOOK_AGAIN_S)

    def plan_prune(self, retention: Retention, now: datetime, *, blobs_only: bool = False) -> PrunePlan:
        """What `retention` lets go of; nothing is touched."""
        return plan_prune(self.state_dir, retention, now, blobs_only=blobs_only)

    def prune(self, plan: PrunePlan) -> PruneResult:
        """What the plan names is gone, with the workspaces of those agents."""
        result = prune(plan)
        for stream_id in result.streams:
            shutil.rmtree(self.state_dir / "workspaces" / PurePosixPath(stream_id).name, ignore_errors=True)
        return result

    @contextmanager
    def _index(self, *, text: bool) -> Iterator[TraceIndex]:
        with TraceIndex(self.state_dir, text=text) as index:
            yield index
            self.notices += index.notices
