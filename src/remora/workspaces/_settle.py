"""Ending a change that was cut off: it is finished, or where someone's edits forbid that, taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from remora.errors import WorkspaceConflict
from remora.workspaces._door import Door
from remora.workspaces._journal import Journal, forget, load, root_of
from remora.workspaces._take import Taken, content, is_done, put, sync_all, take_back, taken, tidy


@dataclass(frozen=True)
class Settled:
    """How a change that was cut off has ended."""

    note: Mapping[str, Any]
    taken: Taken | None
    """What was done, and must be recorded before `forget`; None where it was taken back."""
    left: tuple[str, ...] = ()
    """Files that someone has changed since, so that they could be neither finished nor taken back."""
    elsewhere: bool = False
    """Whether another folder lies at the project's path now: nothing was done."""


def settle(root: Path, state_dir: Path) -> Settled | None:
    """No change is half done any more. None where there was none. Only for who holds the lock."""
    journal = load(state_dir)
    if journal is None:
        return None
    if journal.root != root_of(root):
        forget(state_dir)
        return Settled(journal.note, None, elsewhere=True)
    door = Door(root)
    if journal.phase != "put" and not _finished(door, journal, state_dir):
        left = take_back(door, journal, state_dir)
        forget(state_dir)
        return Settled(journal.note, None, tuple(left))
    tidy(door, replace(journal, phase="put"))
    return Settled(journal.note, taken(journal))


def _finished(door: Door, journal: Journal, state_dir: Path) -> bool:
    """Whether the rest of the change is done too, because no one has touched a file that it still needs."""
    if journal.phase != "putting":
        return False
    rest = [step for step in journal.steps if not is_done(door, step)]
    if any(content(door, step.path) != step.base for step in rest):
        return False
    try:
        for step in rest:
            put(door, step)
    except WorkspaceConflict:
        return False
    sync_all(door, journal.steps)
    replace(journal, phase="put").save(state_dir)
    return True
