"""One stream, open for appending: lock, recover the tail, write, sync.

All methods block, and are called by one thread at a time.

    open      lock the file; check it; move a torn tail to `{id}.torn`; sync file and directory
    append    number and encode the drafts, write once, sync once; then advance `seq` and head
    note      at an end or a decision, and on close, note the head in `heads.log`

After a failed write or sync the stream is poisoned for good. What reached the disk is unknown, and a second sync could
succeed without having written it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from remora.errors import TraceDamaged, TraceError, TraceLocked, TracePoisoned, TraceSealed
from remora.trace.files.disk import Disk
from remora.trace.files.heads import Ledger, Note
from remora.trace.files.lines import SEAL, number, parse
from remora.trace.files.reader import Position, Record, after, read_lines, read_records
from remora.trace.files.skim import skim
from remora.trace.files.state import Folders

if TYPE_CHECKING:
    from remora.events import Event
    from remora.ports import Draft

SyncMode = Literal["always", "turn", "end", "off"]
"""When an append is durable once it returns: always, at turn boundaries, only when the stream is sealed, or never."""

_TURN_SYNCS = frozenset({"turn_start", "model_request", "tool_call", SEAL})
"""With `sync: turn`: before a prompt leaves, before a tool runs, and at the end."""
_END_SYNCS = frozenset({SEAL})
_NOTED = frozenset({SEAL, "run_end", "workspace_accepted", "workspace_rejected", "accept_undone"})
"""After these events a stream may be complete, even if nobody closes it."""

SHORT_SYNC_S = 0.001
"""After a sync of at most this many seconds, a writer of one stream does the next one without a thread."""

_HINT = "Everything acknowledged before is safe. See to the disk, then resume the run"


def sync_mode_of(stream_id: str, sync: SyncMode) -> SyncMode:
    """The mode of one stream: a run's stream has no turns, so `turn` means always there."""
    return "always" if sync == "turn" and stream_id.startswith("runs/") else sync


def must_sync(sync: SyncMode, events: Sequence[Event]) -> bool:
    """Whether these events must be durable before they are acknowledged."""
    if sync in ("always", "off"):
        return sync == "always"
    waits = _TURN_SYNCS if sync == "turn" else _END_SYNCS
    return not waits.isdisjoint([event.type for event in events])


