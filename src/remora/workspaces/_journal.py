"""What a change of the project is about to do, on the disk before it is done: `accept.json`.

It lies in a folder of the user's own, outside the project: whoever could write it could have any file changed.

    staging   files are being laid beside their places: nothing of the project has changed
    putting   all of them are there: some may be in their places already
    back      all that was in its place has been taken out again: only what waits beside is still to go
    put       all are in their places; only the record in the run's stream may be missing

There is at most one, and only who holds the lock may touch it. It holds both contents of every file, so that a change
can be finished, merged or taken back whatever else is on the disk.
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
    """One file of a change: what must be there before, what is there after, and the name it waits under."""

    path: str
    mode: int
    base: bytes | None
    after: bytes | None
    staged: str

    @property
    def waiting(self) -> str:
        """The path of the file that waits, or that was taken out."""
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
    """Folders to remove at the end if they are empty then."""
    root: tuple[int, int] = (0, 0)
    """Device and inode of the project's folder: another folder at the same path is not touched."""
    note: Mapping[str, Any] = field(default_factory=dict)
    """What its record needs; nothing here looks into it."""

    def save(self, state_dir: Path, *, sync: bool = True) -> None:
        """It is in its file, the old one or the new, and on the disk where asked."""
        text = json.dumps({"v": VERSION, **asdict(self)}, default=_encoded).encode()
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
    """The journal of a change that has not ended, or None. Raises `WorkspaceError` for one that cannot be read."""
    try:
        value = json.loads((state_dir / FILE).read_bytes())
        if value.pop("v") != VERSION:
            raise ValueError("it was written by another version")
        if value["phase"] not in get_args(Phase):
            raise ValueError(f"its phase is {value['phase']!r}")
        more = {name: tuple(value[name]) for name in ("made", "drop", "root")}
        return Journal(phase=value["phase"], steps=tuple(map(_step, value["steps"])), note=value["note"], **more)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, WorkspaceError) as error:
        raise WorkspaceError(
            f"`{state_dir / FILE}` cannot be read ({error}): expected the journal of an accept that was cut off",
            hint="Look at the project's files, then delete it",
        ) from error


def root_of(root: Path) -> tuple[int, int]:
    """Which folder it is, whatever its name."""
    found = root.stat()
    return found.st_dev, found.st_ino


def forget(state_dir: Path) -> None:
    """The change has ended: there is no journal any more."""
    (state_dir / FILE).unlink(missing_ok=True)


@contextlib.contextmanager
def locked(state_dir: Path) -> Iterator[bool]:
    """Whether no one else changes the project until this ends. Does not wait."""
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
    return Step(**{**value, "base": _decoded(value["base"]), "after": _decoded(value["after"])})


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} does not belong in a journal")


def _decoded(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)
