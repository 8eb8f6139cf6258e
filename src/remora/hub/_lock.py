"""The writer lock of the index: one process at a time, and others can see whether it is alive."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remora.hub._models import LOCK

BEAT_S = 0.5
"""Interval of the daemon's heartbeat."""
SILENT_S = 3.0
"""After this time without a heartbeat the daemon counts as stopped or stuck."""
_RETRY_S = 0.2
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True)
class Holder:
    """The process that holds the lock."""

    pid: int
    role: str
    """`daemon`, or `index` for indexing on demand."""
    since: str
    silent_s: float
    """Seconds since its last heartbeat."""

    @property
    def is_daemon(self) -> bool:
        """Whether it is a daemon that is alive and keeps the index fresh."""
        return self.role == "daemon" and self.silent_s < SILENT_S


class WriterLock:
    """The lock of one state directory. Released when the process ends, however it ends."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / LOCK
        self._handle: int | None = None

    def take(self, role: str, since: str) -> bool:
        """Try to take the lock. Retries briefly, because a reader may hold it for a moment."""
        until = time.monotonic() + _RETRY_S
        handle = os.open(self._path, _FLAGS, 0o600)
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    os.close(handle)
                    return False
                time.sleep(0.005)
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "role": role, "since": since}).encode(), 0)
        self._handle = handle
        return True

    def beat(self) -> None:
        """Update the heartbeat."""
        if self._handle is not None:
            os.utime(self._handle)

    def is_ours(self) -> bool:
        """Whether we hold the lock that others see: the file may have been deleted."""
        if self._handle is None:
            return False
        try:
            return self._path.stat().st_ino == os.fstat(self._handle).st_ino
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock."""
        if self._handle is not None:
            with suppress(OSError):
                os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None

    def holder(self) -> Holder | None:
        """The current holder, which may be this process; None if the lock is free."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(handle)
            silent = max(0.0, time.time() - os.fstat(handle).st_mtime)
            return Holder(int(holder.get("pid", 0)), str(holder.get("role", "")), str(holder.get("since", "")), silent)
        finally:
            os.close(handle)
        return None


def _read_holder(handle: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(handle, 4096, 0) or b"{}")
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}
