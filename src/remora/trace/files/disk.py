"""The one door through which streams and blobs reach the disk.

Every call that decides whether an acknowledged byte survives a power loss stands here, so that a test can record the
calls, or make any of them fail, by a subclass.


Disk work off the event loop.

The hand-over to a thread and back is what an append mostly costs on a fast disk. So there is nothing in it but a queue
to the threads and a call back into the event loop: half of what `run_in_executor` takes.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from remora.errors import TraceError, TraceLocked

DIR_MODE = 0o700
FILE_MODE = 0o600
# A repository may bring its own state directory: a link planted there must not lead a write elsewhere.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
# Whoever looks for a writer is gone in microseconds; a real writer is never waited for.
_LOCK_ATTEMPTS, _LOCK_WAIT_S = 50, 0.001


class Disk:
    """Plain system calls. Raises `OSError`, which the caller translates."""

    def make_dir(self, path: Path) -> None:
        """`path` is a directory, made for its owner only if it was missing."""
        if path.is_symlink():
            raise TraceError(f"`{path}` is a link: expected a directory of Remora's own")
        try:
            path.mkdir(mode=DIR_MODE)
        except FileExistsError:
            if not path.is_dir():
                raise
        else:
            path.chmod(DIR_MODE)  # whatever the umask took away

    def open_append(self, path: Path) -> int:
        """A descriptor that only appends, to a file for its owner only."""
        try:
            handle = os.open(path, _APPEND | os.O_CREAT | os.O_EXCL, FILE_MODE)
        except FileExistsError:
            return os.open(path, _APPEND)
        os.fchmod(handle, FILE_MODE)
        return handle

    def write(self, handle: int, data: bytes) -> None:
        """All of `data` is written, however few bytes the system takes at once."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.write_some(handle, rest) :]

    def write_some(self, handle: int, data: memoryview) -> int:
        """How many bytes of `data` one call to the system took."""
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        """What was written, and the size needed to read it, is on the disk."""
        if sys.platform == "darwin":
            # fsync on macOS stops at the drive's own cache.
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        elif hasattr(os, "fdatasync"):
            os.fdatasync(handle)
        else:
            os.fsync(handle)

    def sync_dir(self, path: Path) -> None:
        """The names in directory `path` are on the disk."""
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self, source: Path, target: Path) -> None:
        """The file at `source` is at `target`, in place of what was there."""
        source.replace(target)

    def truncate(self, handle: int, size: int) -> None:
        """The file ends after `size` bytes."""
        os.ftruncate(handle, size)

    def lock(self, handle: int, path: Path) -> None:
        """No other descriptor holds this file, until this one is closed. Raises `TraceLocked` at once if one does."""
        for _ in range(_LOCK_ATTEMPTS):
            if _flock(handle, fcntl.LOCK_EX):
                return
            # A writer shares with nobody. Where sharing is possible, someone only looked whether there is a writer.
            if not _flock(handle, fcntl.LOCK_SH):
                break
            fcntl.flock(handle, fcntl.LOCK_UN)
            time.sleep(_LOCK_WAIT_S)
        raise TraceLocked(
            f"`{path}` has another writer: expected to be the only one",
            hint="Wait until the other run has ended, or stop it",
        )

    def has_writer(self, handle: int) -> bool:
        """Whether another descriptor holds the file by `lock`. To look takes nothing away from a writer."""
        return not _flock(handle, fcntl.LOCK_SH)

    def close(self, handle: int) -> None:
        """The descriptor and its lock are gone."""
        os.close(handle)


def _flock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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


class _JobQueue:
    """What the threads share; they hold it, and not the `Threads` that own it, so that these can be let go."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.lock = threading.Lock()
        self.open_jobs = 0
        self.started = 0

    def submit(self, job: _Job) -> None:
        with self.lock:
            self.open_jobs += 1
            missing = self.started < min(self.open_jobs, THREADS)
            self.started += missing
        self.jobs.put(job)
        if missing:
            # A daemon: a killed process loses nothing that was acknowledged, and one that exits must not hang.
            threading.Thread(target=self.work_off, name=f"remora-disk-{self.started}", daemon=True).start()

    def work_off(self) -> None:
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
        self._queue = _JobQueue()
        self._stop = weakref.finalize(self, self._queue.stop)

    async def run(self, work: Callable[..., T], *args: Any, done: Callable[[], None] | None = None) -> T:
        """The result of `work`. If the caller is cancelled, `work` still goes on to its end; then `done` is called."""
        if not self._stop.alive:
            raise TraceError("The disk cannot be reached any more: expected no work after closing")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.submit(_Job(loop, future, work, args, done))
        return await future

    def close(self) -> None:
        """What was handed in goes on to its end; then no thread is left. Nothing new is taken."""
        self._stop()
