"""Carries the packet of one stream into another: a stream that continues a parent begins with what the parent knew.

The packet becomes ordinary `packet_update` events, so that the new stream folds to it alone, even if the parent is
deleted. Each names its `origin`, the parent's event, so that provenance and `recall` reach the raw result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from remora.context.evidence import Entry, Known, Reading, called
from remora.context.models import DecisionPacket, KnowledgeEntry
from remora.context.projection import project
from remora.events import (
    ActionDelta,
    AgentEndEvent,
    AgentStartEvent,
    ErrorDelta,
    Event,
    HubDelta,
    KnowledgeDelta,
    PacketDelta,
    PacketUpdateEvent,
    ToolCallEvent,
    ToolResultEvent,
    is_check,
)
from remora.twotrack._evidence import with_evidence

Relation = Literal["continue", "fork"]
INTERRUPTED = "It was interrupted: nobody knows whether it took effect"
_EARLIER = "identifiers from earlier outputs"


@dataclass(frozen=True)
class Parent:
    """A stream that another one continues, as far as it was read."""

    agent_id: str
    seq: int
    head: str
    packet: DecisionPacket
    start: AgentStartEvent
    sealed: bool = False
    open_calls: tuple[ToolCallEvent, ...] = ()
    """Calls without a recorded result."""
    relation: Relation = "continue"

    def record(self) -> dict[str, Any]:
        """The `parent` of the new stream's `agent_start`."""
        return {"agent_id": self.agent_id, "seq": self.seq, "head": self.head, "relation": self.relation}


@dataclass
class _Reading:
    start: AgentStartEvent = field(default_factory=AgentStartEvent)
    open_calls: dict[str, ToolCallEvent] = field(default_factory=dict)
    seq: int = -1
    sealed: bool = False

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            self.seq = event.seq
            if isinstance(event, AgentStartEvent):
                self.start = event
            elif isinstance(event, ToolCallEvent) and not is_check(event):
                self.open_calls[event.call_id] = event
            elif isinstance(event, ToolResultEvent):
                self.open_calls.pop(event.call_id, None)
            self.sealed = isinstance(event, AgentEndEvent)
            yield event


def read_parent(events: Iterable[Event], agent_id: str, head: str, relation: Relation = "continue") -> Parent:
    """Fold the events of a stream that is to be continued."""
    seen = _Reading()
    packet = project(seen.watch(events))
    return Parent(agent_id, seen.seq, head, packet, seen.start, seen.sealed, tuple(seen.open_calls.values()), relation)


def carried(parent: Parent) -> list[PacketUpdateEvent]:
    """The parent's packet as events of a new stream, in the order in which things happened."""
    packet, source = parent.packet, parent.relation

    def update(delta: PacketDelta, **origin: Any) -> PacketUpdateEvent:
        return PacketUpdateEvent(source=source, origin={"agent_id": parent.agent_id, **origin}, delta=delta)

    entries = {entry.seq: entry for entry in packet.evidence.entries}
    known = _by_seq(packet.knowledge.values())
    drafts = [update(_ledger(packet.evidence.ledger))] if packet.evidence.ledger else []
    for seq in sorted({*entries, *known}):
        delta = PacketDelta(knowledge=known.get(seq, {}))
        drafts.append(update(with_evidence(delta, entries[seq]) if seq in entries else delta, seq=seq))
    drafts += [
        update(PacketDelta(action=ActionDelta(**action.model_dump(exclude={"turn"}))))
        for action in packet.recent_actions
    ]
    drafts += [update(_interrupted(call), seq=call.seq) for call in parent.open_calls]
    rest = _rest(packet)
    return [*drafts, update(rest)] if rest != PacketDelta() else drafts


def _by_seq(entries: Iterable[KnowledgeEntry]) -> dict[int, dict[str, KnowledgeDelta]]:
    found: dict[int, dict[str, KnowledgeDelta]] = {}
    for entry in entries:
        delta = KnowledgeDelta(value=entry.value, pinned=entry.pinned)
        found.setdefault(-1 if entry.seq is None else entry.seq, {})[entry.key] = delta
    return found


def _ledger(ledger: Iterable[Known]) -> PacketDelta:
    """Identifiers whose outputs the parent no longer shows, as one entry at the beginning."""
    pairs = tuple((item.key, item.value) for item in ledger)
    lines = tuple(f"{key} {value}" for key, value in pairs)
    return with_evidence(PacketDelta(), Entry(0, "call", _EARLIER, lines=lines, kind="records", identifiers=pairs))


def _interrupted(call: ToolCallEvent) -> PacketDelta:
    action = ActionDelta(tool=call.tool, summary=INTERRUPTED, outcome="error")
    entry = called(0, call.tool, _arguments(call.args), Reading("text", (INTERRUPTED,), True))
    return with_evidence(PacketDelta(action=action, error=ErrorDelta(set=f"{call.tool}: {INTERRUPTED}")), entry)


def _arguments(args: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if "too_large" in args and "blob" in args else args


def _rest(packet: DecisionPacket) -> PacketDelta:
    return PacketDelta(
        error=ErrorDelta(set=packet.last_error) if packet.last_error else None,
        diagnostics=tuple(packet.diagnostics),
        candidate_actions=tuple(packet.candidate_actions) or None,
        state_summary=packet.state_summary or None,
        excerpts=tuple(packet.excerpts),
        hub=HubDelta(set=packet.hub_context) if packet.hub_context else None,
        extensions=dict(packet.extensions),
    )
