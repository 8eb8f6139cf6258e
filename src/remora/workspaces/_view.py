"""The files of a project that are its own code, walked through the door."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from remora.errors import WorkspaceError
from remora.ignore import MAX_RULES, OWN_RULES, RULES, VENV_MARK, Ignored
from remora.workspaces._door import Door, Entries


def files_below(door: Door, folder: str, *, without: str = "") -> Iterator[str]:
    """Paths of the files below a folder (empty for the root) that are not ignored; none below `without`."""
    return _walk(door, folder, _rules_for(door, folder), without)


def every_file(door: Door, folder: str = "") -> Iterator[str]:
    """Paths of all files below a folder, ignored or not; nothing where there is no such folder."""
    with contextlib.suppress(FileNotFoundError):
        found = door.entries(folder)
        for name in found.files:
            yield _joined(folder, name)
        for name in found.folders:
            yield from every_file(door, _joined(folder, name))


def shown(door: Door, folder: str, *, without: str = "") -> Entries:
    """What is in one folder and not ignored. Raises `FileNotFoundError`."""
    found, rules = door.entries(folder), _rules_for(door, folder)
    return Entries(
        [name for name in found.files if not rules.hides_file(_joined(folder, name))],
        [name for name in found.folders if not _is_hidden(door, _joined(folder, name), rules, without)],
    )


def _walk(door: Door, folder: str, rules: Ignored, without: str) -> Iterator[str]:
    try:
        found = door.entries(folder)
    except (FileNotFoundError, WorkspaceError):
        return  # gone, or not for us to enter: such a folder has no files that an agent could read
    if VENV_MARK in found.files:
        return
    for name in found.files:
        if not rules.hides_file(_joined(folder, name)):
            yield _joined(folder, name)
    for name in found.folders:
        inner = _joined(folder, name)
        if inner != without and not rules.hides_folder(inner):
            yield from _walk(door, inner, rules.within(inner, _rules(door, inner)), without)


def _is_hidden(door: Door, folder: str, rules: Ignored, without: str) -> bool:
    if folder == without or rules.hides_folder(folder):
        return True
    return door.mode(f"{folder}/{VENV_MARK}") is not None


def _rules_for(door: Door, folder: str) -> Ignored:
    """The rules in a folder. Where it is hidden itself, only its own hold: whoever names it wants to see it."""
    rules = Ignored().within("", _own_rules(door.root)).within("", _rules(door, ""))
    parts = folder.split("/") if folder else []
    for end in range(1, len(parts) + 1):
        inner = "/".join(parts[:end])
        rules = Ignored() if rules.hides_folder(inner) else rules
        rules = rules.within(inner, _rules(door, inner))
    return rules


def _rules(door: Door, folder: str) -> bytes | None:
    try:
        return door.read(_joined(folder, RULES), limit=MAX_RULES)
    except (FileNotFoundError, WorkspaceError):
        return None  # also a link, which git does not follow either


def _own_rules(root: Path) -> bytes | None:
    *folders, name = OWN_RULES
    try:
        return Door(root.joinpath(*folders)).read(name, limit=MAX_RULES)
    except (OSError, WorkspaceError):
        return None  # no repository, or `.git` is a file that leads to one elsewhere


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
