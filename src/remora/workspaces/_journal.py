"""The write-ahead journal of a change to the project: `accept.json`.

It is in a folder of the user outside the project: whoever can write it can change any file.

    staging   files are being staged beside their places: the project is unchanged
    putting   all files are staged: some may already be in place
    back      everything in place was rolled back: only staged files remain to be deleted
    put       all files are in place: only the record in the run's stream may be missing

There is at most one journal, and only the holder of the lock may touch it. It contains both versions of every file, so
that a change can be finished, merged or rolled back whatever else is on disk.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from remora.errors import WorkspaceError
from remora.workspaces._door import is_staged_name, names

Phase = Literal["staging", "putting", "back", "put"]
FILE = "accept.json"
LOCK = "accept.lock"
VERSION = 2


@dataclass(frozen=True)
class Step:
    """One file of a change: its content before and after, and its staged name."""

    path: str
    mode: int
    base: bytes | None
    after: bytes | None
    staged: str

    @property
    def staged_path(self) -> str:
        """The path of the staged file, or of the previous file after an exchange."""
        folder, slash, _ = self.path.rpartition("/")
        return f"{folder}{slash}{self.staged}"


@dataclass(frozen=True)
class Journal:
    """One change of the project."""

    phase: Phase
    steps: tuple[Step, ...]
    made: tuple[str, ...] = ()
    """Folders that did not exist before."""
    drop: tuple[str, ...] = ()
    """Folders to remove at the end if they are empty."""
    root: tuple[int, int] = (0, 0)
    """Device and inode of the project folder. Another folder at the same path is not touched."""
    note: Mapping[str, Any] = field(default_factory=dict)
    """Data for the change's record. Opaque here."""

    def save(self, state_dir: Path, *, sync: bool = True) -> None:
        """Write the journal atomically, and sync it if asked."""
        text = json.dumps({"v": VERSION, **asdict(self)}, default=_encode).encode()
        waiting = state_dir / f"{FILE}.new"
        handle = os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            if sync:
                os.fsync(handle)
        waiting.rename(state_dir / FILE)
        if sync:
            _sync_folder(state_dir)


def load(state_dir: Path) -> Journal | None:
    """The journal of an unfinished change, or None. Raises `WorkspaceError` if it is not valid."""
    try:
        value = json.loads((state_dir / FILE).read_bytes())
        if value.pop("v") != VERSION:
            raise ValueError("another version wrote it")
        if value["phase"] not in get_args(Phase):
            raise ValueError(f"its phase is {value['phase']!r}")
        more = {name: tuple(value[name]) for name in ("made", "drop", "root")}
        return Journal(phase=value["phase"], steps=tuple(map(_step, value["steps"])), note=value["note"], **more)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, WorkspaceError) as error:
        raise WorkspaceError(
            f"`{state_dir / FILE}` is not valid ({error}): expected the journal of an interrupted accept",
            hint="Check the project's files, then delete it",
        ) from error


def identify_folder(root: Path) -> tuple[int, int]:
    """Device and inode of the folder, which identify it whatever its path."""
    info = root.stat()
    return info.st_dev, info.st_ino


def forget(state_dir: Path) -> None:
    """Delete the journal: the change has ended."""
    (state_dir / FILE).unlink(missing_ok=True)


@contextlib.contextmanager
def locked(state_dir: Path) -> Iterator[bool]:
    """Take the lock on the project without waiting. Yields False if another process holds it."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(state_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _step(value: Mapping[str, Any]) -> Step:
    if not is_staged_name(value["staged"]):
        raise ValueError(f"{value['staged']!r:.80} is not the name of a staged file")
    names(value["path"])
    return Step(**{**value, "base": _decode(value["base"]), "after": _decode(value["after"])})


def _encode(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} cannot be stored in a journal")


def _decode(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)
