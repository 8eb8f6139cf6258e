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

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from remora.context.models import (
    MAX_EXCERPTS,
    MAX_RECENT_ACTIONS,
    Constraints,
    DecisionPacket,
    KnowledgeEntry,
    RecentAction,
)
from remora.context.text import one_line
from remora.errors import ProjectionStopped
from remora.events import (
    ActionDelta,
    AgentStartEvent,
    Change,
    ErrorDelta,
    Event,
    Excerpt,
    HubDelta,
    KnowledgeDelta,
    PacketDelta,
    PlainAction,
    PlainDelta,
    PlainError,
    PlainKnowledge,
    TurnStartEvent,
    UnreadableDelta,
)

PROJECTOR = "1"
MAX_DIAGNOSTICS = 8

_News = tuple[KnowledgeDelta | PlainKnowledge, int, int]
"""Knowledge with its turn and seq."""

EMPTY = DecisionPacket(agent_id="", goal="", operation="", node_id="")
"""The packet before any event."""


def project(events: Iterable[Event | Change], start: DecisionPacket = EMPTY) -> DecisionPacket:
    """The packet after all `events`, beginning with `start`. Raises `ProjectionStopped` as `apply` does."""
    fold = _Fold(start)
    for event in events:
        fold.take(event)
    return fold.packet()


def apply(packet: DecisionPacket, event: Event) -> DecisionPacket:
    """The packet as it stands after `event`. Raises `ProjectionStopped` at a delta of a version it cannot read."""
    return project([event], start=packet) if changes_packet(event) else packet


def changes_packet(event: Event) -> bool:
    """Whether the fold does anything with the event."""
    return event.delta is not None or isinstance(event, AgentStartEvent | TurnStartEvent)


