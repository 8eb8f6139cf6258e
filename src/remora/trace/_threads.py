"""Disk work off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

# Threads that wait for a sync at the same moment share one commit of the file system's journal, so many agents pay
# for few syncs. For 64 streams, 16 to 32 threads were the fastest and 64 were slower.
THREADS = 32


class Threads:
    """Runs blocking functions in threads of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="remora-disk")

    async def run(self, work: Callable[..., T], *args: Any, done: Callable[[], None] | None = None) -> T:
        """The result of `work`. If the caller is cancelled, `work` still goes on to its end; then `done` is called."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, *args)
        future.add_done_callback(lambda ended: _finish(ended, done))
        return await asyncio.shield(future)

    def close(self) -> None:
        """Nothing new is started."""
        self._pool.shutdown(wait=False)


def _finish(ended: asyncio.Future[Any], done: Callable[[], None] | None) -> None:
    if not ended.cancelled():
        ended.exception()  # seen, also when nobody waits any more
    if done is not None:
        done()
