"""Paths, nodes and operations as a user names them: `src/`, `src/cart.py`, `src/cart.py:Cart.add`, `lint`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from remora.config import CONFIG_FILE, TABLE_FILE
from remora.errors import ConfigError
from remora.nodes import CodeNode
from remora.settings import Settings

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


def check_operations(settings: Settings, known: Iterable[str]) -> None:
    """Raises `ConfigError` if the project's settings name an operation that no agent has.

    A user's own settings may name agents of other projects.
    """
    names = list(known)
    for path, origin in settings.origins.items():
        block, _, rest = path.partition(".")
        name = rest.partition(".")[0]
        if block != "operations" or not name or name in names or origin not in (CONFIG_FILE, TABLE_FILE):
            continue
        close = difflib.get_close_matches(name, names, n=1)
        expected = f"did you mean `{close[0]}`?" if close else "expected one of " + ", ".join(f"`{n}`" for n in names)
        raise ConfigError(f"{origin}: $.operations.{name:.100}: there is no such operation; {expected}")


def turned_off(settings: Settings, operations: Iterable[str]) -> list[str]:
    """A sentence for each of the operations that the settings turn off."""
    return [
        f"`{name}` is turned off: `operations.{name}.enabled` in {settings.origin_of(f'operations.{name}.enabled')}"
        for name in operations
        if name in settings.config.operations and not settings.config.operations[name].enabled
    ]
