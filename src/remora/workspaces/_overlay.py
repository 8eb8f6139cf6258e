"""A project as one agent sees it: reads fall through to the project, writes stay in the agent's own folder."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from remora.errors import WorkspaceError
from remora.ports import Written
from remora.workspaces._door import Door, Entries, names
from remora.workspaces._view import every_file, files_below, shown

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_FILES = 200
MAX_TOTAL_BYTES = 32 * 1024 * 1024
"""Bytes of all files that one agent may write, with what was there before those since the last call."""
NEW_FILE = 0o644
"""Permissions of a file that the project did not have."""
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
        # Calls run in threads; one at a time keeps what was before and what was written together.
        self._lock = threading.Lock()
        _make_private(upper)

    @property
    def upper(self) -> Path:
        """The folder that holds the changed files, and only those."""
        return self._own.root

    async def read(self, path: str) -> bytes:
        """The file's bytes. Raises `FileNotFoundError`, or `WorkspaceError` for a path that leads outside."""
        return await asyncio.to_thread(self._locked_read, path)

    def look(self, path: str) -> bytes:
        """As `read`, for those who are in a thread of their own."""
        return self._locked_read(path)

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
            changes = [Written(path, before, self._content(path), self._mode(path)) for path, before in taken.items()]
        return tuple(change for change in changes if change.before != change.after)

    async def restore(self, files: Mapping[str, bytes]) -> None:
        """The workspace holds exactly these changed files, whatever was in it, and nothing of it counts as a change."""
        await asyncio.to_thread(self._restore, files)

    def _restore(self, files: Mapping[str, bytes]) -> None:
        wanted = {"/".join(names(path)): data for path, data in files.items()}
        with self._lock:
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

    def _read(self, path: str) -> bytes:
        try:
            return self._own.read(path)
        except FileNotFoundError:
            return self._project.read(path)

    def _content(self, path: str) -> bytes | None:
        try:
            return self._read(path)
        except FileNotFoundError:
            return None

    def _write(self, path: str, data: bytes) -> None:
        # One name for one file, or its changes would be told apart by how they were spelt.
        path = "/".join(names(path))
        if len(data) > self._max_file_bytes:
            raise WorkspaceError(
                f"`{path}` would have {len(data):,} bytes: at most {self._max_file_bytes:,} may be written"
            )
        with self._lock:
            before = self._content(path)
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
        with self._lock:
            return self._is_file(path)

    def _is_file(self, path: str) -> bool:
        return self._own.mode(path) is not None or self._project.mode(path) is not None


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
