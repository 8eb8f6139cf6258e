"""Code that a script takes in from files beside it: one text runs, and every line is still found where it stands."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from remora.scripts._read import read_script

if TYPE_CHECKING:
    from remora.scripts._parse import Parsed


@dataclass
class Beside:
    """The files beside scripts. What was read of one is kept: the scripts of an agent take in the same ones."""

    folder: Path | None = None
    known: dict[str, Parsed] = field(default_factory=dict)

    def text(self, module: str) -> str | None:
        """The text of a module; None for one that does not lie here itself."""
        if self.folder is None or not module.isidentifier():
            return None
        path = self.folder / f"{module}.py"
        text = read_script(path) if path.is_file() and not path.is_symlink() else None
        return text if isinstance(text, str) else None


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
