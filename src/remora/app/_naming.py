"""Paths and nodes as a user names them: `src/`, `src/cart.py`, `src/cart.py:Cart.add`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from remora.errors import ConfigError
from remora.nodes import CodeNode

MAX_NAMES = 8
"""Most names that an error lists."""


@dataclass(frozen=True)
class Named:
    """A path, and the definition in it that was named; empty for all of it."""

    path: Path
    name: str = ""

    @classmethod
    def of(cls, given: Path | str) -> Named:
        """Split `file.py:name`. A path that exists is taken as it is, even with a colon in it."""
        path = Path(given)
        head, colon, name = str(given).rpartition(":")
        if not colon or not head or not name or path.exists():
            return cls(path)
        return cls(Path(head), name)

    def has(self, node: CodeNode, root: Path) -> bool:
        """Whether it names a node: the definition itself, or one inside it."""
        file = (root / node.file_path).resolve()
        here = self.path.resolve()
        if not self.name:
            return file == here or file.is_relative_to(here)
        name = node.node_id.partition(":")[2]
        return file == here and (name == self.name or name.startswith((f"{self.name}.", f"{self.name}#")))


def split_paths(given: Sequence[Path | str]) -> list[Named]:
    """What the user named."""
    return [Named.of(each) for each in given]


def selection(named: Sequence[Named], root: Path) -> Callable[[CodeNode], bool] | None:
    """A function that tells whether a node was named; None if only whole files and folders were."""
    if not any(each.name for each in named):
        return None
    return lambda node: any(each.has(node, root) for each in named)


def check_named(named: Sequence[Named], nodes: Sequence[CodeNode], root: Path) -> None:
    """Raises `ConfigError` for a definition that is not in its file."""
    for each in named:
        if not each.name or any(each.has(node, root) for node in nodes):
            continue
        mine = [node for node in nodes if (root / node.file_path).resolve() == each.path.resolve()]
        names = [f"`{node.node_id.partition(':')[2]}`" for node in mine if ":" in node.node_id]
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        known = f"it has {', '.join(names[:MAX_NAMES])}{more}" if names else "it has no functions or classes"
        raise ConfigError(f"There is no `{each.name:.100}` in `{each.path}`: {known}")
