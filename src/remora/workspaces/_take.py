"""Writes changes into the project: all or none, without losing a concurrent save.

Every file is staged beside its place and synced. Then each is exchanged with the old file, and the old content is
checked: if it is not what was expected, the exchange is undone. The journal always says how far the change has got.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from remora.errors import WorkspaceConflict, WorkspaceError
from remora.workspaces._door import Door, staged_name
from remora.workspaces._files import Files, Result
from remora.workspaces._journal import Journal, Step, forget, identify_folder
from remora.workspaces._merge import YOU, merge
from remora.workspaces._review import Change


@dataclass(frozen=True)
class Taken:
    """The changes that were written: each file before (`base`) and after, and the folders that were created."""

    changes: tuple[Change, ...] = ()
    made: tuple[str, ...] = ()


def take(
    root: Path,
    state_dir: Path,
    changes: Sequence[Change],
    *,
    note: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    planned: bool = False,
) -> Taken:
    """Write the changes into the project: all of them, or none. The caller must hold the lock and have called `settle`.

    Edits of both sides are merged if they do not touch. Otherwise raises `WorkspaceConflict` naming every such file,
    and nothing is written. The journal stays, with `note`, until `forget`. At the end, folders in `drop` are removed if
    they are empty. With `planned`, the changes are written without merging.
    """
    door = Door(root)
    changes = changes if planned else plan(door, changes)
    if not changes:
        return Taken()
    steps = tuple(Step(each.path, each.mode, each.base, each.after, staged_name()) for each in changes)
    made = dict.fromkeys(folder for step in steps for folder in door.missing_folders(step.path))
    journal = Journal("staging", steps, tuple(made), tuple(drop), identify_folder(root), note or {})
    journal.save(state_dir)
    try:
        _stage_all(door, steps)
        journal = replace(journal, phase="putting")
        journal.save(state_dir)
        for step in steps:
            put(door, step)
        sync_all(door, steps)
    except BaseException:
        roll_back(door, journal, state_dir)
        forget(state_dir)
        raise
    finish(door, journal, state_dir)
    return changes_written(journal)


def changes_written(journal: Journal) -> Taken:
    """The changes of a journal whose phase is `put`."""
    return Taken(tuple(Change(step.path, step.base, step.after, step.mode) for step in journal.steps), journal.made)


def finish(door: Door, journal: Journal, state_dir: Path) -> None:
    """Record that everything is in place, then delete the old files."""
    journal = replace(journal, phase="put")
    journal.save(state_dir, sync=False)
    tidy(door, journal)


def tidy(door: Door, journal: Journal) -> None:
    """Delete staged files, and folders that must go if they are empty.

    A staged file with content that someone saved is kept.
    """
    for step in journal.steps:
        if journal.phase == "staging" or content(door, step.staged_path) in (step.base, step.after):
            door.discard(step.path, step.staged)
    for folder in reversed(journal.drop if journal.phase == "put" else journal.made):
        door.remove_folder(folder)


def plan(door: Door, changes: Sequence[Change], files: Files | None = None, owner: str = YOU) -> list[Change]:
    """The changes to write, given the current files or those planned so far (`files`). Raises `WorkspaceConflict`."""
    files = files or Files(door)
    planned: list[Change] = []
    for change in changes:
        now = files.now(change.path)
        if now == change.after:
            continue
        merged = files.merge(change, owner)
        if merged is None:
            continue
        _check_writable(door, change.path)
        mode = door.mode(change.path)
        door.check_parents(change.path)
        mode = (change.mode if mode is None else mode) & 0o777
        planned.append(replace(change, base=now, after=merged.text, mode=mode))
    if files.clashes:
        raise WorkspaceConflict([clash.path for clash in files.clashes], {c.path: c.lines() for c in files.clashes})
    return planned


def _check_writable(door: Door, path: str) -> None:
    """Raises `WorkspaceError` if the user made it read-only: a rename would ignore that."""
    if locked := door.read_only(path):
        what = "" if locked == path else f", so `{path}` cannot be written"
        raise WorkspaceError(
            f"`{locked}` is read-only{what}. Nothing was written. To allow it: `chmod u+w {quote(locked)}`"
        )


def merge_content(base: bytes | None, after: bytes | None, now: bytes | None) -> Result | None:
    """Merge the change from `base` to `after` into `now`. None for a conflict."""
    if now == base:
        return Result(after)
    if base is None or after is None or now is None:
        return None
    merged = merge(base, after, now)
    return None if merged is None else Result(merged)


def put(door: Door, step: Step) -> None:
    """Move one staged file into place. Raises `WorkspaceConflict` if someone saved the file, which then stays."""
    if content(door, step.path) != step.base:
        raise WorkspaceConflict([step.path])
    try:
        if step.base is None:
            door.move_in(step.path, step.staged)
            return
        if step.after is None:
            door.move_out(step.path, step.staged)
        else:
            door.swap(step.path, step.staged)
    except (FileExistsError, FileNotFoundError):
        raise WorkspaceConflict([step.path]) from None
    # Someone may have saved between the check and the rename. Then the file that came out is theirs.
    if content(door, step.staged_path) != step.base:
        put_back(door, step)
        raise WorkspaceConflict([step.path])


def put_back(door: Door, step: Step) -> None:
    """Put the file that came out back into its place."""
    if step.after is None:
        with contextlib.suppress(FileExistsError):  # a newer save stays, and the other file beside it
            door.move_in(step.path, step.staged)
    elif content(door, step.path) == step.after:
        door.swap(step.path, step.staged)


def roll_back(door: Door, journal: Journal, state_dir: Path) -> list[str]:
    """Roll the change back. Returns the files that someone changed since, which are left as they are."""
    left: list[str] = []
    if journal.phase == "putting":
        left = [
            step.path for step in reversed(journal.steps) if is_done(door, step) and not _roll_back_step(door, step)
        ]
        sync_all(door, journal.steps)
        # Staged files show which steps are done, so record the new phase before deleting any.
        journal = replace(journal, phase="back")
        journal.save(state_dir)
    tidy(door, journal)
    return left


def _roll_back_step(door: Door, step: Step) -> bool:
    now = content(door, step.path)
    if now != step.after:
        return _merge_back(door, step, now)
    if step.base is not None and content(door, step.staged_path) is None:
        door.stage(step.path, step.base, mode=step.mode, name=step.staged)
    try:
        put(door, replace(step, base=step.after, after=step.base))
    except WorkspaceConflict:
        return False
    return True


def _merge_back(door: Door, step: Step, now: bytes | None) -> bool:
    """Remove our edits from a file that someone edited since, if the edits do not touch."""
    result = merge_content(step.after, step.base, now)
    if result is None or result.text is None or content(door, step.path) != now:
        return False
    door.write(step.path, result.text, mode=step.mode)
    return True


def is_done(door: Door, step: Step) -> bool:
    """Whether the new file is in place, judging by the staged file. Puts back a concurrent save that came out."""
    spare = content(door, step.staged_path)
    if spare is not None and spare not in (step.base, step.after):
        put_back(door, step)
        return False
    if step.after is None:
        return spare is not None
    return spare is None if step.base is None else spare != step.after


def content(door: Door, path: str) -> bytes | None:
    """The file's content, or None if there is no file."""
    try:
        return door.read(path)
    except FileNotFoundError:
        return None


def _stage_all(door: Door, steps: Sequence[Step]) -> None:
    for step in steps:
        if step.after is not None:
            door.stage(step.path, step.after, mode=step.mode, name=step.staged)


def sync_all(door: Door, steps: Sequence[Step]) -> None:
    for step in steps:
        with contextlib.suppress(FileNotFoundError):  # a folder that was never created
            door.sync(step.path)
