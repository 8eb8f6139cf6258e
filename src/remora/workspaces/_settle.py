"""Recovery after an interrupted change: finish it, or roll it back if someone edited its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from remora.errors import WorkspaceConflict
from remora.workspaces._door import Door
from remora.workspaces._journal import Journal, forget, identify_folder, load
from remora.workspaces._take import Taken, changes_written, content, is_done, put, roll_back, sync_all, tidy


@dataclass(frozen=True)
class Settled:
    """How an interrupted change ended."""

    note: Mapping[str, Any]
    taken: Taken | None
    """The finished change, to be recorded before `forget`; None if it was rolled back."""
    left: tuple[str, ...] = ()
    """Files that someone changed since, which could be neither finished nor rolled back."""
    elsewhere: bool = False
    """Whether the project's path is now another folder. Nothing was done."""


def settle(root: Path, state_dir: Path) -> Settled | None:
    """Finish or roll back an interrupted change. None if there is none. The caller must hold the lock."""
    journal = load(state_dir)
    if journal is None:
        return None
    if journal.root != identify_folder(root):
        forget(state_dir)
        return Settled(journal.note, None, elsewhere=True)
    door = Door(root)
    if journal.phase != "put" and not _finish(door, journal, state_dir):
        left = roll_back(door, journal, state_dir)
        forget(state_dir)
        return Settled(journal.note, None, tuple(left))
    tidy(door, replace(journal, phase="put"))
    return Settled(journal.note, changes_written(journal))


def _finish(door: Door, journal: Journal, state_dir: Path) -> bool:
    """Finish the rest of the change. Returns False if someone changed a file that it still needs."""
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
