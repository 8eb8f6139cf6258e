"""What a person does with an agent's work: look at it, and take it over."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from remora.errors import WorkspaceConflict
from remora.workspaces._door import Door
from remora.workspaces._merge import merge, split

NEW_FILE = 0o644


@dataclass(frozen=True)
class Change:
    """One file, as the agent found it and as it left it. None means that there is no file."""

    path: str
    base: bytes | None
    after: bytes | None
    mode: int = NEW_FILE


def unified(changes: Sequence[Change]) -> str:
    """The changes as a unified diff that `patch` and `git apply` take, but for binary files, which are only named."""
    return "".join(_unified(change) for change in changes if change.base != change.after)


def _unified(change: Change) -> str:
    old = "/dev/null" if change.base is None else _quoted("a/" + change.path)
    new = "/dev/null" if change.after is None else _quoted("b/" + change.path)
    try:
        before, after = (_text_lines(side or b"") for side in (change.base, change.after))
    except UnicodeDecodeError:
        return f"Binary files {old} and {new} differ\n"
    if not before and not after:
        return f"--- {old}\n+++ {new}\n"
    return "".join(_ended(line) for line in difflib.unified_diff(before, after, old, new))


def _text_lines(data: bytes) -> list[str]:
    if b"\0" in data:
        raise UnicodeDecodeError("utf-8", data, 0, 1, "NUL")
    return [line.decode() for line in split(data)]


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _quoted(path: str) -> str:
    """Names that could be taken for lines of the diff are quoted as git does."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else "".join(f"\\{b:03o}" for b in c.encode()) for c in escaped) + '"'


def accept(root: Path, changes: Sequence[Change]) -> list[Change]:
    """Take the changes into the project: all of them, or none.

    Returns what was really done: each file's content before (`base`) and after, edits of both sides merged where they
    do not touch. Raises `WorkspaceConflict` naming every file where they do; then nothing has been written.
    """
    door = Door(root)
    planned = _plan(door, changes)
    staged: dict[str, str] = {}
    try:
        for change in planned:
            if change.after is not None:
                staged[change.path] = door.stage(change.path, change.after, mode=change.mode)
        _unchanged(door, planned)
        _put_all(door, planned, staged)
    finally:
        for path, name in staged.items():
            door.discard(path, name)
    return planned


def _plan(door: Door, changes: Sequence[Change]) -> list[Change]:
    planned: list[Change] = []
    conflicts: list[str] = []
    for change in changes:
        now = _content(door, change.path)
        if now == change.after:
            continue
        result = change.after if now == change.base else _merged(change, now)
        if result is None and now != change.base:
            conflicts.append(change.path)
            continue
        mode = door.mode(change.path)
        planned.append(replace(change, base=now, after=result, mode=(change.mode if mode is None else mode) & 0o777))
    if conflicts:
        raise WorkspaceConflict(conflicts)
    return planned


def _merged(change: Change, now: bytes | None) -> bytes | None:
    if change.base is None or change.after is None or now is None:
        return None
    return merge(change.base, change.after, now)


def _content(door: Door, path: str) -> bytes | None:
    try:
        return door.read(path)
    except FileNotFoundError:
        return None


def _unchanged(door: Door, planned: Sequence[Change]) -> None:
    """Someone may have saved a file while we staged: then nothing is overwritten."""
    if moved := [change.path for change in planned if _content(door, change.path) != change.base]:
        raise WorkspaceConflict(moved)


def _put_all(door: Door, planned: Sequence[Change], staged: dict[str, str]) -> None:
    done: list[Change] = []
    try:
        for change in planned:
            if change.path in staged:
                door.put(change.path, staged[change.path])
            else:
                door.remove(change.path)
            done.append(change)
        for change in planned:
            door.sync(change.path)
    except BaseException:
        for change in reversed(done):
            with contextlib.suppress(OSError):
                _restore(door, change)
        raise


def _restore(door: Door, change: Change) -> None:
    if change.base is None:
        door.remove(change.path)
    else:
        door.write(change.path, change.base, mode=change.mode)