class OpenStream:
    """The only writer of one stream file."""

    def __init__(
        self, path: Path, *, disk: Disk, sync: SyncMode, now: Callable[[], str], folders: Folders, ledger: Ledger
    ) -> None:
        self.path = path
        self.turn = asyncio.Lock()
        """Held while a call is in progress."""
        self.at = Position()
        """Where the next line goes. Everything before it is acknowledged."""
        self.known = False
        """Whether `at` describes the file: nobody else can have changed it."""
        self.sealed = False
        self.poison: str | None = None
        self._disk = disk
        self._sync = sync_mode_of(f"{path.parent.name}/{path.stem}", sync)
        self._now = now
        self._folders = folders
        self._ledger = ledger
        self._unnoted = False
        """Whether lines were written that `heads.log` does not cover."""
        self._handle: int | None = None
        self._unsynced = False
        self._last_sync_s = inf

    def open(self) -> None:
        """Lock and recover the stream. Raises `TraceLocked`, `TracePoisoned` or `TraceDamaged`."""
        self._refuse_if_poisoned()
        if self._handle is not None or self.sealed:
            return
        try:
            self._folders.ready(self.path.parent)
            self._handle = self._disk.open_append(self.path)
            self._disk.lock(self._handle, self.path)
            self._refuse_if_replaced(self._handle)
            self._recover(self._handle)
        except OSError as error:
            raise self._poisoned(error) from error
        except TraceError:
            self._release()
            raise
        self.known = True

    def will_sync(self, drafts: Sequence[Draft]) -> bool:
        """Whether appending these drafts may wait for the disk. The first append does, because it opens the stream."""
        return self._handle is None or self._must_sync(drafts)

    @property
    def syncs_shortly(self) -> bool:
        """Whether the next sync is likely to take less time than its hand-over to a thread."""
        return self._handle is not None and self._sync == "turn" and self._last_sync_s <= SHORT_SYNC_S

    def _must_sync(self, events: Sequence[Event]) -> bool:
        return must_sync(self._sync, events)

    def append(self, drafts: Sequence[Draft]) -> tuple[Event, ...]:
        """Record the drafts, durable as `sync` demands."""
        self.open()
        if self.sealed:
            raise TraceSealed(f"`{self.path}` has ended with `{SEAL}`: nothing can follow")
        batch = number(drafts, seq=self.at.line, prev=self.at.prev, now=self._now)
        data = b"\n".join(batch.lines) + b"\n"
        self._write(data, sync=self._must_sync(batch.events))
        self.at = Position(self.at.line + len(batch.lines), self.at.offset + len(data), batch.head)
        self._unnoted = True
        if not _NOTED.isdisjoint([event.type for event in batch.events]):
            self._note()
        if batch.sealed:
            self.sealed = True
            self._release()
        return batch.events

    def close(self) -> None:
        """Sync what was written (unless syncs are off) and unlock the stream."""
        if self._handle is not None and self._unsynced and self._sync != "off":
            try:
                self._disk.sync(self._handle)
            except OSError as error:
                raise self._poisoned(error) from error
        if self._handle is not None and self._unnoted:
            self._note()
        self._release()
        self.known = self.sealed or self.poison is not None

    def discard(self) -> None:
        """Delete the file while it is locked. Does nothing unless it is open here and not sealed."""
        if self._handle is not None and not self.sealed:
            self.path.unlink(missing_ok=True)
            self._disk.sync_dir(self.path.parent)
            self._release()

    def _note(self) -> None:
        """Note the head in `heads.log`. Call it while holding the lock, so that notes are in order."""
        self._ledger.note(Note(f"{self.path.parent.name}/{self.path.stem}", self.at.line, self.at.prev or ""))
        self._unnoted = False

    def _write(self, data: bytes, *, sync: bool) -> None:
        assert self._handle is not None  # noqa: S101 (open() just made sure)
        try:
            if os.fstat(self._handle).st_nlink == 0:
                raise FileNotFoundError(errno.ENOENT, "the file was deleted meanwhile")
            self._unsynced = True
            self._disk.write(self._handle, data)
            if sync:
                began = time.perf_counter()
                self._disk.sync(self._handle)
                self._last_sync_s = time.perf_counter() - began
                self._unsynced = False
        except OSError as error:
            raise self._poisoned(error) from error
        except BaseException as error:
            self._poisoned(error)
            raise

    def _recover(self, handle: int) -> None:
        """Make the file end with a complete record. Raises `TraceDamaged` if more than its tail is damaged."""
        last = self._find_end()
        size = self.path.stat().st_size
        if size > self.at.offset:
            self._set_aside(handle)
        self.sealed = last is not None and last.type == SEAL
        if self._sync != "off":
            # A killed writer may have left lines, or even the file's name, without a sync.
            if size:
                self._disk.sync(handle)
            self._disk.sync_dir(self.path.parent)
        if self.sealed:
            self._release()

    def _find_end(self) -> Record | None:
        """The last complete record; sets `at` after it. Checks all lines, because a resume reads them anyway."""
        last = None
        self.at = skim(self.path)
        try:
            for last in read_records(self.path, start=self.at, quick=True):
                self.at = after(last)
        except TraceDamaged:
            # A torn tail never was a complete record. A complete record that does not fit was acknowledged: cutting it
            # off could repeat a side effect.
            if any(map(_is_record, read_lines(self.path, offset=self.at.offset))):
                raise
        return last

    def _set_aside(self, handle: int) -> None:
        """Move the bytes after the last complete record to `{id}.torn`."""
        aside = self._disk.open_append(self.path.with_suffix(".torn"))
        try:
            for torn in read_lines(self.path, offset=self.at.offset):
                self._disk.write(aside, torn)
            self._disk.sync(aside)
        finally:
            self._disk.close(aside)
        self._disk.sync_dir(self.path.parent)
        self._disk.truncate(handle, self.at.offset)

    def _refuse_if_poisoned(self) -> None:
        if self.poison is not None:
            raise TracePoisoned(self.poison, hint=_HINT)

    def _refuse_if_replaced(self, handle: int) -> None:
        """Raise if a prune deleted the file between opening and locking: appended events would be lost."""
        if not self.path.exists() or not os.path.samestat(os.fstat(handle), self.path.stat()):
            raise TraceLocked(f"`{self.path}` was deleted by another process: expected to be its only writer")

    def _poisoned(self, error: BaseException) -> TracePoisoned:
        self.poison = f"`{self.path}` takes no more events: {_reason(error)}"
        self._release()
        return TracePoisoned(self.poison, hint=_HINT)

    def _release(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            self._disk.close(handle)


def _is_record(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and parse(line[:-1]) is not None
    except TraceError:
        return False


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full" if error.errno == errno.ENOSPC else "the disk quota is used up"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"writing it failed ({text or type(error).__name__})"
