"""System calls for streams and blobs, and the threads that run them outside the event loop.

All calls that decide whether acknowledged bytes survive a power loss are methods of `Disk`. A test can subclass it to
record the calls or to make one of them fail.

On a fast disk, most of the time of an append is the hand-over to a thread and back. `Threads` uses only a queue and
`call_soon_threadsafe`, which takes half the time of `run_in_executor`.
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
# Do not follow symbolic links: a repository may ship a state directory with a planted one.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
# `has_writer` holds a shared lock for microseconds. `lock` retries over that time, and never waits for a real writer.
_LOCK_ATTEMPTS, _LOCK_WAIT_S = 50, 0.001


class Disk:
    """Thin wrappers around system calls. Raise `OSError`, which the caller translates."""

    def make_dir(self, path: Path) -> None:
        """Create a directory with mode 0700 unless it exists."""
        if path.is_symlink():
            raise TraceError(f"`{path}` is a symbolic link: expected a directory")
        try:
            path.mkdir(mode=DIR_MODE)
        except FileExistsError:
            if not path.is_dir():
                raise
        else:
            path.chmod(DIR_MODE)  # in spite of the umask

    def open_append(self, path: Path) -> int:
        """Open a file for appending; create it with mode 0600 if it is missing."""
        try:
            handle = os.open(path, _APPEND | os.O_CREAT | os.O_EXCL, FILE_MODE)
        except FileExistsError:
            return os.open(path, _APPEND)
        os.fchmod(handle, FILE_MODE)
        return handle

    def write(self, handle: int, data: bytes) -> None:
        """Write all of `data`, in as many calls as needed."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.write_some(handle, rest) :]

    def write_some(self, handle: int, data: memoryview) -> int:
        """Write once; return how many bytes the system took."""
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        """Flush the file's data, and the size needed to read it, to the disk."""
        if sys.platform == "darwin":
            # On macOS, fsync does not flush the drive's cache.
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        elif hasattr(os, "fdatasync"):
            os.fdatasync(handle)
        else:
            os.fsync(handle)

    def sync_dir(self, path: Path) -> None:
        """Flush the entries of a directory to the disk."""
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file, replacing the target."""
        source.replace(target)

    def truncate(self, handle: int, size: int) -> None:
        """Cut the file after `size` bytes."""
        os.ftruncate(handle, size)

    def lock(self, handle: int, path: Path) -> None:
        """Lock the file until `handle` is closed. Raises `TraceLocked` at once if there is another writer."""
        for _ in range(_LOCK_ATTEMPTS):
            if _flock(handle, fcntl.LOCK_EX):
                return
            # A writer holds an exclusive lock. If a shared lock works, another process was only in `has_writer`.
            if not _flock(handle, fcntl.LOCK_SH):
                break
            fcntl.flock(handle, fcntl.LOCK_UN)
            time.sleep(_LOCK_WAIT_S)
        raise TraceLocked(
            f"`{path}` has another writer: expected to be the only one",
            hint="Wait until the other run has ended, or stop it",
        )

    def has_writer(self, handle: int) -> bool:
        """Whether another descriptor holds the file by `lock`. Does not disturb that writer."""
        return not _flock(handle, fcntl.LOCK_SH)

    def close(self, handle: int) -> None:
        """Close the descriptor and release its lock."""
        os.close(handle)


def _flock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


T = TypeVar("T")

# Threads that sync at the same time share one commit of the file system's journal, so many agents pay for few syncs.
# For 64 streams, 16 to 32 threads were fastest, and 64 were slower.
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
        """Resolve the caller's future unless it is done."""
        if self.done is not None:
            self.done()
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class _JobQueue:
    """Shared by the threads. They do not reference `Threads`, so that it can be garbage-collected."""

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
            # Daemon threads: a killed process loses nothing acknowledged, and exiting must not hang.
            threading.Thread(target=self.work_off, name=f"remora-disk-{self.started}", daemon=True).start()

    def work_off(self) -> None:
        while (job := self.jobs.get()) is not None:
            job.run()
            with self.lock:
                self.open_jobs -= 1
            with suppress(RuntimeError):  # the loop is closed, so nothing awaits the future
                job.loop.call_soon_threadsafe(job.finish)
            del job

    def stop(self) -> None:
        for _ in range(self.started):
            self.jobs.put(None)


class Threads:
    """Runs blocking functions in its own threads."""

    def __init__(self) -> None:
        self._queue = _JobQueue()
        self._stop = weakref.finalize(self, self._queue.stop)

    async def run(self, work: Callable[..., T], *args: Any, done: Callable[[], None] | None = None) -> T:
        """Run `work` in a thread, then call `done`. `work` runs to its end even if the caller is cancelled."""
        if not self._stop.alive:
            raise TraceError("The store is closed: expected no calls after closing")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.submit(_Job(loop, future, work, args, done))
        return await future

    def close(self) -> None:
        """Accept no more work and stop the threads once the queue is empty."""
        self._stop()
