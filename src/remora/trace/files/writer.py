"""`FileTrace`: streams as files. Every acknowledged event is durable.

{state_dir}/.gitignore            `*`
{state_dir}/traces/{id}.jsonl     one agent run
{state_dir}/runs/{id}.jsonl       one `remora analyze`
{state_dir}/traces/{id}.torn      an incomplete tail after a crash, moved here on reopen
{state_dir}/heads.log             the heads of closed streams

`StreamEmitter` emits single events to one stream.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from remora import events
from remora.errors import TraceError, TraceNotFound
from remora.events import digest, timestamp
from remora.trace.files.disk import Disk, Threads
from remora.trace.files.heads import Ledger
from remora.trace.files.lines import check_stream_id
from remora.trace.files.reader import read_events, read_lines
from remora.trace.files.state import Folders
from remora.trace.files.stream import OpenStream, SyncMode

if TYPE_CHECKING:
    from remora.events import Event
    from remora.ports import Clock, Draft

T = TypeVar("T")

_READ_AT_ONCE = 64


class FileTrace:
    """A `TraceWriter` over files below `state_dir`. Creates nothing until the first append."""

    def __init__(self, state_dir: Path, *, clock: Clock, sync: SyncMode = "always", disk: Disk | None = None) -> None:
        self._state_dir = state_dir
        self._clock = clock
        self._sync = sync
        self._disk = disk or Disk()
        self._threads = Threads()
        self._folders = Folders(state_dir, disk=self._disk, sync=sync != "off")
        self._ledger = Ledger(state_dir, disk=self._disk)
        self._streams: dict[str, OpenStream] = {}
        self._closed = False

    async def append(self, stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
        """Record the drafts, durable once this returns. Raises `TraceError`. Cancellation never tears a write."""
        stream, drafts = self._stream(stream_id), tuple(drafts)
        if not drafts:
            return ()
        # Streams of one writer wait for the disk side by side. A single one only loses time by the hand-over.
        if stream.will_sync(drafts) and not (len(self._streams) == 1 and stream.syncs_shortly):
            return await self._alone(stream, stream.append, drafts)
        # Without a sync, the hand-over to a thread takes longer than the write.
        async with stream.turn:
            return stream.append(drafts)

    async def reopen(self, stream_id: str) -> int:
        """Lock the stream and move a torn tail aside; return the last `seq`. Raises `TraceNotFound`."""
        if not self.path(stream_id).exists():
            raise TraceNotFound(f"There is no stream `{stream_id}` in `{self._state_dir}`")
        return await self.claim(stream_id)

    async def claim(self, stream_id: str) -> int:
        """Like `reopen`, also for a stream that has not begun: its last `seq` is -1."""
        stream = self._stream(stream_id)
        await self._alone(stream, stream.open)
        return stream.at.line - 1

    async def read(self, stream_id: str, *, after: int = -1) -> AsyncIterator[Event]:
        """Yield events with `seq > after`, oldest first; of a stream that is open here, only acknowledged ones."""
        stream = self._streams.get(stream_id)
        end = stream.at.offset if stream is not None and stream.known else None
        events = read_events(self.path(stream_id), after, end=end, torn_ok=True)
        damage: TraceError | None = None
        while damage is None:
            batch, damage = await self._threads.run(_take, events)
            for event in batch:
                yield event
            if damage is None and len(batch) < _READ_AT_ONCE:
                return
        raise damage

    async def head(self, stream_id: str) -> str:
        """The digest of the stream's last acknowledged line. Raises `TraceNotFound`."""
        path = self.path(stream_id)
        stream = self._streams.get(stream_id)
        if stream is not None and stream.known and stream.at.prev is not None:
            return stream.at.prev
        return await self._threads.run(_head, path)

    async def close(self, stream_id: str) -> None:
        """Unlock the stream, so that another writer can open it. A poisoned stream stays poisoned here."""
        stream = self._streams.get(stream_id)
        if stream is not None and not self._closed:
            await self._alone(stream, stream.close)

    async def discard(self, stream_id: str) -> None:
        """Delete a stream that this writer has open and that is not sealed: a copy that was not finished."""
        stream = self._streams.pop(stream_id, None)
        if stream is not None and not self._closed:
            await self._alone(stream, stream.discard)

    async def aclose(self) -> None:
        """Close all streams. Nothing can be appended afterwards."""
        for stream_id in list(self._streams):
            await self.close(stream_id)
        self._closed = True
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def path(self, stream_id: str) -> Path:
        """The stream's file, which may not exist."""
        check_stream_id(stream_id)
        return self._state_dir / f"{stream_id}.jsonl"

    def _stream(self, stream_id: str) -> OpenStream:
        if self._closed:
            raise TraceError(f"Stream `{stream_id}` cannot be written: this writer was closed")
        if stream_id not in self._streams:
            self._streams[stream_id] = OpenStream(
                self.path(stream_id),
                disk=self._disk,
                sync=self._sync,
                now=self._now,
                folders=self._folders,
                ledger=self._ledger,
            )
        return self._streams[stream_id]

    async def _alone(self, stream: OpenStream, work: Callable[..., T], *args: object) -> T:
        """Run `work` while no other work on the stream runs, even if the caller is cancelled."""
        await stream.turn.acquire()
        return await self._threads.run(work, *args, done=stream.turn.release)

    def _now(self) -> str:
        return timestamp(self._clock.now())


def _take(events: Iterator[Event]) -> tuple[list[Event], TraceError | None]:
    """The next events, and the damage after them, if any. Intact events are not lost with it."""
    batch: list[Event] = []
    try:
        batch.extend(islice(events, _READ_AT_ONCE))
    except TraceError as damage:
        return batch, damage
    return batch, None


def _head(path: Path) -> str:
    last = b""
    for line in read_lines(path):
        last = line if line.endswith(b"\n") else last
    if not last:
        raise TraceNotFound(f"`{path}` has no record yet")
    return digest(last[:-1])


class StreamEmitter:
    """Appends each event to the stream `traces/{agent_id}` below `state_dir`; durable once `emit` returns."""

    def __init__(self, state_dir: Path | str, agent_id: str, *, clock: Clock, sync: SyncMode = "always") -> None:
        self.stream_id = f"traces/{agent_id}"
        self._agent_id = agent_id
        self._writer = FileTrace(Path(state_dir), clock=clock, sync=sync)
        self.path = self._writer.path(self.stream_id)

    async def emit(self, event: Event | Mapping[str, Any]) -> Event:
        """The event as recorded, with `seq`, `ts` and `prev`."""
        draft = events.as_event(event).model_copy(update={"agent_id": self._agent_id})
        (recorded,) = await self._writer.append(self.stream_id, [draft])
        return recorded

    async def close(self) -> None:
        """Close the stream."""
        await self._writer.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
