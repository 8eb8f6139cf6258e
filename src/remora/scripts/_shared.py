"""Code that a script takes in from files beside it: one text runs, and every line is still found where it stands."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from remora.errors import ConfigError
from remora.files import read_plain
from remora.scripts._read import MAX_SOURCE, script_text

if TYPE_CHECKING:
    from remora.scripts._parse import Parsed


@dataclass
class Beside:
    """The files beside scripts. What was read of one is kept: the scripts of an agent take in the same ones."""

    folder: Path | None = None
    known: dict[str, Parsed] = field(default_factory=dict)
    files: Mapping[str, bytes] | None = None
    """What the folder held when its agent was read. None: a script by itself, whose neighbours are on the disk."""

    def text(self, module: str) -> str | None:
        """The text of a module; None for one that does not lie here itself."""
        if not module.isidentifier():
            return None
        try:
            text = script_text(self.data(f"{module}.py", MAX_SOURCE))
        except (OSError, ConfigError):
            return None
        return text if isinstance(text, str) else None

    def data(self, name: str, most: int) -> bytes | None:
        """The bytes of a file that lies right here; None without one. Raises `ConfigError` for a link or too much."""
        if self.files is not None:
            return self.files.get(name)
        if self.folder is None or name != Path(name).name:
            return None
        try:
            return read_plain(self.folder / name, most)
        except FileNotFoundError:
            return None


@dataclass(frozen=True)
class Shared:
    """Code that a script takes in from a file beside it."""

    file: str
    source: str


def defined(tree: ast.Module) -> frozenset[str]:
    """The names that a module's top level gives."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in tree.body if isinstance(node, kinds)}
    targets = [node for part in tree.body if isinstance(part, ast.Assign | ast.AnnAssign) for node in ast.walk(part)]
    stored = {one.id for one in targets if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return frozenset(names | stored)


def joined(shared: Sequence[Shared], source: str) -> str:
    """One text that runs: what is taken in, then the script."""
    return "\n".join([*(part.source for part in shared), source])


def place_of(line: int, file: str, shared: Sequence[Shared]) -> tuple[str, int]:
    """The file and line that a line of the joined text stands in."""
    for part in shared:
        lines = part.source.count("\n") + 1
        if line <= lines:
            return part.file, line
        line -= lines
    return file, line
