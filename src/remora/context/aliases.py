"""Other names for the same things: what tools written for the earlier documents return, in the contract's words.

    _summary                             summary
    raw_output                           result
    summary_delta.recent_actions         summary: a list of lines, joined
    summary_delta.file_context           knowledge `file_context`: the files that the call was about
    packet_delta.add_history             summary
    packet_delta.update_knowledge        knowledge_delta
    packet_delta.set_error               error

Every other field of `summary_delta` and `packet_delta` that the contract knows (`diagnostics`, `candidate_actions`,
`state_summary`, …) is taken as it is. What a tool says in the contract's own words comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from remora.events import ActionDelta, ErrorDelta, KnowledgeDelta, Outcome, PacketDelta

PLAN_FIELDS = frozenset({"add_history", "update_knowledge", "set_error"})
"""The fields of a delta in the plan's shape."""

_TAKEN = ("summary", "error", "outcome", "diagnostics", "candidate_actions", "state_summary", "excerpts", "extensions")


def contract_names(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a tool returned, in the contract's names. Without an alias in it, the same object."""
    deltas = [said[name] for name in ("summary_delta", "packet_delta") if isinstance(said.get(name), Mapping)]
    if not deltas and not said.keys() & {"_summary", "raw_output"}:
        return said
    fields: dict[str, Any] = {}
    for delta in deltas:
        fields |= _fields(delta)
    fields |= {"summary": said["_summary"]} if said.get("_summary") else {}
    fields |= {"result": said["raw_output"]} if "raw_output" in said and "result" not in said else {}
    return fields | {name: value for name, value in said.items() if name not in fields or value}


def plan_delta(tool: str, said: Mapping[str, Any], outcome: Outcome | None = None) -> PacketDelta:
    """A delta in the plan's shape as the fold reads it: what it does not name, it does not change."""
    line, news, error = said.get("add_history"), said.get("update_knowledge") or {}, said.get("set_error")
    ended: Outcome = outcome or ("error" if error else "success")
    return PacketDelta(
        action=ActionDelta(tool=tool, summary=str(line), outcome=ended) if line else None,
        knowledge={str(key): KnowledgeDelta(value=value) for key, value in news.items()},
        error=ErrorDelta(set=str(error)) if error else None,
    )


def is_plan_delta(said: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether this is a delta in the plan's shape."""
    return isinstance(said, Mapping) and bool(said) and said.keys() <= PLAN_FIELDS


def _fields(delta: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one delta, by the contract's names."""
    found = {name: delta[name] for name in _TAKEN if delta.get(name)}
    lines = delta.get("recent_actions") or delta.get("add_history")
    if lines:
        found.setdefault("summary", "; ".join(map(str, lines)) if isinstance(lines, list | tuple) else str(lines))
    if delta.get("set_error"):
        found.setdefault("error", delta["set_error"])
    knowledge = _knowledge(delta)
    return found | ({"knowledge_delta": knowledge} if knowledge else {})


def _knowledge(delta: Mapping[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name in ("knowledge", "knowledge_delta", "update_knowledge"):
        known |= delta[name] if isinstance(delta.get(name), Mapping) else {}
    return known | ({"file_context": delta["file_context"]} if delta.get("file_context") else {})
