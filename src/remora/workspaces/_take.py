"""Changing the project's files: all of a change or none of it, and never what someone saved meanwhile.

Every file is laid beside its place and synced; then each changes places with the old one, and what came out is looked
at: if it is not what was expected, it goes back. The journal says at every moment what is under way.
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
from remora.workspaces._journal import Journal, Step, forget, root_of
from remora.workspaces._merge import YOU, merge
from remora.workspaces._review import Change


@dataclass(frozen=True)
class Taken:
    """What was really done: each file's content before (`base`) and after, and the folders that were made."""

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
    """Write the changes into the project: all of them, or none. Only for who holds the lock and has settled.

    Edits of both sides are merged where they do not touch. Raises `WorkspaceConflict` naming every file where they do;
    then nothing has been written. The journal stays, with `note`, until `forget`. At the end the folders `drop` are
    removed if they are empty. Changes that were `planned` are written as they are, or not at all.
    """
    door = Door(root)
    changes = changes if planned else plan(door, changes)
    if not changes:
        return Taken()
    steps = tuple(Step(each.path, each.mode, each.base, each.after, staged_name()) for each in changes)
    made = dict.fromkeys(folder for step in steps for folder in door.missing_folders(step.path))
    journal = Journal("staging", steps, tuple(made), tuple(drop), root_of(root), note or {})
    journal.save(state_dir)
    try:
        _stage_all(door, steps)
        journal = replace(journal, phase="putting")
        journal.save(state_dir)
        for step in steps:
            put(door, step)
        sync_all(door, steps)
    except BaseException:
        take_back(door, journal, state_dir)
        forget(state_dir)
        raise
    finish(door, journal, state_dir)
    return taken(journal)


def taken(journal: Journal) -> Taken:
    """What a journal whose phase is `put` has done."""
    return Taken(tuple(Change(step.path, step.base, step.after, step.mode) for step in journal.steps), journal.made)


def finish(door: Door, journal: Journal, state_dir: Path) -> None:
    """Everything is in its place: that is noted, and what came out is thrown away."""
    journal = replace(journal, phase="put")
    journal.save(state_dir, sync=False)
    tidy(door, journal)


def tidy(door: Door, journal: Journal) -> None:
    """Nothing waits beside its place any more, and the folders that must go are gone if they are empty.

    What someone saved, and nobody could put back, stays.
    """
    for step in journal.steps:
        if journal.phase == "staging" or content(door, step.waiting) in (step.base, step.after):
            door.discard(step.path, step.staged)
    for folder in reversed(journal.drop if journal.phase == "put" else journal.made):
        door.remove_folder(folder)


def plan(door: Door, changes: Sequence[Change], files: Files | None = None, owner: str = YOU) -> list[Change]:
    """What must be written, given what is there now, or will be by then (`files`). Raises `WorkspaceConflict`."""
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
        door.fits(change.path)
        mode = (change.mode if mode is None else mode) & 0o777
        planned.append(replace(change, base=now, after=merged.text, mode=mode))
    if files.clashes:
        raise WorkspaceConflict([clash.path for clash in files.clashes], {c.path: c.lines() for c in files.clashes})
    return planned


def _check_writable(door: Door, path: str) -> None:
    """Raises `WorkspaceError` for what the user has made read-only: a rename would not ask, as an editor does."""
    if locked := door.read_only(path):
        what = "" if locked == path else f", so `{path}` cannot be written"
        raise WorkspaceError(
            f"`{locked}` is read-only{what}. Nothing was written. To allow it: `chmod u+w {quote(locked)}`"
        )


def result_of(base: bytes | None, after: bytes | None, now: bytes | None) -> Result | None:
    """What becomes of `now` when `base` was to become `after`; None for a conflict."""
    if now == base:
        return Result(after)
    if base is None or after is None or now is None:
        return None
    merged = merge(base, after, now)
    return None if merged is None else Result(merged)


def put(door: Door, step: Step) -> None:
    """The step is done, or the place holds what someone saved there and `WorkspaceConflict` says so."""
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
    # Between our look and the rename someone may have saved: then it is theirs that came out.
    if content(door, step.waiting) != step.base:
        put_back(door, step)
        raise WorkspaceConflict([step.path])


def put_back(door: Door, step: Step) -> None:
    """What came out of its place is there again."""
    if step.after is None:
        with contextlib.suppress(FileExistsError):  # newer still: then that stays, and the other waits beside it
            door.move_in(step.path, step.staged)
    elif content(door, step.path) == step.after:
        door.swap(step.path, step.staged)


def take_back(door: Door, journal: Journal, state_dir: Path) -> list[str]:
    """The project is as it was before the change. Gives the files that someone has changed since, left as they are."""
    left: list[str] = []
    if journal.phase == "putting":
        left = [step.path for step in reversed(journal.steps) if is_done(door, step) and not _taken_back(door, step)]
        sync_all(door, journal.steps)
        # What waits beside a file tells whether it is done: before any of that goes, it must not be asked again.
        journal = replace(journal, phase="back")
        journal.save(state_dir)
    tidy(door, journal)
    return left


def _taken_back(door: Door, step: Step) -> bool:
    now = content(door, step.path)
    if now != step.after:
        return _merged_back(door, step, now)
    if step.base is not None and content(door, step.waiting) is None:
        door.stage(step.path, step.base, mode=step.mode, name=step.staged)
    try:
        put(door, replace(step, base=step.after, after=step.base))
    except WorkspaceConflict:
        return False
    return True


def _merged_back(door: Door, step: Step, now: bytes | None) -> bool:
    """Someone went on from the new text: theirs stays, ours goes, if the two can be told apart."""
    result = result_of(step.after, step.base, now)
    if result is None or result.text is None or content(door, step.path) != now:
        return False
    door.write(step.path, result.text, mode=step.mode)
    return True


def is_done(door: Door, step: Step) -> bool:
    """Whether the file is in its place, by what waits beside it. An edit that came out with it is put back first."""
    spare = content(door, step.waiting)
    if spare is not None and spare not in (step.base, step.after):
        put_back(door, step)
        return False
    if step.after is None:
        return spare is not None
    return spare is None if step.base is None else spare != step.after


def content(door: Door, path: str) -> bytes | None:
    """The file's bytes, or None where there is no file."""
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
        with contextlib.suppress(FileNotFoundError):  # a folder that never came to be
            door.sync(step.path)
