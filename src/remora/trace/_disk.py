"""The one door through which streams and blobs reach the disk.

Every call that decides whether an acknowledged byte survives a power loss stands here, so that a test can record the
calls, or make any of them fail, by a subclass.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path

from remora.errors import TraceError, TraceLocked

DIR_MODE = 0o700
FILE_MODE = 0o600
# A repository may bring its own state directory: a link planted there must not lead a write elsewhere.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
# Whoever looks for a writer is gone in microseconds; a real writer is never waited for.
_LOOKS, _LOOK_S = 50, 0.001


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
        for _ in range(_LOOKS):
            if _flock(handle, fcntl.LOCK_EX):
                return
            # A writer shares with nobody. Where sharing is possible, someone only looked whether there is a writer.
            if not _flock(handle, fcntl.LOCK_SH):
                break
            fcntl.flock(handle, fcntl.LOCK_UN)
            time.sleep(_LOOK_S)
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
