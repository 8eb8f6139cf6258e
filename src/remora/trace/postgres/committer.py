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
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

from remora.errors import ConfigError, TraceError
from remora.trace.postgres.connection import POOLED, connect, connect_async, driver, is_passing, query

if TYPE_CHECKING:
    import psycopg

    from remora.trace.postgres.address import Address

PATIENCE_S = 30.0
"""How long a statement waits for a server that restarts or does not answer."""
ATTEMPT_S = 10.0
"""How long one attempt may take before it is repeated on a new connection."""
ATTEMPTS = 2
"""At least so many, however long they take: a process that was stopped finds its time over when it wakes."""
LEASE_S = 30.0
"""A writer that was silent for so long can lose its streams to another one."""
MAX_GROUP = 256
MAX_GROUP_BYTES = 8 * 1024 * 1024
NOTIFY_EVERY_S, NOTIFY_AT_LEAST_S = 0.05, 1.0
"""How often listeners are told that streams have grown. While appends follow each other on a slow server, more rarely:
a notice takes as long as a commit, and appends wait for it. Listeners look every second by themselves."""
NOTIFY_SHARE = 10
"""Commits for each notice, at least."""
_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(slots=True)
class Statement:
    """One call of a function of the store."""

    sql: str
    values: Sequence[Any]
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(slots=True)
class Append:
    """Records for one stream, at the position and in the epoch that the writer knows."""

    stream_id: str
    stream: int
    epoch: int
    first: int
    prev: bytes | None
    lines: Sequence[bytes]
    seals: bool
    sync: bool = True
    """Whether the answer means durable."""
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


Group = Sequence[Append] | Sequence[Statement]
_NOTIFY = """SELECT set_config('synchronous_commit', 'off', true),
    (SELECT count(pg_notify(%s, grown)) FROM unnest(%s::text[]) AS streams (grown))"""
