"""One stream, open for appending: the lock, the tail, the write, the sync.

Everything here blocks, and is called by one thread at a time.

    open      lock the file; check it; set a torn tail aside into `{id}.torn`; sync file and directory
    append    number and encode the drafts, one write, one sync; only then do `seq` and head move on
    note      after what ends or decides something, and at closing, the head goes into the ledger
    after an error of write or sync: poisoned, for good. What reached the disk is unknown, and asking again could
    be answered from memory instead of from the disk.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
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

SyncMode = Literal["always", "turn", "off"]

_TURN_SYNCS = frozenset({"turn_start", "tool_call", SEAL})
_NOTED = frozenset({SEAL, "run_end", "workspace_accepted", "workspace_rejected", "accept_undone"})
"""After these, a stream may stay as it is for good, also where nobody comes to close it."""

_HINT = "Everything acknowledged before is safe. See to the disk, then resume the run"


class OpenStream:
    """The only writer of one stream file."""

    def __init__(
        self, path: Path, *, disk: Disk, sync: SyncMode, now: Callable[[], str], folders: Folders, ledger: Ledger
    ) -> None:
        self.path = path
        self.turn = asyncio.Lock()
        """Held by whoever's call is being worked on."""
        self.at = Position()
        """Where the next line goes: everything before it is acknowledged."""
        self.known = False
        """Whether `at` speaks for the file, because no one else may have changed it."""
        self.sealed = False
        self.poison: str | None = None
        self._disk = disk
        self._sync: SyncMode = "always" if sync == "turn" and path.parent.name == "runs" else sync
        self._now = now
        self._folders = folders
        self._ledger = ledger
        self._unnoted = False
        """Whether lines were written here that the ledger does not cover."""
        self._handle: int | None = None
        self._unsynced = False

    def open(self) -> None:
        """The stream is ours and whole. Raises `TraceLocked`, `TracePoisoned`, or `TraceDamaged` if it cannot be."""
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
        """Whether appending these may wait for the disk: always for the first ones, which open the stream."""
        return self._handle is None or self._must_sync(drafts)

    def _must_sync(self, events: Sequence[Event]) -> bool:
        return self._sync == "always" or (self._sync == "turn" and any(event.type in _TURN_SYNCS for event in events))

    def append(self, drafts: Sequence[Draft]) -> tuple[Event, ...]:
        """The drafts as recorded, durable by the rules of `sync`."""
        self.open()
        if self.sealed:
            raise TraceSealed(f"`{self.path}` has ended with `{SEAL}`: nothing can follow")
        batch = number(drafts, seq=self.at.line, prev=self.at.prev, now=self._now)
        data = b"\n".join(batch.lines) + b"\n"
        self._write(data, sync=self._must_sync(batch.events))
        self.at = Position(self.at.line + len(batch.lines), self.at.offset + len(data), batch.head)
        self._unnoted = True
        if any(event.type in _NOTED for event in batch.events):
            self._note()
        if batch.sealed:
            self.sealed = True
            self._release()
        return batch.events

    def close(self) -> None:
        """What was written is synced (unless syncs are off), and another writer may have the stream."""
        if self._handle is not None and self._unsynced and self._sync != "off":
            try:
                self._disk.sync(self._handle)
            except OSError as error:
                raise self._poisoned(error) from error
        if self._handle is not None and self._unnoted:
            self._note()
        self._release()
        self.known = self.sealed or self.poison is not None

    def _note(self) -> None:
        """The ledger covers all that was written. To be called while the lock is held, so that notes are in order."""
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
                self._disk.sync(self._handle)
                self._unsynced = False
        except OSError as error:
            raise self._poisoned(error) from error
        except BaseException as error:
            self._poisoned(error)
            raise

    def _recover(self, handle: int) -> None:
        """The file ends with a whole record. Raises `TraceDamaged` if more than its tail is broken."""
        last = self._find_end()
        size = self.path.stat().st_size
        if size > self.at.offset:
            self._set_aside(handle)
        self.sealed = last is not None and last.type == SEAL
        if self._sync != "off":
            # A killed writer may have left lines, and even the name itself, that no sync has reached yet.
            if size:
                self._disk.sync(handle)
            self._disk.sync_dir(self.path.parent)
        if self.sealed:
            self._release()

    def _find_end(self) -> Record | None:
        """The last whole record, with `at` behind it. Whole is judged over all lines: a resume reads them anyway."""
        last = None
        self.at = skim(self.path)
        try:
            for last in read_records(self.path, start=self.at, quick=True):
                self.at = after(last)
        except TraceDamaged:
            # Torn is what never was a whole record. A record that is there and does not fit was acknowledged once:
            # cutting it off could make a side effect happen twice.
            if any(map(_is_record, read_lines(self.path, offset=self.at.offset))):
                raise
        return last

    def _set_aside(self, handle: int) -> None:
        """The bytes after the last whole record stand in `{id}.torn` instead of in the stream."""
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
        """Between opening and locking, a prune may have deleted the file: what is appended then would be lost."""
        if not self.path.exists() or not os.path.samestat(os.fstat(handle), self.path.stat()):
            raise TraceLocked(f"`{self.path}` was just deleted by someone else: expected to be the only one at it")

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
