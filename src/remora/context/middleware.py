"""Middleware: what a hook changed in its copy of the packet, as a delta that can be recorded and folded.

A hook may do what a delta can do: add or change knowledge, diagnostics, excerpts, extensions and Hub facts, take Hub
facts away, replace candidate actions and the state summary, set or clear the last error, add one action. Everything
else (another goal, a forgotten action, a smaller error count) has no delta: it is refused, and the packet says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remora.context._summaries import storable
from remora.context.models import DecisionPacket
from remora.context.text import one_line
from remora.errors import TraceError
from remora.events import ActionDelta, CandidateAction, ErrorDelta, HubDelta, KnowledgeDelta, PacketDelta

Hook = Callable[[DecisionPacket], Any]
"""Changes a packet in place; may be async."""

_FIXED = ("agent_id", "turn", "goal", "operation", "node_id", "node_summary", "constraints", "packet_version")


def hook_name(hook: Hook) -> str:
    """Who it is, as streams say it."""
    return str(getattr(hook, "__qualname__", type(hook).__qualname__))


def difference(before: DecisionPacket, after: DecisionPacket) -> PacketDelta | None:
    """The delta from one packet to the other, None if there is none. Raises `TraceError` for what JSON cannot hold."""
    action = _action(before, after)
    delta = PacketDelta(
        action=action,
        knowledge=_knowledge(before, after),
        error=_error(before, after),
        diagnostics=(*(line for line in after.diagnostics if line not in before.diagnostics), *_refused(before, after)),
        candidate_actions=_candidates(before, after, action),
        state_summary=after.state_summary if after.state_summary != before.state_summary else None,
        excerpts=tuple(excerpt for excerpt in after.excerpts if excerpt not in before.excerpts),
        hub=_hub(before, after),
        extensions=_changed(before.extensions, after.extensions),
    )
    try:
        delta = storable(delta)
    except (TypeError, ValueError) as error:
        raise TraceError(f"Middleware put a value into the packet that JSON cannot hold: {error}") from error
    return None if delta == PacketDelta() else delta


def _refused(before: DecisionPacket, after: DecisionPacket) -> list[str]:
    """A line for each change that no delta can make."""
    names = [name for name in _FIXED if getattr(before, name) != getattr(after, name)]
    replaced = {entry.supersedes for entry in after.knowledge.values()}
    names += [f"knowledge {key}" for key in before.knowledge if key not in after.knowledge and key not in replaced]
    return [f"Middleware may not change {one_line(name, 80)}: it stays as it was" for name in names]


def _action(before: DecisionPacket, after: DecisionPacket) -> ActionDelta | None:
    """The newest action, if it is a new one."""
    if not after.recent_actions or after.recent_actions[-1:] == before.recent_actions[-1:]:
        return None
    newest = after.recent_actions[-1]
    return ActionDelta(tool=newest.tool, summary=newest.summary, outcome=newest.outcome, nodes=newest.nodes)


def _knowledge(before: DecisionPacket, after: DecisionPacket) -> dict[str, KnowledgeDelta]:
    news = _changed(before.knowledge, after.knowledge)
    return {
        key: KnowledgeDelta(value=entry.value, supersedes=entry.supersedes, pinned=entry.pinned)
        for key, entry in news.items()
    }


def _error(before: DecisionPacket, after: DecisionPacket) -> ErrorDelta | None:
    if after.last_error is not None and (after.last_error, after.error_count) != (
        before.last_error,
        before.error_count,
    ):
        return ErrorDelta(set=after.last_error)
    return ErrorDelta(clear=True) if before.last_error is not None and after.last_error is None else None


def _hub(before: DecisionPacket, after: DecisionPacket) -> HubDelta | None:
    old, new = before.hub_context or {}, after.hub_context or {}
    gone = tuple(node for node in old if node not in new)
    return HubDelta(set=_changed(old, new), remove=gone) if old != new else None


def _candidates(
    before: DecisionPacket, after: DecisionPacket, action: ActionDelta | None
) -> tuple[CandidateAction, ...] | None:
    # An action clears the candidates in the fold, so beside one they are said again.
    if after.candidate_actions == before.candidate_actions and (action is None or not after.candidate_actions):
        return None
    return tuple(after.candidate_actions)


def _changed(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in new.items() if key not in old or old[key] != value}
