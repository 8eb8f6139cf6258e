"""Code nodes: the pieces of a project that agents work on."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

_NODE_ID = re.compile(r"[\w./+-]+\.\w+:[^\W\d][\w.]*(?:#\d+)?")


def named_nodes(text: str) -> list[str]:
    """Node ids in a text, in order. A file with a line number, `a.py:12`, is not one."""
    return _NODE_ID.findall(text)


class NodeType(Enum):
    """The kind of code."""

    FILE = "file"
    CLASS = "class"
    FUNCTION = "function"
    METHOD = "method"


class LineRange(BaseModel):
    """Lines `first` to `last`, both included, counted from 1."""

    model_config = ConfigDict(frozen=True)

    first: int
    last: int


class CodeNode(BaseModel):
    """One piece of code, named `path:qualified.name` (a file: `path`). Duplicates in one file get `#2`, `#3`."""

    model_config = ConfigDict(frozen=True)

    node_id: str
    node_type: NodeType
    name: str
    """The last part of the qualified name; for a file, its name."""
    file_path: Path
    """Relative to the project root, with forward slashes."""
    lines: LineRange
    """From the first decorator to the last line of the body."""
    owned: tuple[LineRange, ...]
    """The lines that belong to this node and not to a node inside it. No two agents own the same line."""
    text: str
    """The node's own source."""
    digest: str = ""
    """SHA-256 of the file's bytes that the other fields describe; empty if unknown."""

    def summary(self) -> str:
        """One line that says what the node is."""
        span = f"lines {self.lines.first}-{self.lines.last}"
        if self.node_type is NodeType.FILE:
            whole = self.owned == (self.lines,)
            return f"whole file '{self.name}'" if whole else f"file '{self.name}', code outside its functions"
        return f"{self.node_type.value} '{self.name}' in {self.file_path.name}, {span}"

    def record(self) -> dict[str, Any]:
        """The node as `agent_start` records it: everything but its text, which the file has."""
        fields = {
            "type": self.node_type.value,
            "name": self.name,
            "file": self.file_path.as_posix(),
            "lines": [self.lines.first, self.lines.last],
            "owned": [[lines.first, lines.last] for lines in self.owned],
            "summary": self.summary(),
        }
        return fields | ({"sha256": self.digest} if self.digest else {})
