"""Commits the statements of many streams together, and again on a new connection if the answer was lost.

All streams of one process share one connection. Whatever is waiting when the last commit returns goes into the next
transaction, so that many agents pay for few syncs. Every statement may be repeated: `append` finds its own records if
an earlier attempt was committed, and the position and epoch that it names refuse everything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from remora.errors import TraceError
from remora.trace.postgres.connection import connect, connect_async, driver, is_passing, query

if TYPE_CHECKING:
    import psycopg

    from remora.trace.postgres.address import Address

PATIENCE_S = 30.0
"""How long a statement waits for a server that restarts or does not answer."""
ATTEMPT_S = 10.0
"""How long one attempt may take before it is repeated on a new connection."""
LEASE_S = 30.0
"""A writer that was silent for so long can lose its streams to another one."""
MAX_GROUP = 256
MAX_GROUP_BYTES = 8 * 1024 * 1024
NOTIFY_EVERY_S = 0.05
_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(slots=True)
class Statement:
    """One call of a function of the store. `stream` orders the statements of a group, so that no two groups wait for
    each other."""

    sql: str
    values: Sequence[Any]
    stream: int = 0
    size: int = 0
    sync: bool = True
    """Whether the answer means durable."""
    notify: str = ""
    """The stream that has new records."""
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Committer:
    """Runs statements on one connection, in groups."""

    def __init__(
        self,
        address: Address,
        *,
        patience_s: float = PATIENCE_S,
        attempt_s: float = ATTEMPT_S,
        lease_s: float = LEASE_S,
    ) -> None:
        self._address = address
        self._patience_s = patience_s
        self._attempt_s = attempt_s
        self._lease_s = lease_s
        self._waiting: list[Statement] = []
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._changed: set[str] = set()
        self._notified = 0.0
        self.writer = 0
        """Our number among the store's writers; 0 before the first statement."""

    async def start(self) -> None:
        """Connect for the first time. Raises `ConfigError` or `TraceError` if there is no usable store."""
        if self._tasks:
            return
        self._tasks = [asyncio.create_task(self._work()), asyncio.create_task(self._renew())]
        try:
            (await asyncio.to_thread(connect, self._address, create=True)).close()
            label = f"{socket.gethostname()}:{os.getpid()}"
            self.writer = await self.run("SELECT @.enter(%s, make_interval(secs => %s))", [label, self._lease_s])
            values = [self._address.schema, self.writer]
            await self.run("SELECT pg_try_advisory_lock(hashtext(%s), %s)", values, sync=False)
        except BaseException:
            await self.stop()
            raise

    async def run(self, sql: str, values: Sequence[Any], **more: Any) -> Any:
        """Run a statement and return its first row: a value if it has one column. Raises `psycopg.Error`."""
        statement = Statement(sql, values, **more)
        self._waiting.append(statement)
        self._wake.set()
        return await statement.answer

    async def stop(self) -> None:
        """Give up the lease and close the connection. Statements that wait are refused."""
        if self.writer and self._tasks:
            with contextlib.suppress(driver().Error, TraceError, TimeoutError, OSError):
                goodbye = self.run("SELECT @.renew(%s, interval '0')", [self.writer], sync=False)
                await asyncio.wait_for(goodbye, self._attempt_s)
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._notify()
        await self._drop()
        for statement in self._waiting:
            _refuse(statement, TraceError("The store is closed: expected no calls after closing"))

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            while group := self._take():
                await self._commit(group)
                if not self._waiting or asyncio.get_running_loop().time() - self._notified > NOTIFY_EVERY_S:
                    await self._notify()
            self._wake.clear()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            if self.writer:
                with contextlib.suppress(driver().Error, TraceError, TimeoutError, OSError):
                    values = [self.writer, self._lease_s]
                    await self.run("SELECT @.renew(%s, make_interval(secs => %s))", values, sync=False)

    def _take(self) -> list[Statement]:
        """The next statements to commit together."""
        group: list[Statement] = []
        size = 0
        while self._waiting and len(group) < MAX_GROUP and (not group or size < MAX_GROUP_BYTES):
            group.append(self._waiting.pop(0))
            size += group[-1].size
        return sorted(group, key=lambda each: each.stream)

    async def _commit(self, group: Sequence[Statement]) -> None:
        """Run the group in one transaction and resolve its answers; repeat it while the server may come back."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        pauses = iter(_PAUSES_S)
        while True:
            try:
                left = min(self._attempt_s, max(deadline - loop.time(), 0.001))
                answers = await asyncio.wait_for(self._attempt(group), left)
            except (driver().Error, OSError, TimeoutError) as error:
                passing = is_passing(error)
                if passing or (self._connection is not None and self._connection.broken):
                    await self._drop()
                if passing and loop.time() < deadline:
                    await asyncio.sleep(next(pauses, _PAUSES_S[-1]))
                    continue
                await self._separate(group, error)
                return
            except asyncio.CancelledError:
                for statement in group:
                    _refuse(statement, TraceError("The store was closed before the answer came"))
                raise
            for statement, answer in zip(group, answers, strict=True):
                if statement.notify:
                    self._changed.add(statement.notify)
                if not statement.answer.done():
                    statement.answer.set_result(answer)
            return

    async def _separate(self, group: Sequence[Statement], error: BaseException) -> None:
        """Refuse a single statement; run those of a group one by one, because only one may be at fault."""
        if len(group) == 1:
            _refuse(group[0], error)
        elif is_passing(error):
            for statement in group:
                _refuse(statement, error)
        else:
            for statement in group:
                await self._commit([statement])

    async def _attempt(self, group: Sequence[Statement]) -> list[Any]:
        connection = await self._connected()
        schema = self._address.schema
        async with connection.pipeline(), connection.transaction():
            if not any(statement.sync for statement in group):
                await connection.execute("SET LOCAL synchronous_commit TO off")
            cursors = [await connection.execute(query(each.sql, schema), each.values, prepare=True) for each in group]
        return [await _first(cursor) for cursor in cursors]

    async def _connected(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = await connect_async(self._address)
            await self._hold(self._connection)
        return self._connection

    async def _hold(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Lock our number for as long as the connection lives. A connection that was cut may still hold it."""
        if self.writer:
            await connection.execute(
                "SELECT pg_try_advisory_lock(hashtext(%s), %s)", [self._address.schema, self.writer]
            )

    async def _notify(self) -> None:
        """Tell listeners which streams have grown. Outside of the appends: a commit with a notice excludes others."""
        changed, self._changed = self._changed, set()
        self._notified = asyncio.get_running_loop().time()
        if not changed or self._connection is None or self._connection.closed:
            return
        with contextlib.suppress(driver().Error, OSError, TimeoutError):
            await asyncio.wait_for(self._send(self._connection, sorted(changed)), ATTEMPT_S)

    async def _send(self, connection: psycopg.AsyncConnection[Any], streams: Sequence[str]) -> None:
        async with connection.pipeline(), connection.transaction():
            await connection.execute("SET LOCAL synchronous_commit TO off")
            for stream in streams:
                await connection.execute("SELECT pg_notify(%s, %s)", [channel(self._address), stream])

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(driver().Error, OSError, TimeoutError):
                await asyncio.wait_for(connection.close(), 1)


def channel(address: Address) -> str:
    """The channel of notices about streams that have grown."""
    return f"remora_{address.schema}"


async def _first(cursor: psycopg.AsyncCursor[Any]) -> Any:
    row = await cursor.fetchone() if cursor.description else None
    return row[0] if row is not None and len(row) == 1 else row


def _refuse(statement: Statement, error: BaseException) -> None:
    if not statement.answer.done():
        statement.answer.set_exception(error)
