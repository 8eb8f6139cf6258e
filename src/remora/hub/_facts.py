"""A node's facts for the packet: few, bounded, and the same bytes for the same code."""

from __future__ import annotations

from typing import Any

import orjson

from remora.hub._models import NodeState
from remora.hub._reader import Reader, RelationLimits

MAX_CALLERS = 5
MAX_TESTS = 3
MAX_CALLEES = 4
MAX_RAISES = 5
PACKET_LIMITS = RelationLimits(MAX_CALLERS + 1, MAX_TESTS)
MAX_TEXT = 160
MAX_BYTES, MAX_BRIEF = 700, 250
"""Bytes of one node's facts as JSON.

Beyond that, facts are dropped in this order: callees, callers, tests, the docstring.
"""
_DROP_ORDER = ("calls", "callers", "tests", "doc")


def packet_facts(state: NodeState, reader: Reader, *, brief: bool = False) -> dict[str, Any]:
    """The node's facts for the packet: no times and no hashes, so that they change only with the code.

    The target gets all facts; other nodes are `brief`.
    """
    facts = {
        "signature": state.signature[:MAX_TEXT],
        "doc": (state.docstring or "")[:MAX_TEXT],
        "raises": list(state.raises[:MAX_RAISES]),
        "calls": {}
        if brief
        else {node: line for node in state.callees[:MAX_CALLEES] if (line := _describe_callee(node, reader))},
        "callers": list(state.callers[:MAX_CALLERS]),
        "more_callers": len(state.callers) > MAX_CALLERS,
        "tests": list(state.related_tests[:MAX_TESTS]),
    }
    return _shrink({name: fact for name, fact in facts.items() if fact}, MAX_BRIEF if brief else MAX_BYTES)


def _describe_callee(node_id: str, reader: Reader) -> str:
    """One line about a callee: its signature and what it may raise."""
    state = reader.state(node_id)
    if state is None:
        return ""
    raises = f" raises {', '.join(state.raises[:MAX_RAISES])}" if state.raises else ""
    return (state.signature + raises)[:MAX_TEXT]


def _shrink(facts: dict[str, Any], limit: int) -> dict[str, Any]:
    for name in _DROP_ORDER:
        while len(orjson.dumps(facts)) > limit and facts.get(name):
            if isinstance(facts[name], dict):
                facts[name].popitem()
            elif isinstance(facts[name], list):
                facts[name].pop()
            if isinstance(facts[name], str) or not facts[name]:
                del facts[name]
    return facts
