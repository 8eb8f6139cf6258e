"""A project as one agent sees it: reads fall through to the project, writes stay in the agent's own folder.

A file that the agent has read stays for it as it was then, so that what it writes is a change of what it saw. That is
the base to which an accept compares the project: a save of the user's is never taken for it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from remora.errors import WorkspaceError
from remora.ports import Written
from remora.workspaces._door import Door, Entries, names
from remora.workspaces._pins import Pin, Pins, digest_of
from remora.workspaces._view import every_file, files_below, shown

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_FILES = 200
MAX_TOTAL_BYTES = 32 * 1024 * 1024
"""Bytes of all files that one agent may write, with what was there before those since the last call."""
NEW_FILE = 0o644
"""Permissions of a file that the project did not have."""
LONGEST_TICK_S = 0.02
_ID = re.compile(r"[0-9A-Z]{1,64}")
"""Ids of ours are capitals and digits, so that no two differ by case alone."""


class OverlayWorkspace:
    """Copy-on-write over `root`. Opening copies nothing; `upper` holds only what was written."""

    def __init__(
        self,
        root: Path,
        upper: Path,
        *,
        max_file_bytes: int = MAX_FILE_BYTES,
        max_files: int = MAX_FILES,
        max_total_bytes: int = MAX_TOTAL_BYTES,
    ) -> None:
        """The three bound what may be written, `max_file_bytes` also what is read."""
        self._max_file_bytes = max_file_bytes
        self._max_files = max_files
        self._max_total_bytes = max_total_bytes
        self._project = Door(root, max_file=max_file_bytes)
        self._own = Door(upper, max_file=max_file_bytes)
        self._state = _below(root, upper.parent.parent)
        self._before: dict[str, bytes | None] = {}
        self._count: int | None = None
        self._pins = Pins()
        self._just_read: set[str] = set()
        """Files that were read since changes were last taken, so by the call that is under way."""
        self._was_interrupted = False
        # Calls run in threads; one at a time keeps what was before and what was written together.
        self._lock = threading.Lock()
        _make_private(upper)
        self._opened_ns = _stamp_now(upper)

    @property
    def upper(self) -> Path:
        """The folder that holds the changed files, and only those."""
        return self._own.root

    async def read(self, path: str) -> bytes:
        """The file's bytes, from now on the same. Raises `FileNotFoundError`, or `WorkspaceError` for one outside."""
        return await asyncio.to_thread(self._locked_read, path)

    async def pin(self, path: str) -> bytes:
        """As `read`, for the file that the agent is given at its start: whenever it was saved, this is what it saw."""
        return await asyncio.to_thread(self._pin, path)

    def look(self, path: str) -> bytes:
        """As `read`, for those who are in a thread of their own and give the agent no more than a part of the file."""
        path = "/".join(names(path))
        with self._lock:
            found = self._known(path)
            return self._project.read(path) if found is None else _there(path, found)

    def moved(self) -> dict[str, bytes]:
        """Files that someone has saved since the agent read them, as the agent read them."""
        with self._lock:
            kept = [(path, data) for path, data in self._pins.kept() if self._own.mode(path) is None]
            return {path: data for path, data in kept if self._is_other(path, data)}

    def changed(self) -> list[str]:
        """Every file that it has of its own."""
        with self._lock:
            return sorted(every_file(self._own))

    async def write(self, path: str, data: bytes) -> None:
        """Put `data` at `path`, for this agent only."""
        await asyncio.to_thread(self._write, path, data)

    async def exists(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        return await asyncio.to_thread(self._exists, path)

    async def files(self, under: str = "") -> list[str]:
        """Every file at and below `under`, in order: the project's that are not ignored, and all of its own."""
        return await asyncio.to_thread(self._files, _folder(under))

    async def list_dir(self, path: str = "") -> list[str]:
        """Names in a folder, in order, those of folders with a `/` at the end. Raises `FileNotFoundError`."""
        return await asyncio.to_thread(self._list, _folder(path))

    def take_changes(self) -> tuple[Written, ...]:
        """What was written since this was last asked."""
        with self._lock:
            taken, self._before = self._before, {}
            self._just_read.clear()
            changes = [Written(path, before, self._own.read(path), self._mode(path)) for path, before in taken.items()]
        return tuple(change for change in changes if change.before != change.after)

    async def restore(self, files: Mapping[str, bytes], *, began_ns: int | None = None) -> None:
        """The workspace holds exactly these changed files, whatever was in it, and nothing of it counts as a change.

        `began_ns`: when the agent began, where it was interrupted. Nobody knows any more what it had read until then,
        so it may not change a file that was saved since.
        """
        await asyncio.to_thread(self._restore, files, began_ns)

    def _restore(self, files: Mapping[str, bytes], began_ns: int | None) -> None:
        wanted = {"/".join(names(path)): data for path, data in files.items()}
        with self._lock:
            if began_ns is not None:
                self._opened_ns, self._was_interrupted = began_ns, True
            _empty(self.upper)
            for path, data in wanted.items():
                self._own.write(path, data, mode=PRIVATE_FILE, folder_mode=PRIVATE_FOLDER, sync=False)
            self._before, self._count = {}, None

    def _mode(self, path: str) -> int:
        mode = self._project.mode(path)
        return NEW_FILE if mode is None else mode & 0o777

    def _files(self, under: str) -> list[str]:
        with self._lock:
            if under and self._is_file(under):
                return [under]
            found = {*files_below(self._project, under, without=self._state), *every_file(self._own, under)}
        if not found and under:
            self._list(under)  # says so where there is no such folder
        return sorted(found)

    def _list(self, folder: str) -> list[str]:
        with self._lock:
            if folder and self._is_file(folder):
                raise WorkspaceError(f"`{folder}` is a file: expected a folder")
            ours = _entries(self._own.entries, folder)
            theirs = _entries(partial(shown, self._project, without=self._state), folder)
        if ours is None and theirs is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        found = [entries for entries in (ours, theirs) if entries is not None]
        return sorted(
            {name for entries in found for name in entries.files}
            | {f"{name}/" for entries in found for name in entries.folders}
        )

    def _locked_read(self, path: str) -> bytes:
        with self._lock:
            return self._read(path)

    def _pin(self, path: str) -> bytes:
        path = "/".join(names(path))
        with self._lock:
            self._pins.drop(path)
            data = self._project.read(path)
            self._pins.add(path, data, is_late=False)
            return data

    def _read(self, path: str) -> bytes:
        path = "/".join(names(path))
        found = self._known(path)
        return _there(path, self._pinned(path) if found is None else found)

    def _known(self, path: str) -> _Content | None:
        """What the agent has at the path: of its own, or as it read it. None where it has not looked yet."""
        try:
            return _Content(self._own.read(path))
        except FileNotFoundError:
            pin = self._pins.get(path)
        return None if pin is None else _Content(self._as_read(path, pin))

    def _pinned(self, path: str) -> _Content:
        """What is in the project now, and from now on for this agent."""
        # Looked at after it was read: a save in between makes it late, and never the other way round.
        data = self._in_project(path)
        pin = self._pins.add(path, data, is_late=self._is_late(path))
        if pin.is_late:
            self._just_read.add(path)
        return _Content(data)

    def _as_read(self, path: str, pin: Pin) -> bytes | None:
        if pin.data is not None or pin.digest is None:
            return pin.data
        now = self._in_project(path)
        if now is None or digest_of(now) != pin.digest:
            raise WorkspaceError(
                f"`{path}` was saved after this agent had read it, and is too large to be kept as it was"
            )
        return now

    def _in_project(self, path: str) -> bytes | None:
        try:
            return self._project.read(path)
        except FileNotFoundError:
            return None

    def _is_other(self, path: str, data: bytes) -> bool:
        try:
            return self._in_project(path) != data
        except WorkspaceError:
            return True  # a link, or a folder: no file that could be read

    def _is_late(self, path: str) -> bool:
        """Whether the file was saved after the agent had begun."""
        saved_ns = self._project.saved_at(path)
        return saved_ns is not None and saved_ns >= self._opened_ns

    def _base(self, path: str) -> bytes | None:
        """What a write to the path changes: what the agent saw there. Raises `WorkspaceError` if that is not sure.

        Searches, commands and the Hub may have shown the agent a part of a file that was saved since. So a file that
        was saved after the agent began must have been read by a call before this one.
        """
        if self._own.mode(path) is not None:
            return self._own.read(path)
        pin = self._pins.get(path)
        if pin is None:
            data = self._in_project(path)
            if not self._is_late(path):
                return data
        elif not pin.is_late or not (path in self._just_read or self._was_interrupted):
            return self._as_read(path, pin)
        self._pins.drop(path)  # so that trying again does not count as having read it
        began = "began, and was then interrupted" if self._was_interrupted else "began"
        what = "it stays as it is" if self._was_interrupted else "read it first, in a call of its own"
        raise WorkspaceError(f"`{path}` was saved after this agent {began}: {what}")

    def _write(self, path: str, data: bytes) -> None:
        # One name for one file, or its changes would be told apart by how they were spelt.
        path = "/".join(names(path))
        if len(data) > self._max_file_bytes:
            raise WorkspaceError(
                f"`{path}` would have {len(data):,} bytes: at most {self._max_file_bytes:,} may be written"
            )
        with self._lock:
            before = self._base(path)
            self._project.fits(path)
            is_new = self._own.mode(path) is None
            if is_new and self._counted() >= self._max_files:
                raise WorkspaceError(f"`{path}` would be one file too many: at most {self._max_files:,} may be changed")
            self._check_total(path, data, before)
            counted = self._counted()
            self._own.write(path, data, mode=PRIVATE_FILE, folder_mode=PRIVATE_FOLDER, sync=False)
            self._count = counted + is_new
            self._before.setdefault(path, before)

    def _check_total(self, path: str, data: bytes, before: bytes | None) -> None:
        """Raises `WorkspaceError` if all files, and what was there before them, would be too much: we hold both."""
        sizes = {name: (self.upper / name).stat().st_size for name in every_file(self._own)}
        sizes[path] = len(data)
        held = {path: before, **self._before}
        total = sum(sizes.values()) + sum(len(was) for was in held.values() if was is not None)
        if total > self._max_total_bytes:
            raise WorkspaceError(
                f"`{path}` would be too much: at most {self._max_total_bytes:,} bytes may be changed in all"
            )

    def _counted(self) -> int:
        """How many files it has of its own. Looked at once: nobody else writes there."""
        if self._count is None:
            self._count = sum(1 for _ in every_file(self._own))
        return self._count

    def _exists(self, path: str) -> bool:
        path = "/".join(names(path))
        with self._lock:
            found = self._is_file(path)
            if not found and self._pins.get(path) is None:
                self._pins.add(path, None, is_late=False)
            return found

    def _is_file(self, path: str) -> bool:
        pin = self._pins.get(path)
        if self._own.mode(path) is not None:
            return True
        return self._project.mode(path) is not None if pin is None else pin.digest is not None


class _Content(NamedTuple):
    """What an agent has at a path; None where there is no file."""

    data: bytes | None


def _there(path: str, content: _Content) -> bytes:
    if content.data is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return content.data


def _folder(path: str) -> str:
    """The folder's path as everyone spells it: empty for the project itself."""
    return "" if path in ("", ".", "./") else "/".join(names(path.removesuffix("/")))


def _entries(look: Callable[[str], Entries], folder: str) -> Entries | None:
    try:
        return look(folder)
    except FileNotFoundError:
        return None


def _below(root: Path, folder: Path) -> str:
    """The path of `folder` below `root`, or nothing where it is elsewhere."""
    inside = folder.is_relative_to(root) and folder != root
    return folder.relative_to(root).as_posix() if inside else ""


def workspace_folder(state_dir: Path, agent_id: str) -> Path:
    """Where an agent's own files lie. Raises `WorkspaceError` for an id that Remora did not give."""
    if not _ID.fullmatch(agent_id):
        raise WorkspaceError(f"{agent_id!a:.120} is not the id of an agent: expected capital letters and digits")
    return state_dir / "workspaces" / agent_id


def _empty(upper: Path) -> None:
    """Nothing is left in the folder. Links in it are removed, never followed."""
    for entry in os.scandir(upper):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()


def _make_private(upper: Path) -> None:
    """The folder, and the one around it, are there and their owner's only. Raises `WorkspaceError` for a link."""
    for folder in (upper.parent, upper):
        if folder.is_symlink():
            raise WorkspaceError(f"`{folder}` is a link: expected a folder of Remora's own")
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder.chmod(PRIVATE_FOLDER)


def _stamp_now(upper: Path) -> int:
    """A stamp that no file has which was saved before, and every file that is saved later has, or a later one.

    Files are stamped by a clock that ticks every few milliseconds, so this waits for the next tick. Where a file
    system counts in seconds it does not wait that long: then a file that was saved just before counts as later.
    """
    upper.chmod(PRIVATE_FOLDER)
    before = upper.stat().st_ctime_ns
    ends = time.monotonic() + LONGEST_TICK_S
    while time.monotonic() < ends:
        upper.chmod(PRIVATE_FOLDER)
        now = upper.stat().st_ctime_ns
        if now > before:
            return now
        before = now  # also where someone has set the clock back
        time.sleep(LONGEST_TICK_S / 40)
    return before
