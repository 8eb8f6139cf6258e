"""Aliases: translates field names of earlier specifications into those of the tool-result contract.

    _summary                             summary
    raw_output                           result
    summary_delta.recent_actions         summary: a list of lines, joined
    summary_delta.file_context           knowledge `file_context`: the files that the call concerned
    packet_delta.add_history             summary
    packet_delta.update_knowledge        knowledge_delta
    packet_delta.set_error               error

All other contract fields of `summary_delta` and `packet_delta` (`diagnostics`, `candidate_actions`, `state_summary`, …)
are copied. A field under its contract name takes precedence over its alias.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from remora.events import ActionDelta, ErrorDelta, KnowledgeDelta, Outcome, PacketDelta

PLAN_FIELDS = frozenset({"add_history", "update_knowledge", "set_error"})
"""The fields of a plan delta, the delta format of the earlier plan."""

_COPIED = ("summary", "error", "outcome", "diagnostics", "candidate_actions", "state_summary", "excerpts", "extensions")


def contract_names(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rename the aliases in a tool's result. Returns the same object if it has none."""
    deltas = [result[name] for name in ("summary_delta", "packet_delta") if isinstance(result.get(name), Mapping)]
    if not deltas and not result.keys() & {"_summary", "raw_output"}:
        return result
    fields: dict[str, Any] = {}
    for delta in deltas:
        fields |= _rename_fields(delta)
    fields |= {"summary": result["_summary"]} if result.get("_summary") else {}
    fields |= {"result": result["raw_output"]} if "raw_output" in result and "result" not in result else {}
    return fields | {name: value for name, value in result.items() if name not in fields or value}


def plan_delta(tool: str, result: Mapping[str, Any], outcome: Outcome | None = None) -> PacketDelta:
    """Convert a plan delta to a `PacketDelta`. Fields that it lacks stay unchanged."""
    line, knowledge, error = result.get("add_history"), result.get("update_knowledge") or {}, result.get("set_error")
    final: Outcome = outcome or ("error" if error else "success")
    return PacketDelta(
        action=ActionDelta(tool=tool, summary=str(line), outcome=final) if line else None,
        knowledge={str(key): KnowledgeDelta(value=value) for key, value in knowledge.items()},
        error=ErrorDelta(set=str(error)) if error else None,
    )


def is_plan_delta(result: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether `result` is a plan delta."""
    return isinstance(result, Mapping) and bool(result) and result.keys() <= PLAN_FIELDS


def _rename_fields(delta: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one delta under their contract names."""
    renamed = {name: delta[name] for name in _COPIED if delta.get(name)}
    lines = delta.get("recent_actions") or delta.get("add_history")
    if lines:
        renamed.setdefault("summary", "; ".join(map(str, lines)) if isinstance(lines, list | tuple) else str(lines))
    if delta.get("set_error"):
        renamed.setdefault("error", delta["set_error"])
    knowledge = _knowledge(delta)
    return renamed | ({"knowledge_delta": knowledge} if knowledge else {})


def _knowledge(delta: Mapping[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name in ("knowledge", "knowledge_delta", "update_knowledge"):
        known |= delta[name] if isinstance(delta.get(name), Mapping) else {}
    return known | ({"file_context": delta["file_context"]} if delta.get("file_context") else {})
