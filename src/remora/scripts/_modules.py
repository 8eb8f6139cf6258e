"""Modules that a script imports.

Monty cannot import source files, so a script and the modules that it imports run as one text. Two rules, checked when a
script is loaded, keep that the same as importing: each file defines or imports every name that it uses, and a top-level
name means the same in all of the files. Errors are reported with the author's own file and line.

A module is a file `NAME.py` in the script's own folder (`from NAME import …`), or one that ships with Remora
(`from remora.scripts.shared.NAME import …`). A shared module imports only other shared modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from remora.errors import ConfigError
from remora.files import read_below
from remora.scripts._read import MAX_SOURCE, script_text

if TYPE_CHECKING:
    from remora.scripts._parse import Parsed

TOOLS = "tools"
"""The folder of an agent that holds its scripts and their modules. Monty runs them."""
SANDBOXED = "sandboxed"
"""The folder of an agent that holds Python files for commands. CPython runs them, inside the OS sandbox."""
SHARED = "remora.scripts.shared"
"""The package of modules that all scripts may import."""
_SHARED_FOLDER = Path(__file__).with_name("shared")


@dataclass(frozen=True)
class Module:
    """A module that a script imports, as it runs."""

    file: str
    """The name of its file, for messages."""
    source: str
    meanings: Mapping[str, str]
    """Its top-level names and the builtins that it uses, each with where it comes from."""


@dataclass
class ScriptFiles:
    """The files that the scripts of one folder may import and read."""

    folder: Path | None = None
    """The folder of the scripts. Without one, only shared modules are found."""
    snapshot: Mapping[str, bytes] | None = None
    """All files of the agent, by their path in its folder. None: read them from the disk."""
    parsed: dict[str, Parsed] = field(default_factory=dict)
    """Modules that were parsed already: the scripts of an agent import the same ones."""

    def module(self, name: str, importer: str = "") -> tuple[str, str] | None:
        """File name and text of a module, as `importer` sees it; None if there is none."""
        if is_shared(name):
            text = _shared_text(name.removeprefix(f"{SHARED}."))
            return None if text is None else (f"{name.replace('.', '/')}.py", text)
        if is_shared(importer) or not name.isidentifier():
            return None
        try:
            found = script_text(self.read(f"{name}.py", MAX_SOURCE))
        except (OSError, ConfigError):
            return None
        return (f"{name}.py", found) if isinstance(found, str) else None

    def read(self, name: str, most: int) -> bytes | None:
        """The bytes of `NAME` in the scripts' folder, or of `sandboxed/NAME` in the agent's; None if there is none.

        Raises `ConfigError` for a link, and for a file over `most` bytes.
        """
        if not is_readable(name):
            return None
        if self.snapshot is not None:
            return self.snapshot.get(name if "/" in name else f"{TOOLS}/{name}")
        if self.folder is None:
            return None
        try:
            return read_below(self.folder.parent if "/" in name else self.folder, name, most)
        except FileNotFoundError:
            return None


def is_readable(name: str) -> bool:
    """Whether `name` has the form of a file that a script may read: `NAME` or `sandboxed/NAME`."""
    file = name.removeprefix(f"{SANDBOXED}/")
    return file == Path(file).name and file not in ("", "..") and "\0" not in file


def is_shared(module: str) -> bool:
    """Whether the name is one of a module that ships with Remora."""
    return module.startswith(f"{SHARED}.")


@cache
def _shared_text(name: str) -> str | None:
    file = _SHARED_FOLDER / f"{name}.py"
    return file.read_text(encoding="utf-8") if name.isidentifier() and file.is_file() else None


def join_sources(modules: Sequence[Module], source: str) -> str:
    """The text that runs: the modules, then the script."""
    return "\n".join([*(module.source for module in modules), source])


def locate_line(line: int, file: str, modules: Sequence[Module]) -> tuple[str, int]:
    """The author's file and line for a line of the joined text."""
    for module in modules:
        lines = module.source.count("\n") + 1
        if line <= lines:
            return module.file, line
        line -= lines
    return file, line