class _Fold:
    """A packet being made: its own copy, changed in place, so that a step costs the same however much is known."""

    def __init__(self, packet: DecisionPacket) -> None:
        self._begin(packet)

    def take(self, event: Event | Change) -> None:
        """The packet moves on by one event."""
        # Asking by `type` first: to ask a model class about what is none of its kind takes as long as folding it.
        if type(event) is not Change and isinstance(event, AgentStartEvent):
            self._begin(_started(event))
        elif event.type == "turn_start" and (type(event) is Change or isinstance(event, TurnStartEvent)):
            self._scalars["turn"] = event.turn
        delta = event.delta
        if delta is None:
            return
        if type(delta) is not PlainDelta and isinstance(delta, UnreadableDelta):
            self._refuse(delta, event)
        else:
            self._merge(delta, event)

    def _refuse(self, delta: UnreadableDelta, event: Event | Change) -> None:
        if delta.version is not None:
            raise ProjectionStopped(seq=event.seq, version=delta.version)
        self._tell([f"seq {event.seq}: unreadable delta, {delta.problem}"])

    def packet(self) -> DecisionPacket:
        """The packet as it stands. Everything in it was checked on its way in."""
        return DecisionPacket.model_construct(
            **self._scalars,
            recent_actions=[_action(item) for item in self._actions],
            knowledge={key: _entry(key, item) for key, item in self._known.items()},
            hub_context=dict(self._hub) or None,
            diagnostics=list(self._diagnostics),
            candidate_actions=list(self._candidates),
            excerpts=list(self._excerpts.values()),
            extensions=dict(self._extensions),
        )

    def _begin(self, packet: DecisionPacket) -> None:
        self._scalars: dict[str, Any] = {name: getattr(packet, name) for name in _SCALARS}
        # What is new becomes a model only when the packet is asked for: most of it will have been replaced by then.
        self._actions: deque[RecentAction | tuple[ActionDelta | PlainAction, int]] = deque(
            packet.recent_actions, maxlen=MAX_RECENT_ACTIONS
        )
        self._known: dict[str, KnowledgeEntry | _News] = dict(packet.knowledge)
        self._hub = dict(packet.hub_context or {})
        self._diagnostics = deque(packet.diagnostics, maxlen=MAX_DIAGNOSTICS)
        self._candidates = list(packet.candidate_actions)
        self._excerpts = {excerpt.label: excerpt for excerpt in packet.excerpts}
        self._extensions = dict(packet.extensions)

    def _merge(self, delta: PacketDelta | PlainDelta, event: Event | Change) -> None:
        if delta.action is not None:
            self._act(delta.action, event.turn)
        for key, item in delta.knowledge.items():
            self._learn(key, item, event)
        if delta.error is not None:
            self._err(delta.error)
        if type(delta) is not PlainDelta:
            self._merge_rest(delta, event.ts)

    def _merge_rest(self, delta: PacketDelta | PlainDelta, ts: str) -> None:
        if delta.diagnostics:
            self._tell(delta.diagnostics)
        if delta.candidate_actions is not None:
            self._candidates = list(delta.candidate_actions)
        if delta.state_summary is not None:
            self._scalars["state_summary"] = one_line(delta.state_summary)
        for excerpt in delta.excerpts:
            self._show(excerpt)
        if delta.hub is not None:
            self._pull(delta.hub, ts)
        if delta.extensions:
            self._extensions |= delta.extensions

    def _act(self, action: ActionDelta | PlainAction, turn: int) -> None:
        self._actions.append((action, turn))
        self._candidates = []

    def _learn(self, key: str, item: KnowledgeDelta | PlainKnowledge, event: Event | Change) -> None:
        if item.supersedes is not None:
            self._known.pop(item.supersedes, None)
        # Popped first, so that what was learned last stands last.
        self._known.pop(key, None)
        self._known[key] = (item, event.turn, event.seq)

    def _err(self, error: ErrorDelta | PlainError) -> None:
        if error.set is not None:
            self._scalars["last_error"] = one_line(error.set)
            self._scalars["error_count"] += 1
        elif error.clear:
            self._scalars["last_error"] = None

    def _tell(self, lines: Iterable[str]) -> None:
        for text in lines:
            line = one_line(text)
            if line not in self._diagnostics:
                self._diagnostics.append(line)

    def _show(self, excerpt: Excerpt) -> None:
        self._excerpts.pop(excerpt.label, None)
        self._excerpts[excerpt.label] = excerpt
        if len(self._excerpts) > MAX_EXCERPTS:
            del self._excerpts[next(iter(self._excerpts))]

    def _pull(self, hub: HubDelta, ts: str) -> None:
        for node in hub.remove:
            self._hub.pop(node, None)
        self._hub |= hub.set
        self._scalars["hub_freshness"] = _moment(ts)


_SCALARS = (
    "agent_id",
    "turn",
    "goal",
    "operation",
    "node_id",
    "node_summary",
    "last_error",
    "error_count",
    "hub_freshness",
    "state_summary",
    "constraints",
    "packet_version",
)


def _started(event: AgentStartEvent) -> DecisionPacket:
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


def _action(item: RecentAction | tuple[ActionDelta | PlainAction, int]) -> RecentAction:
    if isinstance(item, RecentAction):
        return item
    action, turn = item
    return RecentAction.model_construct(
        turn=turn,
        tool=one_line(action.tool),
        summary=one_line(action.summary),
        outcome=action.outcome,
        nodes=action.nodes,
    )


def _entry(key: str, item: KnowledgeEntry | _News) -> KnowledgeEntry:
    if isinstance(item, KnowledgeEntry):
        return item
    news, turn, seq = item
    return KnowledgeEntry.model_construct(
        key=key,
        value=news.value,
        source_turn=turn,
        supersedes=news.supersedes,
        pinned=news.pinned,
        seq=seq if seq >= 0 else None,
    )


def _moment(ts: str) -> datetime | None:
    try:
        return datetime.fromisoformat(ts)
    except ValueError:
        return None
