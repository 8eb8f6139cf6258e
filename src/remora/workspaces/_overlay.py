"""A project as one agent sees it: reads fall through to the project, writes stay in the agent's own folder."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from remora.errors import WorkspaceError
from remora.workspaces._door import Door

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


class OverlayWorkspace:
    """Copy-on-write over `root`. Opening copies nothing; `upper` holds only what was written."""

    def __init__(self, root: Path, upper: Path) -> None:
        self._project = Door(root)
        self._own = Door(upper)
        self._before: dict[str, bytes | None] = {}
        # Calls run in threads; one at a time keeps what was before and what was written together.
        self._lock = threading.Lock()
        _make_private(upper)

    async def read(self, path: str) -> bytes:
        """The file's bytes. Raises `FileNotFoundError`, or `WorkspaceError` for a path that leads outside."""
        return await asyncio.to_thread(self._locked_read, path)

    async def write(self, path: str, data: bytes) -> None:
        """Put `data` at `path`, for this agent only."""
        await asyncio.to_thread(self._write, path, data)

    async def exists(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        return await asyncio.to_thread(self._exists, path)

    def take_changes(self) -> tuple[tuple[str, bytes | None, bytes | None], ...]:
        """Path, content before, content after: what was written since this was last asked."""
        with self._lock:
            taken, self._before = self._before, {}
            changes = [(path, before, self._content(path)) for path, before in taken.items()]
        return tuple(change for change in changes if change[1] != change[2])

    def mode(self, path: str) -> int | None:
        """The permissions of the project's file, which an accept preserves; None where it is new."""
        return self._project.mode(path)

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
        with self._lock:
            before = self._content(path)
            self._project.fits(path)
            self._own.write(path, data, mode=PRIVATE_FILE, folder_mode=PRIVATE_FOLDER, sync=False)
            self._before.setdefault(path, before)

    def _exists(self, path: str) -> bool:
        with self._lock:
            return self._own.mode(path) is not None or self._project.mode(path) is not None


def _make_private(upper: Path) -> None:
    """The folder, and the one around it, are there and their owner's only. Raises `WorkspaceError` for a link."""
    for folder in (upper.parent, upper):
        if folder.is_symlink():
            raise WorkspaceError(f"`{folder}` is a link: expected a folder of Remora's own")
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder.chmod(PRIVATE_FOLDER)
