"""Middleware: turns a hook's changes to its copy of the packet into a delta that can be recorded and folded.

A hook can do what a delta can do: add or change knowledge, diagnostics, excerpts, extensions and Hub facts, remove Hub
facts, replace candidate actions and the state summary, set or clear the last error, and add one action. No delta can
make other changes, such as a new goal, a removed action or a smaller error count. They are refused with a diagnostic.
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
    """The name that streams record."""
    return str(getattr(hook, "__qualname__", type(hook).__qualname__))


def difference(before: DecisionPacket, after: DecisionPacket) -> PacketDelta | None:
    """The delta between two packets; None if they are equal. Raises `TraceError` for values that are not JSON."""
    action = _action(before, after)
    delta = PacketDelta(
        action=action,
        knowledge=_knowledge(before, after),
        error=_error(before, after),
        diagnostics=(
            *(line for line in after.diagnostics if line not in before.diagnostics),
            *_refused_changes(before, after),
        ),
        candidate_actions=_candidates(before, after, action),
        state_summary=after.state_summary if after.state_summary != before.state_summary else None,
        excerpts=tuple(excerpt for excerpt in after.excerpts if excerpt not in before.excerpts),
        hub=_hub(before, after),
        extensions=_changed_items(before.extensions, after.extensions),
    )
    try:
        delta = storable(delta)
    except (TypeError, ValueError) as error:
        raise TraceError(f"Middleware put a value into the packet that JSON cannot hold: {error}") from error
    return None if delta == PacketDelta() else delta


def _refused_changes(before: DecisionPacket, after: DecisionPacket) -> list[str]:
    """A diagnostic for each change that no delta can make."""
    names = [name for name in _FIXED if getattr(before, name) != getattr(after, name)]
    replaced = {entry.supersedes for entry in after.knowledge.values()}
    names += [f"knowledge {key}" for key in before.knowledge if key not in after.knowledge and key not in replaced]
    return [f"Middleware may not change {one_line(name, 80)}: it stays as it was" for name in names]


def _action(before: DecisionPacket, after: DecisionPacket) -> ActionDelta | None:
    """The newest action, if the hook added it."""
    if not after.recent_actions or after.recent_actions[-1:] == before.recent_actions[-1:]:
        return None
    newest = after.recent_actions[-1]
    return ActionDelta(tool=newest.tool, summary=newest.summary, outcome=newest.outcome, nodes=newest.nodes)


def _knowledge(before: DecisionPacket, after: DecisionPacket) -> dict[str, KnowledgeDelta]:
    changed = _changed_items(before.knowledge, after.knowledge)
    return {
        key: KnowledgeDelta(value=entry.value, supersedes=entry.supersedes, pinned=entry.pinned)
        for key, entry in changed.items()
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
    return HubDelta(set=_changed_items(old, new), remove=gone) if old != new else None


def _candidates(
    before: DecisionPacket, after: DecisionPacket, action: ActionDelta | None
) -> tuple[CandidateAction, ...] | None:
    # The fold clears the candidates on every action, so a delta with an action must repeat them.
    if after.candidate_actions == before.candidate_actions and (action is None or not after.candidate_actions):
        return None
    return tuple(after.candidate_actions)


def _changed_items(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in new.items() if key not in old or old[key] != value}
