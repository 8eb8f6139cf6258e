"""A project as one agent sees it: reads fall through to the project, writes go to the agent's own folder.

A file that the agent has read stays the same for it (a pin), so that its write is a change of what it saw. That content
is the base that an accept compares with the project: a later save by the user is never mistaken for it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
import stat
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
from remora.workspaces._view import every_file, files_below, visible_entries

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_FILES = 200
MAX_TOTAL_BYTES = 32 * 1024 * 1024
"""Bytes of all files that one agent may write, plus the previous contents of those written since the last call."""
NEW_FILE = 0o644
"""Permissions of a new file."""
LONGEST_TICK_S = 0.02
_ID = re.compile(r"[0-9A-Z]{1,64}")
"""Our ids are capital letters and digits, so that no two differ only by case."""


class OverlayWorkspace:
    """Copy-on-write over `root`. Opening copies nothing; `upper` contains only the files that were written."""

    def __init__(
        self,
        root: Path,
        upper: Path,
        *,
        max_file_bytes: int = MAX_FILE_BYTES,
        max_files: int = MAX_FILES,
        max_total_bytes: int = MAX_TOTAL_BYTES,
    ) -> None:
        """The limits apply to writes; `max_file_bytes` also to reads."""
        self._max_file_bytes = max_file_bytes
        self._max_files = max_files
        self._max_total_bytes = max_total_bytes
        self._project = Door(root, max_file=max_file_bytes)
        self._upper = Door(upper, max_file=max_file_bytes)
        self._state = _below(root, upper.parent.parent)
        self._before: dict[str, bytes | None] = {}
        self._file_count: int | None = None
        self._pins = Pins()
        self._just_read: set[str] = set()
        """Files read since changes were last taken, that is, by the current call."""
        self._was_interrupted = False
        # Calls run in threads. The lock keeps previous contents and writes consistent.
        self._lock = threading.Lock()
        _make_private(upper)
        self._opened_ns = _stamp_now(upper)

    @property
    def upper(self) -> Path:
        """The folder that contains only the changed files."""
        return self._upper.root

    async def read(self, path: str) -> bytes:
        """Read the file and pin its content. Raises `FileNotFoundError`, or `WorkspaceError` for a path outside."""
        return await asyncio.to_thread(self._locked_read, path)

    async def pin(self, path: str) -> bytes:
        """Like `read`, for a file that is given to the agent at its start: it counts as seen whenever it was saved."""
        return await asyncio.to_thread(self._pin, path)

    def look(self, path: str) -> bytes:
        """Like `read`, without pinning: for callers in their own thread that show the agent only a part of the file."""
        path = "/".join(names(path))
        with self._lock:
            found = self._content_seen(path)
            return self._project.read(path) if found is None else _require_file(path, found)

    def moved(self) -> dict[str, bytes]:
        """Files that someone saved after the agent read them, with the content that the agent read."""
        with self._lock:
            stored = [(path, data) for path, data in self._pins.stored() if self._upper.mode(path) is None]
            return {path: data for path, data in stored if self._differs(path, data)}

    def changed(self) -> list[str]:
        """Every file that the agent has changed."""
        with self._lock:
            return sorted(every_file(self._upper))

    async def write(self, path: str, data: bytes) -> None:
        """Write `data` to `path`, for this agent only."""
        await asyncio.to_thread(self._write, path, data)

    async def exists(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        return await asyncio.to_thread(self._exists, path)

    async def files(self, under: str = "") -> list[str]:
        """Every file at and below `under`, sorted: project files that are not ignored, and all changed files."""
        return await asyncio.to_thread(self._files, _folder(under))

    async def list_dir(self, path: str = "") -> list[str]:
        """Names in a folder, sorted; folders end with `/`. Raises `FileNotFoundError`."""
        return await asyncio.to_thread(self._list, _folder(path))

    def take_changes(self) -> tuple[Written, ...]:
        """The files written since the last call."""
        with self._lock:
            taken, self._before = self._before, {}
            self._just_read.clear()
            changes = [
                Written(path, before, self._upper.read(path), self._mode(path)) for path, before in taken.items()
            ]
        return tuple(change for change in changes if change.before != change.after)

    async def restore(self, files: Mapping[str, bytes], *, began_ns: int | None = None) -> None:
        """Make the workspace contain exactly these changed files. They do not count as new changes.

        `began_ns`: when the agent began, if it was interrupted. What it had read until then is unknown, so it may not
        change a file that was saved since.
        """
        await asyncio.to_thread(self._restore, files, began_ns)

    def _restore(self, files: Mapping[str, bytes], began_ns: int | None) -> None:
        wanted = {"/".join(names(path)): data for path, data in files.items()}
        with self._lock:
            if began_ns is not None:
                self._opened_ns, self._was_interrupted = began_ns, True
            _delete_contents(self.upper)
            for path, data in wanted.items():
                self._upper.write(path, data, mode=PRIVATE_FILE, folder_mode=PRIVATE_FOLDER, sync=False)
            self._before, self._file_count = {}, None

    def _mode(self, path: str) -> int:
        mode = self._project.mode(path)
        return NEW_FILE if mode is None else mode & 0o777

    def _files(self, under: str) -> list[str]:
        with self._lock:
            if under and self._is_file(under):
                return [under]
            found = {*files_below(self._project, under, without=self._state), *every_file(self._upper, under)}
        if not found and under:
            self._list(under)  # raises if there is no such folder
        return sorted(found)

    def _list(self, folder: str) -> list[str]:
        with self._lock:
            if folder and self._is_file(folder):
                raise WorkspaceError(f"`{folder}` is a file: expected a folder")
            ours = _entries(self._upper.entries, folder)
            theirs = _entries(partial(visible_entries, self._project, without=self._state), folder)
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
        found = self._content_seen(path)
        return _require_file(path, self._read_and_pin(path) if found is None else found)

    def _content_seen(self, path: str) -> _Content | None:
        """The agent's content of the path: its own or as it read it. None if it has not read it."""
        try:
            return _Content(self._upper.read(path))
        except FileNotFoundError:
            pin = self._pins.get(path)
        return None if pin is None else _Content(self._as_read(path, pin))

    def _read_and_pin(self, path: str) -> _Content:
        """Read the file from the project and pin it for this agent."""
        # Checked after reading, so that a save in between counts as late.
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
                f"`{path}` was saved after this agent had read it, and is too large for its previous content to be kept"
            )
        return now

    def _in_project(self, path: str) -> bytes | None:
        try:
            return self._project.read(path)
        except FileNotFoundError:
            return None

    def _differs(self, path: str, data: bytes) -> bool:
        try:
            return self._in_project(path) != data
        except WorkspaceError:
            return True  # a link or a folder: not a readable file

    def _is_late(self, path: str) -> bool:
        """Whether the file was saved after the agent began."""
        saved_ns = self._project.changed_at_ns(path)
        return saved_ns is not None and saved_ns >= self._opened_ns

    def _base(self, path: str) -> bytes | None:
        """The content that a write to the path replaces: what the agent saw.

        Raises `WorkspaceError` if that is uncertain.

        Searches, commands and the Hub may have shown the agent parts of a file before a save. So a file that was saved
        after the agent began must have been read by an earlier call.
        """
        if self._upper.mode(path) is not None:
            return self._upper.read(path)
        pin = self._pins.get(path)
        if pin is None:
            data = self._in_project(path)
            if not self._is_late(path):
                return data
        elif not pin.is_late or not (path in self._just_read or self._was_interrupted):
            return self._as_read(path, pin)
        self._pins.drop(path)  # so that a retry does not count as a read
        began = "began, and was then interrupted" if self._was_interrupted else "began"
        what = "it may not be changed" if self._was_interrupted else "read it first, in a separate call"
        raise WorkspaceError(f"`{path}` was saved after this agent {began}: {what}")

    def _write(self, path: str, data: bytes) -> None:
        # Normalized, so that one file has one name.
        path = "/".join(names(path))
        if len(data) > self._max_file_bytes:
            raise WorkspaceError(f"`{path}` would have {len(data):,} bytes: the limit is {self._max_file_bytes:,}")
        with self._lock:
            before = self._base(path)
            self._project.check_parents(path)
            is_new = self._upper.mode(path) is None
            if is_new and self._count_files() >= self._max_files:
                raise WorkspaceError(f"`{path}` would be one changed file too many: the limit is {self._max_files:,}")
            self._check_total(path, data, before)
            counted = self._count_files()
            self._upper.write(path, data, mode=PRIVATE_FILE, folder_mode=PRIVATE_FOLDER, sync=False)
            self._file_count = counted + is_new
            self._before.setdefault(path, before)

    def _check_total(self, path: str, data: bytes, before: bytes | None) -> None:
        """Raises `WorkspaceError` if all files and their previous contents exceed the limit: both are in memory."""
        sizes = {name: (self.upper / name).stat().st_size for name in every_file(self._upper)}
        sizes[path] = len(data)
        held = {path: before, **self._before}
        total = sum(sizes.values()) + sum(len(was) for was in held.values() if was is not None)
        if total > self._max_total_bytes:
            raise WorkspaceError(
                f"`{path}` would exceed the total size of changed files: the limit is {self._max_total_bytes:,} bytes"
            )

    def _count_files(self) -> int:
        """Number of changed files. Counted once, because nothing else writes there."""
        if self._file_count is None:
            self._file_count = sum(1 for _ in every_file(self._upper))
        return self._file_count

    def _exists(self, path: str) -> bool:
        path = "/".join(names(path))
        with self._lock:
            found = self._is_file(path)
            if not found and self._pins.get(path) is None:
                self._pins.add(path, None, is_late=False)
            return found

    def _is_file(self, path: str) -> bool:
        pin = self._pins.get(path)
        if self._upper.mode(path) is not None:
            return True
        return self._project.mode(path) is not None if pin is None else pin.digest is not None


