"""What the Hub keeps.

.agentfs/hub.db       a key-value file (`remora.kv`), with these keys:
  file:{path}           FileIndex
  node:{node_id}        NodeState, without the relations: they are joined when it is read
  ref:{name}\\0{path}    which nodes of the file `path` use the name, and what they mean by it (see `_targets`)
.agentfs/hub.lock     held by whoever writes the index, with its process id; the daemon touches it twice a second
.agentfs/hub.log      what the daemon had to say

A file's records are written and deleted together, in one transaction, and depend on nothing but that file: so a change
costs what the file costs, whatever the tree holds, and a kill leaves the file's old records or its new ones.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

EXTRACTOR = 1
"""Raised whenever the same file gives other records: older ones then count as stale."""
DB, LOCK, LOG, REPAIR = "hub.db", "hub.lock", "hub.log", "hub.repair"
FILE_KEY, NODE_KEY, REF_KEY = "file:", "node:", "ref:"

UpdateSource = Literal["daemon", "index", "reader"]
"""Who extracted it: the daemon, an indexing on demand, or a reader for itself alone."""


class FileIndex(BaseModel):
    """One file of the index."""

    model_config = ConfigDict(frozen=True)

    path: str
    language: str
    file_hash: str
    """SHA-256 of its bytes."""
    nodes: tuple[str, ...]
    """Qualified names of its definitions, in order; the file itself is not among them."""
    names: tuple[str, ...]
    """Names that its nodes use: each has a `ref` record."""
    imports: dict[str, str]
    """What it imports, by the name it has here; dotted, and absolute."""
    is_test: bool
    stamp: tuple[int, ...]
    """Size and times when it was read: where they are unchanged, a sweep does not read it again."""
    extractor: int
    updated_at: str
    update_source: UpdateSource


class NodeState(BaseModel):
    """One code node: what its file says of it, and how others relate to it."""

    model_config = ConfigDict(frozen=True)

    node_id: str
    path: str
    qualified: str
    """Empty for a file."""
    kind: Literal["file", "class", "function", "method"]
    line: int
    file_hash: str
    """SHA-256 of the file that it was taken from."""
    source_hash: str
    """SHA-256 of its own source."""
    signature: str
    docstring: str | None
    """The first line of its docstring."""
    has_docstring: bool
    decorators: tuple[str, ...]
    imports: tuple[str, ...]
    """What it imports in its own lines; of a file, all that it imports."""
    calls: tuple[str, ...]
    """What it calls, as written."""
    raises: tuple[str, ...]
    callees: tuple[str, ...] = ()
    """Node ids of what it calls in this project."""
    callers: tuple[str, ...] = ()
    """Node ids of what calls it, tests left out."""
    related_tests: tuple[str, ...] = ()
    """Node ids of tests that call it."""
    line_count: int
    complexity: int
    """Cyclomatic: 1 and one for each branch."""
    hint_coverage: float
    """How many of its parameters and its result have types, from 0 to 1."""
    updated_at: str
    update_source: UpdateSource

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return self.model_dump(mode="json")


def node_id_of(path: str, qualified: str) -> str:
    """How a node is named everywhere in Remora."""
    return f"{path}:{qualified}" if qualified else path


def split_node_id(node_id: str) -> tuple[str, str]:
    """Path and qualified name."""
    path, _, qualified = node_id.partition(":")
    return path, qualified
