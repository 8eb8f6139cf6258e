"""`PostgresTrace`: streams in a Postgres database. Every acknowledged event is committed and durable.

A stream has one writer at a time, by an epoch. Whoever opens a stream takes its next epoch, and the database refuses
appends of an older one in the same transaction: also those of a writer that was only asleep. A stream that has a live
writer is not given away; one whose writer lost its connection, or let its lease run out, is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from remora.errors import ConfigError, TraceError, TraceFenced, TraceLocked, TraceNotFound, TracePoisoned, TraceSealed
from remora.events import from_record, timestamp
from remora.trace.files.lines import SEAL, Batch, check_stream_id, number
from remora.trace.files.reader import Position, after, read_records
from remora.trace.files.stream import SyncMode, must_sync, sync_mode_of
from remora.trace.postgres.address import Address, parse_address
from remora.trace.postgres.committer import ATTEMPT_S, LEASE_S, PATIENCE_S, Append, Committer
from remora.trace.postgres.connection import connect_async, driver, query, reason, store_error
from remora.trace.postgres.schema import FENCED, GONE, LOCKED, MISPLACED, SEALED

if TYPE_CHECKING:
    from remora.events import Event
    from remora.ports import Clock, Draft

READ_AT_ONCE = 256
_PREFIX = "sha256:"


class _Stream:
    """A stream as this writer knows it."""

    def __init__(self, stream_id: str) -> None:
        self.stream_id = stream_id
        self.turn = asyncio.Lock()
        self.number = 0
        self.epoch = 0
        """0 while the stream is not open here."""
        self.records = 0
        self.head: str | None = None
        self.sealed = False
        self.poison: TraceError | None = None


class PostgresTrace:
    """A `TraceWriter` over a Postgres store. Connects at the first call."""

    def __init__(
        self,
        address: Address | str,
        *,
        clock: Clock,
        sync: SyncMode = "always",
        patience_s: float = PATIENCE_S,
        attempt_s: float = ATTEMPT_S,
        lease_s: float = LEASE_S,
    ) -> None:
        """A statement waits `patience_s` for a server that restarts, and `attempt_s` for each answer.

        Another writer can take over the streams of one that was silent for `lease_s`.
        """
        self._address = parse_address(address) if isinstance(address, str) else address
        self._clock = clock
        self._sync = sync
        self._settings = {"patience_s": patience_s, "attempt_s": attempt_s, "lease_s": lease_s}
        self._committer: Committer | None = None
        self._starting = asyncio.Lock()
        self._reader: Any = None
        self._reading = asyncio.Lock()
        self._streams: dict[str, _Stream] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def append(self, stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
        """Record the drafts, durable once this returns. Raises `TraceError`. Cancellation never tears a write."""
        stream, drafts = self._stream(stream_id), tuple(drafts)
        if not drafts:
            return ()
        recorded: Sequence[Event] = await self._to_end(self._append(stream, drafts))
        return recorded

    async def reopen(self, stream_id: str) -> int:
        """Take the stream's next epoch; return the last `seq`. Raises `TraceNotFound`, or `TraceLocked`."""
        stream = self._stream(stream_id)
        await self.head(stream_id)
        await self._to_end(self._open(stream))
        return stream.records - 1

    async def claim(self, stream_id: str) -> int:
        """Take the next epoch of a stream, also of one that has not begun; return the last `seq`. Raises `TraceLocked`.

        A stream that was poisoned here starts afresh: the database knows what was committed.
        """
        self._stream(stream_id)
        stream = self._streams[stream_id] = _Stream(stream_id)
        await self._to_end(self._open(stream))
        return stream.records - 1

    async def read(self, stream_id: str, *, after: int = -1) -> AsyncIterator[Event]:
        """Yield events with `seq > after`, oldest first. Raises `TraceNotFound`, or `TraceDamaged` at the first damage.

        The chain is checked from `after` on.
        """
        check_stream_id(stream_id)
        async for event in self._read(stream_id, after):
            yield event

    async def head(self, stream_id: str) -> str:
        """The digest of the stream's last record. Raises `TraceNotFound`."""
        check_stream_id(stream_id)
        stream = self._streams.get(stream_id)
        if stream is not None and stream.epoch and stream.head is not None:
            return stream.head
        rows = await self._ask("SELECT head FROM @.streams WHERE stream_id = %s AND records > 0", [stream_id])
        if not rows:
            raise TraceNotFound(f"There is no stream `{stream_id}` in {self._address}")
        return _digest(rows[0][0])

    async def close(self, stream_id: str) -> None:
        """Give the stream back, so that another writer can open it. A poisoned stream stays poisoned here."""
        stream = self._streams.get(stream_id)
        if stream is not None and stream.epoch and not self._closed:
            await self._to_end(self._close(stream))

    async def discard(self, stream_id: str) -> None:
        """Give back a stream that was not finished. A writer may not delete: it stays, unsealed."""
        await self.close(stream_id)

    async def aclose(self) -> None:
        """Close all streams. Nothing can be appended afterwards."""
        await asyncio.gather(*self._running, return_exceptions=True)
        for stream_id in list(self._streams):
            await self.close(stream_id)
        self._closed = True
        if self._committer is not None:
            await self._committer.stop()
        if self._reader is not None:
            await self._reader.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _stream(self, stream_id: str) -> _Stream:
        check_stream_id(stream_id)
        if self._closed:
            raise TraceError(f"Stream `{stream_id}` cannot be written: this writer was closed")
        return self._streams.setdefault(stream_id, _Stream(stream_id))

    async def _to_end(self, work: Any) -> Any:
        """Run `work` to its end, even if the caller is cancelled."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _started(self) -> Committer:
        async with self._starting:
            if self._committer is None:
                committer = Committer(self._address, **self._settings)
                try:
                    await committer.start()
                except (driver().Error, OSError, TimeoutError) as error:
                    raise store_error(error, self._address) from error
                self._committer = committer
            return self._committer

    async def _append(self, stream: _Stream, drafts: tuple[Draft, ...]) -> Sequence[Event]:
        async with stream.turn:
            await self._take(stream)
            if stream.sealed:
                raise TraceSealed(f"`{stream.stream_id}` has ended with `{SEAL}`: nothing can follow")
            batch = number(drafts, seq=stream.records, prev=stream.head, now=self._now)
            await self._write(stream, batch)
            stream.records += len(batch.lines)
            stream.head, stream.sealed = batch.head, batch.sealed
            return batch.events

    async def _write(self, stream: _Stream, batch: Batch) -> None:
        append = Append(
            stream_id=stream.stream_id,
            stream=stream.number,
            epoch=stream.epoch,
            first=stream.records,
            prev=_raw(stream.head),
            lines=batch.lines,
            seals=batch.sealed,
            sync=must_sync(sync_mode_of(stream.stream_id, self._sync), batch.events),
        )
        try:
            await (await self._started()).append(append)
        except (driver().Error, OSError, TimeoutError, TraceError) as error:
            self._refused(stream, error)

    async def _open(self, stream: _Stream) -> None:
        async with stream.turn:
            await self._take(stream)

    async def _take(self, stream: _Stream) -> None:
        """Open the stream unless it is open here."""
        if stream.poison is not None:
            raise stream.poison
        if stream.epoch or stream.sealed:
            return
        committer = await self._started()
        try:
            found = await committer.run("SELECT * FROM @.open_stream(%s, %s)", [stream.stream_id, committer.writer])
        except (driver().Error, OSError, TimeoutError, TraceError) as error:
            self._refused(stream, error)
        stream.number, stream.epoch, stream.records, head, stream.sealed = found
        stream.head = _digest(head) if head is not None else None

    async def _close(self, stream: _Stream) -> None:
        async with stream.turn:
            epoch, stream.epoch = stream.epoch, 0
            if epoch and stream.poison is None and self._committer is not None:
                try:
                    await self._committer.run("SELECT @.close_stream(%s, %s)", [stream.number, epoch])
                except (driver().Error, OSError, TimeoutError) as error:
                    raise store_error(error, self._address) from error

    def _refused(self, stream: _Stream, error: BaseException) -> NoReturn:
        """Raise what the store's refusal means. Unless it refused a lock, this writer takes no more for the stream."""
        state = getattr(error, "sqlstate", None)
        name = f"`{stream.stream_id}`"
        if state == LOCKED:
            raise TraceLocked(
                f"{name} has another writer ({reason(error).rpartition(': ')[2]}): expected to be the only one",
                hint="Wait until the other run has ended, or stop it",
            ) from error
        if state == SEALED:
            stream.sealed = True
            raise TraceSealed(f"{name} has ended with `{SEAL}`: nothing can follow") from error
        if state in (FENCED, MISPLACED, GONE):
            what = "was deleted" if state == GONE else "was taken over by another writer"
            stream.poison = TraceFenced(
                f"{name} {what}: this one may not write any more", hint="Read the stream to see how it went on"
            )
        else:
            shown = store_error(error, self._address)
            if isinstance(shown, ConfigError):
                raise shown from error
            stream.poison = TracePoisoned(
                f"{name} takes no more events: {reason(error)} ({self._address})",
                hint="What was acknowledged is safe. Resume the run when the database works again",
            )
        raise stream.poison from error

    async def _read(self, stream_id: str, after_seq: int) -> AsyncIterator[Event]:
        rows = await self._ask("SELECT id, records FROM @.streams WHERE stream_id = %s AND records > 0", [stream_id])
        if not rows:
            raise TraceNotFound(f"There is no stream `{stream_id}` in {self._address}")
        number, end = rows[0]
        here = await self._position(number, after_seq)
        while here.line < end:
            lines = await self._ask(
                "SELECT line FROM @.records WHERE stream = %s AND seq >= %s AND seq < %s ORDER BY seq LIMIT %s",
                [number, here.line, end, READ_AT_ONCE],
            )
            if not lines:
                raise TraceError(f"`{stream_id}` in {self._address} ends at seq {here.line}: expected {end} records")
            page = [line + b"\n" for (line,) in lines]
            for record in read_records(Path(stream_id), start=here, lines=page):
                here = after(record)
                yield from_record(record.fields or {})

    async def _position(self, number: int, after_seq: int) -> Position:
        """The position after a record, with the digest of that record."""
        if after_seq < 0:
            return Position()
        rows = await self._ask("SELECT sha256(line) FROM @.records WHERE stream = %s AND seq = %s", [number, after_seq])
        return Position(after_seq + 1, 0, _digest(rows[0][0])) if rows else Position(2**62)

    async def _ask(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Rows, over a connection for reading. A lost one is replaced once."""
        await self._started()
        async with self._reading:
            for attempt in range(2):
                try:
                    if self._reader is None or self._reader.closed:
                        self._reader = await connect_async(self._address)
                    cursor = await self._reader.execute(query(sql, self._address.schema), values)
                    return list(await cursor.fetchall())
                except (driver().Error, OSError, TimeoutError) as error:
                    if attempt:
                        raise store_error(error, self._address) from error
                    if self._reader is not None:
                        await self._reader.close()
        return []

    def _now(self) -> str:
        return timestamp(self._clock.now())


def _digest(raw: bytes) -> str:
    return _PREFIX + raw.hex()


def _raw(head: str | None) -> bytes | None:
    return None if head is None else bytes.fromhex(head.removeprefix(_PREFIX))
