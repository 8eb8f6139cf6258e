"""Writer and blob store in memory: for tests, examples, and runs that need no record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from remora.errors import TraceError, TraceNotFound, TraceSealed
from remora.events import Event, decode, digest, timestamp
from remora.ports import MAX_BLOB, Clock, Draft
from remora.trace.files.lines import SEAL, Batch, check_stream_id, number


class MemoryTrace:
    """A `TraceWriter` that keeps the encoded lines, so that numbers, chain and values are the same as in a file."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: dict[str, list[bytes]] = {}
        self._ends: dict[str, Batch] = {}

    async def append(self, stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
        """Record the drafts. Raises `TraceSealed` once the stream has ended."""
        check_stream_id(stream_id)
        end = self._ends.get(stream_id)
        if not drafts:
            return ()
        if end is not None and end.sealed:
            raise TraceSealed(f"`{stream_id}` has ended with `{SEAL}`: nothing can follow")
        lines = self._lines.get(stream_id, [])
        batch = number(drafts, seq=len(lines), prev=end.head if end else None, now=self._now)
        self._ends[stream_id] = batch
        self._lines.setdefault(stream_id, []).extend(batch.lines)
        return batch.events

    def _now(self) -> str:
        return timestamp(self._clock.now())

    async def read(self, stream_id: str, *, after: int = -1) -> AsyncIterator[Event]:
        """Events with `seq > after`, oldest first."""
        for line in self.lines(stream_id)[after + 1 :]:
            yield decode(line)

    async def head(self, stream_id: str) -> str:
        """The digest of the stream's last line. Raises `TraceNotFound`."""
        return digest(self.lines(stream_id)[-1])

    async def close(self, stream_id: str) -> None:
        """Does nothing: there is nothing to close."""

    def lines(self, stream_id: str) -> tuple[bytes, ...]:
        """The stream's lines, as a file would have them. Raises `TraceNotFound`."""
        check_stream_id(stream_id)
        if stream_id not in self._lines:
            raise TraceNotFound(f"There is no stream `{stream_id}`")
        return tuple(self._lines[stream_id])


class MemoryBlobs:
    """A `BlobStore` in a dictionary."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        """Store `data` and return its digest."""
        name = digest(data)
        self._blobs[name] = bytes(data)
        return name

    async def put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Store the concatenated chunks; return digest and size."""
        data = b"".join(chunks)
        return await self.put(data), len(data)

    async def get(self, digest: str, *, limit: int = MAX_BLOB) -> bytes:
        """Read a blob. Raises `TraceError` if it is missing or larger than `limit`."""
        if digest not in self._blobs:
            raise TraceError(f"Blob `{digest[:80]}` is gone: expected it in memory")
        if len(self._blobs[digest]) > limit:
            raise TraceError(f"Blob `{digest[:80]}` has more than {limit:,} bytes: expected no more")
        return self._blobs[digest]
