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
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "remora.commands"
_SECTION = f"[{GROUP}]".encode()


class Command(NamedTuple):
    """A command of the `remora` command line."""

    target: str
    """Where its `typer.Typer` is: `package.module:name`."""
    summary: str
    """What it does, in one sentence, for `remora --help`."""

    def load(self) -> Any:
        """Import the `typer.Typer`."""
        module, _, name = self.target.partition(":")
        return getattr(import_module(module), name)


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
    found = [_load(point, distribution) for point, distribution in _entry_points()]
    return tuple(sorted(found, key=lambda plugin: (plugin.name, plugin.distribution)))


def _entry_points() -> Iterator[tuple[EntryPoint, str]]:
    """The group's entry points, and the distribution of each."""
    folders = list(dict.fromkeys(folder for entry in sys.path for folder in _offering(Path(entry))))
    if not folders:
        return
    from importlib.metadata import Distribution

    for folder in folders:
        distribution = Distribution.at(folder)
        for point in distribution.entry_points.select(group=GROUP):
            yield point, distribution.metadata["Name"]


def _offering(entry: Path) -> list[Path]:
    """Metadata folders in one entry of `sys.path` that name the group.

    `importlib.metadata.entry_points` answers the same question, but importing it and parsing the metadata of every
    installed package takes longer than all the rest of `remora --help`.
    """
    try:
        return [path.parent for path in entry.glob("*.dist-info/entry_points.txt") if _SECTION in path.read_bytes()]
    except OSError:
        return []  # not a folder, or not ours to read: Python imports nothing from it either


def _load(point: EntryPoint, distribution: str) -> Plugin:
    try:
        command = point.load()
    except Exception as error:  # noqa: BLE001 - the code of another package may fail in any way
        return Plugin(point.name, distribution, None, f"{type(error).__name__}: {error}")
    if not isinstance(command, Command):
        kind = type(command).__name__
        return Plugin(point.name, distribution, None, f"`{point.value}` is a `{kind}`, expected a `remora.cli.Command`")
    return Plugin(point.name, distribution, command)
