"""Commands that other distributions add to `remora` through the entry point group `remora.commands`.

    [project.entry-points."remora.commands"]
    bench = "remora_lab.cli:bench"

The name is the command's name. The value names a `Command`, so that `remora --help` can list it without importing
the code that runs it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

GROUP = "remora.commands"


class Command(NamedTuple):
    """A command of the `remora` command line."""

    target: str
    """Where its `typer.Typer` is: `package.module:name`."""
    summary: str
    """What it does, in one sentence, for `remora --help`."""

    def load(self) -> Any:
        """Import the `typer.Typer`."""
        return _import_target(self.target)


class Plugin(NamedTuple):
    """An entry point of the group, and what came of loading it."""

    name: str
    distribution: str
    command: Command | None
    problem: str = ""
    """Why there is no command."""


@cache
def installed_plugins() -> tuple[Plugin, ...]:
    """Every command that an installed distribution offers, by name. Never raises: a broken one has a `problem`."""
    found = [
        _load(name, target, distribution)
        for distribution, file in _entry_point_files().items()
        for name, target in _entry_points(file)
    ]
    return tuple(sorted(found, key=lambda plugin: (plugin.name, plugin.distribution)))


def _entry_point_files() -> dict[str, Path]:
    """Where `entry_points.txt` of each installed distribution would be, by the distribution's name.

    `importlib.metadata.entry_points` gives the same. Importing it and parsing the metadata of every package would
    take longer than all the rest of `remora --help`.
    """
    found: dict[str, Path] = {}
    for entry in sys.path:
        for folder in Path(entry).glob("*.dist-info"):
            found.setdefault(folder.name.partition("-")[0].replace("_", "-"), folder / "entry_points.txt")
    return found


def _entry_points(file: Path) -> Iterator[tuple[str, str]]:
    """Name and target of the entry points of our group."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return  # a distribution without entry points
    _, _, section = text.partition(f"[{GROUP}]\n")
    for line in section.splitlines():
        if line.startswith("["):
            return
        name, equals, target = line.partition("=")
        if equals:
            yield name.strip(), target.strip()


def _load(name: str, target: str, distribution: str) -> Plugin:
    try:
        command = _import_target(target)
    except Exception as error:  # noqa: BLE001 - the code of another package may fail in any way
        return Plugin(name, distribution, None, f"{type(error).__name__}: {error}")
    if not isinstance(command, Command):
        kind = type(command).__name__
        return Plugin(name, distribution, None, f"`{target}` is a `{kind}`, expected a `remora.cli.Command`")
    return Plugin(name, distribution, command)


def _import_target(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
