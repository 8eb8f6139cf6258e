"""`Library`: reads all streams of one project."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from remora import events
from remora.errors import TraceDamaged, TraceError, TraceNotFound
from remora.trace.files.blobs import FileBlobs
from remora.trace.files.lines import SEAL, StreamKind, check_stream_id
from remora.trace.files.reader import Position, after, read_events, read_records
from remora.trace.files.skim import pick_events, read_changes
from remora.trace.files.state import find_streams, new_stream_id, resolve
from remora.trace.index.index import StreamInfo, TraceIndex
from remora.trace.index.query import Clean, Filter, Hit
from remora.trace.index.update import Progress as Indexing
from remora.trace.retention.plan import PrunePlan, Retention, plan_prune
from remora.trace.retention.prune import PruneResult, prune
from remora.trace.verification.state import Progress, Verification, Verifier

if TYPE_CHECKING:
    from remora.events import Change, Event

LOOK_AGAIN_S = 0.1
WaitForNews = Callable[[], Awaitable[None]]
"""Waits until a stream may have grown, a second at most."""
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
"""Ids that Remora generates. Workspaces with other names are never deleted."""
_EVERYTHING = Filter()
FOREIGN = "You did not create this state folder here: it is read without its index"


class Intact:
    """Iterates over events up to the first damage. Afterwards `damage` is that damage, or None."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = events
        self.damage: TraceDamaged | None = None

    def __iter__(self) -> Iterator[Event]:
        try:
            yield from self._events
        except TraceDamaged as damage:
            self.damage = damage