_LOCK = "SELECT pg_try_advisory_lock(hashtext(%s), %s)"
_APPEND = "SELECT @.append(%b, %b, %b, %b, %b, %b, %b)"
_APPEND_ALL = f"SELECT @.append_all({', '.join(['%b'] * 13)})"


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
        self._statements: deque[Statement] = deque()
        self._appends: deque[Append] = deque()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._changed: set[str] = set()
        self._notified = 0.0
        self._commit_s = 0.0
        """How long the last commit took."""
        self._is_committing = self._is_quiet = False
        self._timer: asyncio.TimerHandle | None = None
        self._holds = False
        """Whether our connection has the lock of our number."""
        self.writer = 0
        """Our number among the store's writers; 0 before the first statement."""

    async def start(self) -> None:
        """Connect for the first time. Raises `ConfigError` or `TraceError` if there is no usable store."""
        if self._tasks:
            return
        self._tasks = [asyncio.create_task(self._work()), asyncio.create_task(self._renew())]
        try:
            with await asyncio.to_thread(connect, self._address, create=True) as other:
                await self._enter(other)
        except BaseException:
            await self.stop()
            raise

    async def _enter(self, other: psycopg.Connection[Any]) -> None:
        """Become a writer of the store. Raises `ConfigError` if `other` shares our session: then it holds no lock."""
        label = f"{socket.gethostname()}:{os.getpid()}"
        self.writer = await self.run("SELECT @.enter(%s, make_interval(secs => %s))", [label, self._lease_s])
        self._holds = await self.run(_LOCK, self._lock)
        mine = await self.run("SELECT pg_backend_pid()", [])
        if await asyncio.to_thread(lambda: other.execute("SELECT pg_backend_pid()").fetchone()) == (mine,):
            raise ConfigError(
                f"The trace store at {self._address} does not give each client a session of its own", hint=POOLED
            )

    async def run(self, sql: str, values: Sequence[Any]) -> Any:
        """Run a statement and return its first row: a value if it has one column. Raises `psycopg.Error`."""
        statement = Statement(sql, values)
        self._statements.append(statement)
        self._wake.set()
        return await statement.answer

    async def append(self, append: Append) -> None:
        """Commit records, together with those that wait. Raises `psycopg.Error`."""
        self._appends.append(append)
        self._wake.set()
        await append.answer

    async def stop(self) -> None:
        """Give up the lease and close the connection. Statements that wait are refused."""
        if self.writer and self._tasks:
            with contextlib.suppress(driver().Error, TraceError, TimeoutError, OSError):
                goodbye = self.run("SELECT @.renew(%s, interval '0')", [self.writer])
                await asyncio.wait_for(goodbye, self._attempt_s)
        if self._timer is not None:
            self._timer.cancel()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._notify()
        await self._drop()
        waiting: list[Statement | Append] = [*self._statements, *self._appends]
        for each in waiting:
            _refuse(each, TraceError("The store is closed: expected no calls after closing"))

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while group := self._take():
                self._is_committing, self._is_quiet = True, False
                await self._commit(group)
                self._is_committing = False
                await self._notify_if_due()
            await (self._notify() if self._is_quiet else self._notify_if_due())
            self._look_later()

    def _look_later(self) -> None:
        """If listeners have not been told, tell them as soon as nothing is being committed."""
        if self._changed and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(NOTIFY_EVERY_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._is_committing:
            self._look_later()
        else:
            self._is_quiet = True
            self._wake.set()

    @property
    def _notify_every_s(self) -> float:
        return min(max(NOTIFY_EVERY_S, NOTIFY_SHARE * self._commit_s), NOTIFY_AT_LEAST_S)

    async def _notify_if_due(self) -> None:
        if self._changed and asyncio.get_running_loop().time() - self._notified >= self._notify_every_s:
            await self._notify()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            if self.writer:
                with contextlib.suppress(driver().Error, TraceError, TimeoutError, OSError):
                    values = [self.writer, self._lease_s]
                    await self.run("SELECT @.renew(%s, make_interval(secs => %s))", values)
                    if not self._holds:
                        self._holds = await self.run(_LOCK, self._lock)

    def _take(self) -> Group:
        """The next statement, or the appends to commit together, by stream: no two groups wait for each other."""
        if self._statements:
            return [self._statements.popleft()]
        group: list[Append] = []
        size = 0
        while self._appends and len(group) < MAX_GROUP and size < MAX_GROUP_BYTES:
            group.append(self._appends.popleft())
            size += sum(map(len, group[-1].lines))
        return sorted(group, key=lambda each: each.stream)

    async def _commit(self, group: Group) -> None:
        """Run the group in one transaction and resolve its answers; repeat it while the server may come back."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        deadline = began + self._patience_s
        pauses = iter(_PAUSES_S)
        for attempt in count(1):
            left = deadline - loop.time() if attempt > ATTEMPTS else self._patience_s
            try:
                async with asyncio.timeout(min(self._attempt_s, max(left, 0.001))):
                    answer = await self._attempt(group)
            except (driver().Error, OSError, TimeoutError) as error:
                passing = is_passing(error)
                if passing or (self._connection is not None and self._connection.broken):
                    await self._drop()
                if passing and (attempt < ATTEMPTS or loop.time() < deadline):
                    await asyncio.sleep(next(pauses, _PAUSES_S[-1]))
                    continue
                await self._separate(group, error)
                return
            except asyncio.CancelledError:
                for each in group:
                    _refuse(each, TraceError("The store was closed before the answer came"))
                raise
            self._commit_s = loop.time() - began
            for each in group:
                if isinstance(each, Append):
                    self._changed.add(each.stream_id)
                if not each.answer.done():
                    each.answer.set_result(answer)
            return

    async def _separate(self, group: Group, error: BaseException) -> None:
        """Append those of a group one by one, because only one may be at fault; refuse everything else."""
        for each in group:
            if isinstance(each, Append) and len(group) > 1 and not is_passing(error):
                await self._commit([each])
            else:
                _refuse(each, error)

    async def _attempt(self, group: Group) -> Any:
        """Run the group as one statement, which is a transaction of its own."""
        connection = await self._connected()
        sql, values = _statement(group)
        cursor = await connection.execute(query(sql, self._address.schema), values, prepare=True)
        row = await cursor.fetchone() if cursor.description else None
        return row[0] if row is not None and len(row) == 1 else row

    async def _connected(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = await connect_async(self._address)
            await self._hold(self._connection)
        return self._connection

    async def _hold(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Lock our number for as long as the connection lives.

        A former connection that was cut may still hold it. Then we try again with each renewal: once the server drops
        that one, nobody holds the lock, and our streams would count as free.
        """
        if self.writer:
            row = await (await connection.execute(_LOCK, self._lock)).fetchone()
            self._holds = bool(row and row[0])

    @property
    def _lock(self) -> list[Any]:
        return [self._address.schema, self.writer]

    async def _notify(self) -> None:
        """Tell listeners which streams have grown. Outside of the appends: a commit with a notice excludes others."""
        self._is_quiet = False
        changed, self._changed = self._changed, set()
        self._notified = asyncio.get_running_loop().time()
        if not changed or self._connection is None or self._connection.closed:
            return
        with contextlib.suppress(driver().Error, OSError, TimeoutError):
            async with asyncio.timeout(self._attempt_s):
                await self._connection.execute(_NOTIFY, [channel(self._address), sorted(changed)], prepare=True)

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(driver().Error, OSError, TimeoutError):
                await asyncio.wait_for(connection.close(), 1)


def channel(address: Address) -> str:
    """The channel of notices about streams that have grown."""
    return f"remora_{address.schema}"


def _statement(group: Group) -> tuple[str, Sequence[Any]]:
    appends = [each for each in group if isinstance(each, Append)]
    if not appends:
        (only,) = group
        assert isinstance(only, Statement)  # noqa: S101 (a group holds one kind)
        return only.sql, only.values
    if len(appends) == 1:
        (each,) = appends
        return _APPEND, [each.stream, each.epoch, each.first, each.prev, list(each.lines), each.seals, each.sync]
    return _APPEND_ALL, _columns(appends)


def _columns(appends: Sequence[Append]) -> list[Any]:
    """The arguments of `append_all`: arrays over the streams, then arrays over all lines."""
    lines = [
        (each.stream, each.first + place, each.epoch, line) for each in appends for place, line in enumerate(each.lines)
    ]
    return [
        [each.stream for each in appends],
        [each.epoch for each in appends],
        [each.first for each in appends],
        [each.prev for each in appends],
        [each.first + len(each.lines) for each in appends],
        [sum(map(len, each.lines)) + len(each.lines) for each in appends],
        list(accumulate(len(each.lines) for each in appends)),
        [each.seals for each in appends],
        *(list(column) for column in zip(*lines, strict=True)),
        any(each.sync for each in appends),
    ]


def _refuse(statement: Statement | Append, error: BaseException) -> None:
    if not statement.answer.done():
        statement.answer.set_exception(error)
