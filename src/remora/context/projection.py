"""The fold: events in, Decision Packet out. Pure: no clock, no disk, no randomness, no model.

Only an event's `delta` changes the packet, besides `agent_start`, which begins it, and `turn_start`, which counts.
The rules are part of format 1:

    action              appended; the last 10 stay
    knowledge           upsert; `supersedes` removes the older key; the entry keeps its turn and seq
    error               set, cleared or kept; the count only grows
    diagnostics         appended if new; the last 8 stay
    candidate_actions   replaced; cleared by the next action
    state_summary       replaced
    excerpts            replaced by label; the last 3 stay
    hub                 set and removed by node
    extensions          replaced per key
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from remora.context.models import MAX_RECENT_ACTIONS, Constraints, DecisionPacket, KnowledgeEntry, RecentAction
from remora.context.text import one_line
from remora.errors import ProjectionStopped
from remora.events import (
    ActionDelta,
    AgentStartEvent,
    ErrorDelta,
    Event,
    Excerpt,
    HubDelta,
    KnowledgeDelta,
    PacketDelta,
    TurnStartEvent,
    UnreadableDelta,
)

PROJECTOR = "1"
MAX_DIAGNOSTICS = 8
MAX_EXCERPTS = 3

EMPTY = DecisionPacket(agent_id="", goal="", operation="", node_id="")
"""The packet before any event."""


def project(events: Iterable[Event], start: DecisionPacket = EMPTY) -> DecisionPacket:
    """The packet after all `events`, beginning with `start`."""
    packet = start
    for event in events:
        packet = apply(packet, event)
    return packet


def apply(packet: DecisionPacket, event: Event) -> DecisionPacket:
    """The packet as it stands after `event`. Raises `ProjectionStopped` at a delta of a version it cannot read."""
    match event:
        case AgentStartEvent():
            packet = _begin(event)
        case TurnStartEvent():
            packet = packet.model_copy(update={"turn": event.turn})
        case _:
            pass
    match event.delta:
        case None:
            return packet
        case PacketDelta() as delta:
            return merge(packet, delta, event)
        case UnreadableDelta(version=int() as version):
            raise ProjectionStopped(seq=event.seq, version=version)
        case UnreadableDelta(problem=problem):
            return merge(packet, PacketDelta(diagnostics=(f"seq {event.seq}: unreadable delta, {problem}",)), event)


def merge(packet: DecisionPacket, delta: PacketDelta, event: Event) -> DecisionPacket:
    """The packet with `delta` in it. `event` says when: its turn, seq and time."""
    update: dict[str, Any] = {}
    if delta.action is not None:
        update["recent_actions"] = _actions(packet, delta.action, event.turn)
        update["candidate_actions"] = []
    if delta.knowledge:
        update["knowledge"] = _knowledge(packet, delta.knowledge, event)
    if delta.error is not None:
        update |= _error(packet, delta.error)
    if delta.diagnostics:
        update["diagnostics"] = _diagnostics(packet, delta.diagnostics)
    if delta.candidate_actions is not None:
        update["candidate_actions"] = list(delta.candidate_actions)
    if delta.state_summary is not None:
        update["state_summary"] = one_line(delta.state_summary)
    if delta.excerpts:
        update["excerpts"] = _excerpts(packet, delta.excerpts)
    if delta.hub is not None:
        update |= _hub(packet, delta.hub, event.ts)
    if delta.extensions:
        update["extensions"] = packet.extensions | delta.extensions
    return packet.model_copy(update=update)


def _begin(event: AgentStartEvent) -> DecisionPacket:
    """A fresh packet. What a damaged or foreign start does not say stays empty."""
    try:
        constraints = Constraints.model_validate(event.constraints)
    except ValidationError:
        constraints = Constraints()
    return DecisionPacket(
        agent_id=event.agent_id,
        goal=one_line(event.goal),
        operation=event.operation,
        node_id=event.node_id,
        node_summary=one_line(str(event.node.get("summary", ""))),
        constraints=constraints,
    )


def _actions(packet: DecisionPacket, action: ActionDelta, turn: int) -> list[RecentAction]:
    recent = RecentAction(
        turn=turn,
        tool=one_line(action.tool),
        summary=one_line(action.summary),
        outcome=action.outcome,
        nodes=action.nodes,
    )
    return [*packet.recent_actions, recent][-MAX_RECENT_ACTIONS:]


def _knowledge(packet: DecisionPacket, news: dict[str, KnowledgeDelta], event: Event) -> dict[str, KnowledgeEntry]:
    known = dict(packet.knowledge)
    for key, item in news.items():
        known.pop(item.supersedes or key, None)
        known.pop(key, None)
        known[key] = KnowledgeEntry(
            key=key,
            value=item.value,
            source_turn=event.turn,
            supersedes=item.supersedes,
            pinned=item.pinned,
            seq=event.seq if event.seq >= 0 else None,
        )
    return known


def _error(packet: DecisionPacket, error: ErrorDelta) -> dict[str, Any]:
    if error.set is not None:
        return {"last_error": one_line(error.set), "error_count": packet.error_count + 1}
    return {"last_error": None} if error.clear else {}


def _diagnostics(packet: DecisionPacket, news: Iterable[str]) -> list[str]:
    lines = list(packet.diagnostics)
    for text in news:
        line = one_line(text)
        if line not in lines:
            lines.append(line)
    return lines[-MAX_DIAGNOSTICS:]


def _excerpts(packet: DecisionPacket, news: Iterable[Excerpt]) -> list[Excerpt]:
    by_label = {excerpt.label: excerpt for excerpt in packet.excerpts}
    for excerpt in news:
        by_label.pop(excerpt.label, None)
        by_label[excerpt.label] = excerpt
    return list(by_label.values())[-MAX_EXCERPTS:]


def _hub(packet: DecisionPacket, hub: HubDelta, ts: str) -> dict[str, Any]:
    facts = {node: fact for node, fact in (packet.hub_context or {}).items() if node not in hub.remove} | hub.set
    return {"hub_context": facts or None, "hub_freshness": _moment(ts)}


def _moment(ts: str) -> datetime | None:
    try:
        return datetime.fromisoformat(ts)
    except ValueError:
        return None
