"""Waits for news of a stream: `LISTEN`, and a look every second, because a notice can be lost."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from remora.trace.postgres.committer import channel
from remora.trace.postgres.connection import connect_async, driver

if TYPE_CHECKING:
    import psycopg

    from remora.trace.postgres.address import Address

LOOK_AGAIN_S = 1.0


class Listener:
    """Listens for streams that have grown. Works on, more slowly, while there is no connection."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def wait(self, stream_id: str) -> None:
        """Return when the stream has grown, or after a second."""
        if self._connection is None or self._connection.closed:
            await asyncio.sleep(LOOK_AGAIN_S)
            await self._listen()
            return
        try:
            async for notice in self._connection.notifies(timeout=LOOK_AGAIN_S):
                if notice.payload == stream_id:
                    return
        except driver().Error:
            await self._connection.close()

    async def _listen(self) -> None:
        with contextlib.suppress(driver().Error, OSError):
            if self._connection is not None:
                await self._connection.close()
            self._connection = await connect_async(self._address)
            await self._connection.execute(f"LISTEN {channel(self._address)}")