class Library:
    """Reads the streams below `state_dir`. A stream is named by the beginning or the end of its id.

    With `own=False` the folder came from somebody else: its index is not used, and nothing in it is deleted.
    """

    def __init__(self, state_dir: Path, *, own: bool = True, progress: Indexing | None = None) -> None:
        self.state_dir = state_dir
        self._own = own
        self._progress = progress
        self._blobs = FileBlobs(state_dir)
        self._workspaces = state_dir / "workspaces"
        self.notices: list[str] = [] if own else [FOREIGN]
        """Messages for the user: a rebuilt index, or a foreign folder."""

    def find(self, fragment: str, kind: StreamKind | None = None) -> Path:
        """The file of the stream that `fragment` names."""
        return resolve(self.state_dir, fragment, kind)

    def file(self, stream_id: str) -> Path:
        """The file of a stream, which may not exist. Raises `TraceError` for an invalid id."""
        check_stream_id(stream_id)
        return self.state_dir / f"{stream_id}.jsonl"

    def files(self, stream_ids: Collection[str]) -> list[Path]:
        """The files of these streams, as far as they exist. Raises `TraceError` for an invalid id."""
        return [path for path in map(self.file, stream_ids) if path.exists()]

    def refresh(self) -> None:
        """Bring local copies of all streams up to date. Files are their own copies."""

    def new_id(self, now: datetime) -> str:
        """A new id that sorts after every stream."""
        return new_stream_id(self.state_dir, now)

    def is_run(self, fragment: str) -> bool:
        """Whether it is a run's stream, not an agent's."""
        return self.find(fragment).parent.name == "runs"

    def events(self, fragment: str) -> Iterator[Event]:
        """The events of one stream. Raises `TraceDamaged` at the first damage, after all intact events."""
        return read_events(self.find(fragment))

    def event(self, fragment: str, seq: int) -> Event:
        """One event of a stream. Raises `TraceNotFound`, or `TraceDamaged` if the stream is damaged before it."""
        path = self.find(fragment)
        for record in read_records(path, quick=True):
            if record.seq == seq:
                return events.decode(record.raw)
        raise TraceNotFound(f"`{path}` has no event with `seq` {seq}")

    def changes(self, fragment: str, to: int | None = None) -> Iterator[Change | Event]:
        """The changes of the packet up to turn `to`, without parsing other events. Fold them with `project`."""
        return read_changes(self.find(fragment), to)

    def intact(self, fragment: str) -> Intact:
        """The events of one stream up to its first damage."""
        return Intact(self.events(fragment))

    def runs(self) -> list[Path]:
        """The files of all runs, oldest first."""
        return find_streams(self.state_dir, "runs")

    def latest_run(self) -> Path | None:
        """The file of the newest run that recorded its start: on a full disk, a run leaves a stream without a line."""
        begun = (path for path in reversed(self.runs()) if any(pick_events(path, ("run_start",))))
        return next(begun, None)

    def run_events(self) -> Iterator[Event]:
        """The events of all runs, each up to its first damage. `verify` reports damage."""
        for path in self.runs():
            try:
                yield from read_events(path, torn_ok=True)
            except TraceError:
                continue

    def picked_events(self, types: Collection[str]) -> Iterator[Event]:
        """Like `run_events`, but only events of these types, and much faster."""
        for path in self.runs():
            yield from pick_events(path, types)

    def agents(self, wanted: Filter = _EVERYTHING) -> list[StreamInfo]:
        """One row for each agent's stream, in the order of recording."""
        wanted = self._named(wanted)
        with self._index() as index:
            return [info for info in index.find_streams_by(wanted) if info.kind == "traces"]

    def newest_agents(self, wanted: Filter = _EVERYTHING, *, limit: int) -> tuple[list[StreamInfo], int]:
        """The newest `limit` rows of `agents`, and how many there are in all. Faster than all of them."""
        wanted = self._named(wanted)
        with self._index() as index:
            return index.newest_streams(wanted, limit=limit)

    def search(self, text: str, wanted: Filter = _EVERYTHING, *, limit: int = 50, clean: Clean = str) -> list[Hit]:
        """The newest events that contain every word of `text`. Excerpts are taken from what `clean` returns."""
        wanted = self._named(wanted)
        with self._index() as index:
            return index.search(text, wanted, limit=limit, clean=clean)

    def verify(
        self, fragment: str | None = None, *, quick: bool = False, progress: Progress | None = None
    ) -> Verification:
        """Check one stream, or all, with every blob that they reference.

        An agent's stream is compared with the head in its run's stream, every stream with `heads.log`. With `quick`,
        blobs are only looked up, not read.
        """
        verifier = Verifier(self.state_dir, quick=quick, progress=progress)
        if fragment:
            return verifier.verify_one(self.find(fragment), self.runs())
        return verifier.verify_all(self.runs(), find_streams(self.state_dir, "traces"))

    async def tail(self, fragment: str, *, follow: bool = False) -> AsyncIterator[Event]:
        """Yield the events of one stream; with `follow`, also new ones, until it is sealed."""
        path, here = await asyncio.to_thread(self.find, fragment), Position()
        async with self.watch(path) as wait_for_news:
            while True:
                for record in read_records(path, start=here, torn_ok=True):
                    here = after(record)
                    yield events.decode(record.raw)
                    if record.type == SEAL:
                        return
                if not follow:
                    return
                await wait_for_news()

    @asynccontextmanager
    async def watch(self, path: Path, *, look_s: float = LOOK_AGAIN_S) -> AsyncIterator[WaitForNews]:
        """A function that waits until the stream in `path` may have grown, a second at most. Files are looked at."""
        yield partial(asyncio.sleep, look_s)

    def plan_prune(self, retention: Retention, now: datetime, *, blobs_only: bool = False) -> PrunePlan:
        """What `retention` would delete. Deletes nothing."""
        return plan_prune(self.state_dir, retention, now, blobs_only=blobs_only)

    def prune(self, plan: PrunePlan) -> PruneResult:
        """Delete what the plan names, and the workspaces of those agents. Raises `TraceError` in a foreign folder."""
        if not self._own:
            raise TraceError(f"Nothing in `{self.state_dir}` was deleted: you did not create this folder")
        from remora.trace.turns.kv import forget_streams  # loads the event classes

        result = prune(plan)
        forget_streams(self.state_dir, self._blobs, result.streams)
        self._delete_workspaces(result.streams)
        return result

    def _delete_workspaces(self, stream_ids: Iterable[str]) -> None:
        """Delete the workspaces of agents whose streams were deleted."""
        if self._workspaces.is_dir() and not self._workspaces.is_symlink():
            for agent_id in filter(_ID.fullmatch, map(_name, stream_ids)):
                shutil.rmtree(self._workspaces / agent_id, ignore_errors=True)

    def _named(self, wanted: Filter) -> Filter:
        """The filter with the full id of its run."""
        if wanted.run is None:
            return wanted
        return replace(wanted, run=self.find(wanted.run, "runs").stem)

    @contextmanager
    def _index(self) -> Iterator[TraceIndex]:
        with TraceIndex(self.state_dir, trusted=self._own, progress=self._progress) as index:
            yield index
            self.notices += index.notices


def _name(stream_id: str) -> str:
    return PurePosixPath(stream_id).name
