"""Print the Hub's answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from remora.cli._console import say

if TYPE_CHECKING:
    from remora.hub import HubStatus, NodeState

_SHOWN = 10


def status(found: HubStatus) -> None:
    """Print the state of the daemon and of the index."""
    process = f" (process {found.pid}, since {found.since})" if found.pid else ""
    say(f"daemon  {found.daemon}{process}")
    contents = f"{_count(found.files, 'file')}, {_count(found.nodes, 'node')}, {found.bytes / 1e6:.1f} MB"
    size = f", {contents}" if found.files else ""
    say(f"index   {found.index}{size}")
    say(f"at      {found.path}")


def node(found: NodeState) -> None:
    """Print one node, one line for each fact."""
    rows = {
        "node": f"{found.node_id} ({found.kind}, line {found.line})",
        "signature": found.signature,
        "docstring": found.docstring if found.has_docstring else "none",
        "decorators": _names(found.decorators),
        "raises": _names(found.raises),
        "calls": _names(found.callees),
        "callers": _names(found.callers),
        "tests": _names(found.related_tests),
        "imports": _names(found.imports),
        "size": f"{_count(found.line_count, 'line')}, complexity {found.complexity}, types {found.hint_coverage:.0%}",
        "proven": f"file {found.file_hash[:12]}, by {found.update_source}, {found.updated_at}",
    }
    for name, text in rows.items():
        if text:
            say(f"{name:<11} {text}")


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _names(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:_SHOWN]) + (f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
