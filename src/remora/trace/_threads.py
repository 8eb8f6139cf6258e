"""Disk work off the event loop.

The hand-over to a thread and back is what an append mostly costs on a fast disk. So there is nothing in it but a queue
to the threads and a call back into the event loop: half of what `run_in_executor` takes.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

from remora.errors import TraceError

T = TypeVar("T")

# Threads that wait for a sync at the same moment share one commit of the file system's journal, so many agents pay
# for few syncs. For 64 streams, 16 to 32 threads were the fastest and 64 were slower.
THREADS = 32


@dataclass(slots=True)
class _Job:
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    work: Callable[..., Any]
    args: tuple[Any, ...]
    done: Callable[[], None] | None
    result: Any = None
    error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.work(*self.args)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits
            self.error = error

    def finish(self) -> None:
        """Who waits, if anybody still does, has the outcome."""
        if self.done is not None:
            self.done()
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class _Desk:
    """What the threads share; they hold it, and not the `Threads` that own it, so that these can be let go."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.lock = threading.Lock()
        self.open_jobs = 0
        self.started = 0

    def hand_in(self, job: _Job) -> None:
        with self.lock:
            self.open_jobs += 1
            missing = self.started < min(self.open_jobs, THREADS)
            self.started += missing
        self.jobs.put(job)
        if missing:
            # A daemon: a killed process loses nothing that was acknowledged, and one that exits must not hang.
            threading.Thread(target=self.serve, name=f"remora-disk-{self.started}", daemon=True).start()

    def serve(self) -> None:
        while (job := self.jobs.get()) is not None:
            job.run()
            with self.lock:
                self.open_jobs -= 1
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                job.loop.call_soon_threadsafe(job.finish)
            del job

    def stop(self) -> None:
        for _ in range(self.started):
            self.jobs.put(None)


class Threads:
    """Runs blocking functions in threads of its own."""

    def __init__(self) -> None:
        self._desk = _Desk()
        self._stop = weakref.finalize(self, self._desk.stop)

    async def run(self, work: Callable[..., T], *args: Any, done: Callable[[], None] | None = None) -> T:
        """The result of `work`. If the caller is cancelled, `work` still goes on to its end; then `done` is called."""
        if not self._stop.alive:
            raise TraceError("The disk cannot be reached any more: expected no work after closing")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._desk.hand_in(_Job(loop, future, work, args, done))
        return await future

    def close(self) -> None:
        """What was handed in goes on to its end; then no thread is left. Nothing new is taken."""
        self._stop()
