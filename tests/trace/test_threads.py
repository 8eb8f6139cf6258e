"""Work that is handed to a thread comes back, whatever happens to who waits for it."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from remora.errors import TraceError
from remora.trace.files.disk import THREADS, Threads


def disk_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("remora-disk")}


async def test_the_result_or_the_error_of_the_work_reaches_who_waits() -> None:
    threads = Threads()
    assert await threads.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 7, 0)
    threads.close()
    with pytest.raises(TraceError):
        await threads.run(divmod, 7, 2)


async def test_work_whose_caller_was_cancelled_goes_on_to_its_end_and_then_says_so() -> None:
    threads, may_end, ended = Threads(), threading.Event(), asyncio.Event()
    waiting = asyncio.create_task(threads.run(may_end.wait, done=ended.set))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not ended.is_set()
    may_end.set()
    await ended.wait()
    threads.close()


def test_a_loop_that_was_closed_meanwhile_does_not_stop_the_next_one() -> None:
    threads, may_end = Threads(), threading.Event()

    async def leave_early() -> None:
        waiting = asyncio.create_task(threads.run(may_end.wait))
        await asyncio.sleep(0)
        waiting.cancel()

    async def work() -> int:
        return await threads.run(lambda: 7)

    for _ in range(THREADS):
        asyncio.run(leave_early())
    may_end.set()
    assert [asyncio.run(work()) for _ in range(3)] == [7] * 3
    threads.close()


async def test_as_many_threads_as_there_is_work_and_none_when_nobody_holds_them() -> None:
    before, threads = disk_threads(), Threads()
    for _ in range(20):
        await threads.run(int)
    assert len(disk_threads() - before) == 1
    together = threading.Barrier(8)
    await asyncio.gather(*(threads.run(together.wait) for _ in range(8)))
    mine = disk_threads() - before
    assert len(mine) == 8
    del threads
    gc.collect()
    for thread in mine:
        thread.join(10)
    assert not disk_threads() & mine
