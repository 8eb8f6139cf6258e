"""What the Hub stores.

.agentfs/hub.db       a key-value file (`remora.kv`), with these keys:
  file:{path}           FileIndex
  node:{node_id}        NodeState without relations, which are resolved on reading
  ref:{name}\\0{path}    which nodes of the file `path` use the name, and what they refer to (see `_targets`)
.agentfs/hub.lock     held by the writer of the index, with its process id; the daemon touches it twice a second
.agentfs/hub.log      the daemon's log

A file's records are written and deleted together, in one transaction, and depend only on that file. So an update costs
as much as the file, whatever the size of the tree, and a kill leaves either the old records or the new ones.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

EXTRACTOR = 1
"""Incremented whenever the same file produces other records: older records then count as stale."""
DB, LOCK, LOG, REPAIR = "hub.db", "hub.lock", "hub.log", "hub.repair"
FILE_KEY, NODE_KEY, REF_KEY = "file:", "node:", "ref:"

UpdateSource = Literal["daemon", "index", "reader"]
"""Who extracted it: the daemon, indexing on demand, or a reader for itself."""


class FileIndex(BaseModel):
    """One file of the index."""

    model_config = ConfigDict(frozen=True)

    path: str
    language: str
    file_hash: str
    """SHA-256 of its bytes."""
    nodes: tuple[str, ...]
    """Qualified names of its definitions, in order, without the file itself."""
    names: tuple[str, ...]
    """Names that its nodes use: each has a `ref` record."""
    imports: dict[str, str]
    """Its imports: absolute dotted names by local name."""
    is_test: bool
    stamp: tuple[int, ...]
    """Size and times when it was read. If they are unchanged, a sweep does not read it again."""
    extractor: int
    updated_at: str
    update_source: UpdateSource


class NodeState(BaseModel):
    """One code node: facts from its file, and its relations."""

    model_config = ConfigDict(frozen=True)

    node_id: str
    path: str
    qualified: str
    """Empty for a file."""
    kind: Literal["file", "class", "function", "method"]
    line: int
    file_hash: str
    """SHA-256 of the file that it was extracted from."""
    source_hash: str
    """SHA-256 of its own source."""
    signature: str
    docstring: str | None
    """The first line of its docstring."""
    has_docstring: bool
    decorators: tuple[str, ...]
    imports: tuple[str, ...]
    """Its own imports; for a file, all imports."""
    calls: tuple[str, ...]
    """Its calls, as written."""
    raises: tuple[str, ...]
    callees: tuple[str, ...] = ()
    """Node ids of its callees in this project."""
    callers: tuple[str, ...] = ()
    """Node ids of its callers, without tests."""
    related_tests: tuple[str, ...] = ()
    """Node ids of tests that call it."""
    line_count: int
    complexity: int
    """Cyclomatic complexity: 1 plus one for each branch."""
    hint_coverage: float
    """Share of its parameters and result that have type hints, from 0 to 1."""
    updated_at: str
    update_source: UpdateSource

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return self.model_dump(mode="json")


def node_id_of(path: str, qualified: str) -> str:
    """The id of a node."""
    return f"{path}:{qualified}" if qualified else path


def split_node_id(node_id: str) -> tuple[str, str]:
    """Path and qualified name."""
    path, _, qualified = node_id.partition(":")
    return path, qualified
