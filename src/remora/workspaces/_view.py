"""Lists the files of a project that are not ignored."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from remora.errors import WorkspaceError
from remora.ignore import MAX_RULES, OWN_RULES, RULES, VENV_MARK, Ignored
from remora.workspaces._door import Door, Entries


def files_below(door: Door, folder: str, *, without: str = "") -> Iterator[str]:
    """Files below a folder (empty for the root) that are not ignored, except below `without`."""
    return _walk(door, folder, _rules_for(door, folder), without)


def every_file(door: Door, folder: str = "") -> Iterator[str]:
    """All files below a folder, ignored or not; nothing if there is no such folder."""
    with contextlib.suppress(FileNotFoundError):
        entries = door.entries(folder)
        for name in entries.files:
            yield _join(folder, name)
        for name in entries.folders:
            yield from every_file(door, _join(folder, name))


def visible_entries(door: Door, folder: str, *, without: str = "") -> Entries:
    """The entries of one folder that are not ignored. Raises `FileNotFoundError`."""
    entries, rules = door.entries(folder), _rules_for(door, folder)
    return Entries(
        [name for name in entries.files if not rules.hides_file(_join(folder, name))],
        [name for name in entries.folders if not _is_hidden(door, _join(folder, name), rules, without)],
    )


def _walk(door: Door, folder: str, rules: Ignored, without: str) -> Iterator[str]:
    try:
        entries = door.entries(folder)
    except (FileNotFoundError, WorkspaceError):
        return  # gone or unreadable: it has no files that an agent could read
    if VENV_MARK in entries.files:
        return
    for name in entries.files:
        if not rules.hides_file(_join(folder, name)):
            yield _join(folder, name)
    for name in entries.folders:
        inner = _join(folder, name)
        if inner != without and not rules.hides_folder(inner):
            yield from _walk(door, inner, rules.within(inner, _rules(door, inner)), without)


def _is_hidden(door: Door, folder: str, rules: Ignored, without: str) -> bool:
    if folder == without or rules.hides_folder(folder):
        return True
    return door.mode(f"{folder}/{VENV_MARK}") is not None


def _rules_for(door: Door, folder: str) -> Ignored:
    """The ignore rules in a folder.

    In an ignored folder only its own rules apply, because the caller asked for it by name.
    """
    rules = Ignored().within("", _own_rules(door.root)).within("", _rules(door, ""))
    parts = folder.split("/") if folder else []
    for end in range(1, len(parts) + 1):
        inner = "/".join(parts[:end])
        rules = Ignored() if rules.hides_folder(inner) else rules
        rules = rules.within(inner, _rules(door, inner))
    return rules


def _rules(door: Door, folder: str) -> bytes | None:
    try:
        return door.read(_join(folder, RULES), limit=MAX_RULES)
    except (FileNotFoundError, WorkspaceError):
        return None  # also for a link, which git does not follow either


def _own_rules(root: Path) -> bytes | None:
    *folders, name = OWN_RULES
    try:
        return Door(root.joinpath(*folders)).read(name, limit=MAX_RULES)
    except (OSError, WorkspaceError):
        return None  # no repository, or `.git` is a file that names one elsewhere


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