class _Content(NamedTuple):
    """The agent's content of a path. None if there is no file."""

    data: bytes | None


def _require_file(path: str, content: _Content) -> bytes:
    if content.data is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return content.data


def _folder(path: str) -> str:
    """Normalize the path of a folder. Empty for the project itself."""
    return "" if path in ("", ".", "./") else "/".join(names(path.removesuffix("/")))


def _entries(look: Callable[[str], Entries], folder: str) -> Entries | None:
    try:
        return look(folder)
    except FileNotFoundError:
        return None


def _below(root: Path, folder: Path) -> str:
    """The path of `folder` relative to `root`, or empty if it is elsewhere."""
    inside = folder.is_relative_to(root) and folder != root
    return folder.relative_to(root).as_posix() if inside else ""


def workspace_folder(state_dir: Path, agent_id: str) -> Path:
    """The folder of an agent's own files. Raises `WorkspaceError` for an id that Remora did not assign."""
    if not _ID.fullmatch(agent_id):
        raise WorkspaceError(f"{agent_id!a:.120} is not the id of an agent: expected capital letters and digits")
    return state_dir / "workspaces" / agent_id


def _delete_contents(upper: Path) -> None:
    """Delete everything in the folder. Links are removed, never followed."""
    for entry in os.scandir(upper):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()


def _make_private(upper: Path) -> None:
    """Create the folder and its parent, accessible only to the owner. Raises `WorkspaceError` for a link.

    A parent that all users share, such as `/tmp`, stays as it is.
    """
    for folder in (upper.parent, upper):
        if folder.is_symlink():
            raise WorkspaceError(f"`{folder}` is a link: expected a folder created by Remora")
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if not folder.stat().st_mode & stat.S_ISVTX:
            folder.chmod(PRIVATE_FOLDER)


def _stamp_now(upper: Path) -> int:
    """A timestamp greater than that of every file saved before, and not greater than that of any file saved later.

    File timestamps come from a clock with ticks of a few milliseconds, so this waits for the next tick. It does not
    wait for file systems that count in seconds: there, a file saved just before counts as later.
    """
    upper.chmod(PRIVATE_FOLDER)
    before = upper.stat().st_ctime_ns
    ends = time.monotonic() + LONGEST_TICK_S
    while time.monotonic() < ends:
        upper.chmod(PRIVATE_FOLDER)
        now = upper.stat().st_ctime_ns
        if now > before:
            return now
        before = now  # also if the clock was set back
        time.sleep(LONGEST_TICK_S / 40)
    return before
