"""The fold: events in, Decision Packet out. Pure: no clock, no disk, no randomness, no model.

Only deltas change the packet, except that `agent_start` creates it and `turn_start` sets the turn.
The rules are part of format 1:

    action              appended; the last 10 stay
    knowledge           upsert; `supersedes` removes the older key; the entry keeps its turn and seq
    error               set, cleared or kept; the count never decreases
    diagnostics         appended if new; the last 8 stay
    candidate_actions   replaced; cleared by the next action
    state_summary       replaced
    excerpts            replaced by label; the last 3 stay
    hub                 set and removed by node
    extensions          replaced per key
    evidence            appended; bounded in bytes, see `remora.context.evidence`

Projector 1 kept only the beginning of the goal. Projector 2 shrank evidence in smaller steps, and by the words of all
entries. Their streams still fold that way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from remora.context.evidence import Entry, Evidence, remember, words_of
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
    EvidenceDelta,
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

PROJECTOR = "3"
"""The projector of new streams. Each stream names the one that it was recorded for."""
MAX_DIAGNOSTICS = 8

_News = tuple[KnowledgeDelta | PlainKnowledge, int, int]
"""Knowledge with its turn and seq."""

EMPTY = DecisionPacket(agent_id="", goal="", operation="", node_id="")
"""The packet before any event."""


def project(events: Iterable[Event | Change], start: DecisionPacket = EMPTY) -> DecisionPacket:
    """Fold all `events`, starting with `start`. Raises `ProjectionStopped` like `apply`."""
    fold = _Fold(start)
    for event in events:
        fold.take(event)
    return fold.packet()


def apply(packet: DecisionPacket, event: Event) -> DecisionPacket:
    """The packet after `event`. Raises `ProjectionStopped` for a delta of an unknown version."""
    return project([event], start=packet) if changes_packet(event) else packet


def changes_packet(event: Event) -> bool:
    """Whether the event can change the packet."""
    return event.delta is not None or counts_turns(event)


def counts_turns(event: Event) -> bool:
    """Whether the event creates the packet or sets its turn."""
    return event.type in ("turn_start", "agent_start") and isinstance(event, AgentStartEvent | TurnStartEvent)


class _Fold:
    """A mutable copy of a packet, so that the cost of an event does not grow with the packet."""

    def __init__(self, packet: DecisionPacket) -> None:
        self._begin(packet)

    def take(self, event: Event | Change) -> None:
        """Fold one event."""
        # Compare `type` first: a failed `isinstance` check of a model class takes as long as folding the event.
        if type(event) is not Change and isinstance(event, AgentStartEvent):
            self._begin(_new_packet(event))
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
        self._add_diagnostics([f"seq {event.seq}: unreadable delta, {delta.problem}"])

    def packet(self) -> DecisionPacket:
        """The current packet. Its parts are already validated."""
        parts = {
            "recent_actions": [_action(item) for item in self._actions],
            "knowledge": {key: _entry(key, item) for key, item in self._known.items()},
            "hub_context": dict(self._hub) or None,
            "diagnostics": list(self._diagnostics),
            "candidate_actions": list(self._candidates),
            "excerpts": list(self._excerpts.values()),
            "extensions": dict(self._extensions),
            "evidence": self._evidence,
        }
        return EMPTY.model_copy(update=self._scalars | parts)

    def _begin(self, packet: DecisionPacket) -> None:
        self._scalars: dict[str, Any] = {name: getattr(packet, name) for name in _SCALARS}
        # New parts become models only in `packet`: most of them are replaced before.
        self._actions: deque[RecentAction | tuple[ActionDelta | PlainAction, int]] = deque(
            packet.recent_actions, maxlen=MAX_RECENT_ACTIONS
        )
        self._known: dict[str, KnowledgeEntry | _News] = dict(packet.knowledge)
        self._hub = dict(packet.hub_context or {})
        self._diagnostics = deque(packet.diagnostics, maxlen=MAX_DIAGNOSTICS)
        self._candidates = list(packet.candidate_actions)
        self._excerpts = {excerpt.label: excerpt for excerpt in packet.excerpts}
        self._extensions = dict(packet.extensions)
        self._evidence = packet.evidence

    def _merge(self, delta: PacketDelta | PlainDelta, event: Event | Change) -> None:
        if delta.action is not None:
            self._add_action(delta.action, event.turn)
        for key, item in delta.knowledge.items():
            self._learn(key, item, event)
        if delta.error is not None:
            self._set_error(delta.error)
        if type(delta) is not PlainDelta:
            self._merge_rest(delta, event.ts)
            if delta.evidence is not None:
                self._remember(delta.evidence, event.seq)

    def _merge_rest(self, delta: PacketDelta | PlainDelta, ts: str) -> None:
        if delta.diagnostics:
            self._add_diagnostics(delta.diagnostics)
        if delta.candidate_actions is not None:
            self._candidates = list(delta.candidate_actions)
        if delta.state_summary is not None:
            self._scalars["state_summary"] = one_line(delta.state_summary)
        for excerpt in delta.excerpts:
            self._add_excerpt(excerpt)
        if delta.hub is not None:
            self._update_hub(delta.hub, ts)
        if delta.extensions:
            self._extensions |= delta.extensions

    def _remember(self, news: EvidenceDelta, seq: int) -> None:
        entry = Entry(
            seq=seq,
            speaker=news.speaker,
            text=news.text,
            call=news.call,
            given=news.given,
            lines=news.lines,
            kind=news.kind,
            failed=news.failed,
            omitted=news.omitted,
            identifiers=news.identifiers,
        )
        self._evidence = remember(self._evidence, entry, _goal_words(self._scalars["goal"]))

    def _add_action(self, action: ActionDelta | PlainAction, turn: int) -> None:
        self._actions.append((action, turn))
        self._candidates = []

    def _learn(self, key: str, item: KnowledgeDelta | PlainKnowledge, event: Event | Change) -> None:
        if item.supersedes is not None:
            self._known.pop(item.supersedes, None)
        # Pop first, so that the newest key is the last one.
        self._known.pop(key, None)
        self._known[key] = (item, event.turn, event.seq)

    def _set_error(self, error: ErrorDelta | PlainError) -> None:
        if error.set is not None:
            self._scalars["last_error"] = one_line(error.set)
            self._scalars["error_count"] += 1
        elif error.clear:
            self._scalars["last_error"] = None

    def _add_diagnostics(self, lines: Iterable[str]) -> None:
        for text in lines:
            line = one_line(text)
            if line not in self._diagnostics:
                self._diagnostics.append(line)

    def _add_excerpt(self, excerpt: Excerpt) -> None:
        self._excerpts.pop(excerpt.label, None)
        self._excerpts[excerpt.label] = excerpt
        if len(self._excerpts) > MAX_EXCERPTS:
            del self._excerpts[next(iter(self._excerpts))]

    def _update_hub(self, hub: HubDelta, ts: str) -> None:
        for node in hub.remove:
            self._hub.pop(node, None)
        self._hub |= hub.set
        self._scalars["hub_freshness"] = _parse_time(ts)


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


@lru_cache(maxsize=64)
def _goal_words(goal: str) -> frozenset[str]:
    return words_of(goal)


def _new_packet(event: AgentStartEvent) -> DecisionPacket:
    """A new packet. Fields that a damaged or foreign `agent_start` lacks stay empty."""
    try:
        constraints = Constraints.model_validate(event.constraints)
    except ValidationError:
        constraints = Constraints()
    return DecisionPacket(
        agent_id=event.agent_id,
        goal=one_line(event.goal) if event.projector in ("", "1") else event.goal,
        operation=event.operation,
        node_id=event.node_id,
        node_summary=one_line(str(event.node.get("summary", ""))),
        constraints=constraints,
        evidence=Evidence(rules=2) if event.projector in ("", "1", "2") else Evidence(),
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


def _parse_time(ts: str) -> datetime | None:
    try:
        return datetime.fromisoformat(ts)
    except ValueError:
        return None
