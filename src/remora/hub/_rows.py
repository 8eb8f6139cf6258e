"""Converts the facts of one file to index records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson

from remora.discovery import FileFacts, Mapped
from remora.hub._models import (
    EXTRACTOR,
    FILE_KEY,
    NODE_KEY,
    REF_KEY,
    FileIndex,
    NodeState,
    UpdateSource,
    node_id_of,
)
from remora.hub._targets import absolute, absolute_imports, targets_of

Rows = dict[str, bytes]


class FileRows:
    """All index records of one file."""

    def __init__(self, facts: FileFacts, language: Mapped, source: UpdateSource, stamp: tuple[int, ...] = ()) -> None:
        self.path = facts.path
        self._facts, self._language, self._source = facts, language, source
        self._imports = absolute_imports(facts, language)
        self._names = [node.qualified for node in facts.nodes[1:]]
        self._now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.refs = self._refs()
        self._stamp = stamp

    def index(self) -> FileIndex:
        """The file's own record."""
        return FileIndex.model_construct(**self._index())

    def states(self) -> dict[str, NodeState]:
        """The records of its nodes, by qualified name."""
        states = [NodeState.model_construct(**fields) for fields in self._states()]
        return {state.qualified: state for state in states}

    def rows(self) -> Rows:
        """The records as stored."""
        path = self.path
        rows = {FILE_KEY + path: orjson.dumps(self._index())}
        for fields in self._states():
            rows[NODE_KEY + fields["node_id"]] = orjson.dumps(fields)
        for name, users in self.refs.items():
            rows[ref_key(name, path)] = orjson.dumps(users)
        return rows

    def _index(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "language": self._language.name,
            "file_hash": self._facts.file_hash,
            "nodes": tuple(self._names),
            "names": tuple(self.refs),
            "imports": self._imports,
            "is_test": self._language.is_test_file(self.path),
            "stamp": self._stamp,
            "extractor": EXTRACTOR,
            "updated_at": self._now,
            "update_source": self._source,
        }

    def _states(self) -> list[dict[str, Any]]:
        path, digest = self.path, self._facts.file_hash
        return [
            {
                "node_id": node_id_of(path, node.qualified),
                "path": path,
                "qualified": node.qualified,
                "kind": node.kind,
                "line": node.line,
                "file_hash": digest,
                "source_hash": node.source_hash,
                "signature": node.signature,
                "docstring": node.docstring,
                "has_docstring": node.docstring is not None,
                "decorators": node.decorators,
                "imports": tuple(absolute(name, path, self._language) for name in node.imports),
                "calls": node.calls,
                "raises": node.raises,
                "line_count": node.line_count,
                "complexity": node.complexity,
                "hint_coverage": node.hint_coverage,
                "updated_at": self._now,
                "update_source": self._source,
            }
            for node in self._facts.nodes
        ]

    def _refs(self) -> dict[str, dict[str, list[str]]]:
        """By name, then by node: the targets that the node refers to."""
        refs: dict[str, dict[str, list[str]]] = {}
        nodes, own = set(self._names), self._language.own_names
        for node in self._facts.nodes:
            for target in targets_of(node.calls, node.qualified, self._imports, nodes, own):
                users = refs.setdefault(target.rpartition(".")[2].removeprefix(":"), {})
                users.setdefault(node.qualified, []).append(target)
        for imported in self._imports.values():
            # Importing from a module also uses the module.
            for target in filter(None, (imported, imported.rpartition(".")[0])):
                users = refs.setdefault(target.rpartition(".")[2], {})
                if target not in (targets := users.setdefault("", [])):
                    targets.append(target)
        return refs


def ref_key(name: str, path: str = "") -> str:
    """The key for one file that uses `name`; without a path, the prefix of all of them."""
    return f"{REF_KEY}{name}\0{path}"


def keys_of(index: FileIndex) -> list[str]:
    """The keys of all records of a file."""
    nodes = [NODE_KEY + node_id_of(index.path, name) for name in ("", *index.nodes)]
    return [FILE_KEY + index.path, *nodes, *(ref_key(name, index.path) for name in index.names)]
