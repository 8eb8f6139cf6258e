"""Opens a project to read its records. If there are none here, says which folder has them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from remora import app
from remora.cli._console import tell
from remora.context.text import number
from remora.errors import ConfigError

STATE, MOST, DEEP = ".agentfs", 2000, 2
"""Name of a state folder, how many folders are looked at to find one, and how deep below this one they may be."""
NAMED = 3
"""State folders that are named."""


def open_to_read(start: Path, state_dir: Path | None = None, *, lists: bool = False) -> app.Project:
    """Open a project. If nothing is recorded in it, name the folders below it that have recorded runs.

    A command that `lists` what is recorded also says so if there are none.
    """
    opened = app.open_project(start, state_dir=state_dir)
    if state_dir and not lists and opened.store is None and not opened.state_dir.is_dir():
        raise ConfigError(
            f"There is no folder `{state_dir}`: expected the state folder of a project, or `postgres://…`"
        )
    if opened.store is None and not has_streams(opened.state_dir):
        found = [] if state_dir else list(islice(_folders_with_state(opened.root), NAMED + 1))
        if found or lists:
            tell([_sentence(opened.state_dir, found)])
    return opened


def has_streams(state_dir: Path) -> bool:
    """Whether a state folder holds a stream."""
    return any(next(_entries(state_dir / kind), None) is not None for kind in ("traces", "runs"))


def _sentence(state_dir: Path, found: list[Path]) -> str:
    if not found:
        return f"nothing is recorded in `{state_dir}` yet: `remora analyze` or `remora trace import` comes first"
    places = [shlex.quote(os.path.relpath(folder)) for folder in found[:NAMED]]
    more = ", …" if len(found) > NAMED else ""
    return (
        f"nothing is recorded in `{state_dir}`, but in {number(len(places), 'folder')} below it: "
        f"add {' or '.join(f'`-C {place}`' for place in places)}{more}"
    )


def _folders_with_state(root: Path) -> Iterator[Path]:
    """Folders below `root` with recorded runs. Looks at no more than `MOST` folders and follows no link."""
    looked, level = 0, [root]
    for _ in range(DEEP):
        below: list[Path] = []
        for entry in (each for folder in level for each in _entries(folder)):
            if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
                continue
            looked += 1
            if looked > MOST:
                return
            if has_streams(Path(entry.path) / STATE):
                yield Path(entry.path)
            else:
                below.append(Path(entry.path))
        level = below


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """What a folder holds; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:
        return
