"""Replaying a stream: the packet at any turn, and whether it equals the one in the receipt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from remora.analysis._fork import inherited_seq
from remora.context.models import DecisionPacket
from remora.context.projection import EMPTY, apply, project
from remora.events import AgentStartEvent, Change, Event, ModelRequestEvent, PacketDelta, PlainDelta, canonical, digest


@dataclass(frozen=True)
class Replay:
    """The result of folding a stream."""

    packet: DecisionPacket
    receipts: int
    """Number of prompts whose recorded packet digest was compared."""
    first_difference: int | None
    """The `seq` of the first receipt with another packet digest."""


@dataclass(frozen=True)
class Source:
    """An event that set the value."""

    seq: int
    turn: int
    type: str
    tool: str
    value: Any
    supersedes: str | None = None


@dataclass(frozen=True)
class Explanation:
    """Why a packet had a value."""

    key: str
    turn: int
    value: Any
    known: bool
    sources: tuple[Source, ...]
    """Every event that set it up to that turn, oldest first. The last one is the reason."""
    keys: tuple[str, ...] = ()
    """Everything in that packet that can be explained, knowledge first."""


def replay(events: Iterable[Event], to: int | None = None) -> Replay:
    """Fold up to turn `to`, or all events, and compare every receipt. Raises `ProjectionStopped`."""
    packet, receipts, different, inherited = EMPTY, 0, None, -1
    for event in events:
        if to is not None and event.turn > to:
            break
        if isinstance(event, AgentStartEvent):
            inherited = inherited_seq(event)
        # A receipt that a fork inherited is for its parent's packet, which has another agent id.
        if isinstance(event, ModelRequestEvent) and event.packet_sha256 and event.seq > inherited:
            receipts += 1
            if different is None and event.packet_sha256 != digest(canonical(packet)):
                different = event.seq
        packet = apply(packet, event)
    return Replay(packet, receipts, different)


def explain(events: Iterable[Event | Change], key: str, at: int | None = None) -> Explanation:
    """The value of `key` after turn `at`, and the events that set it. Raises `ProjectionStopped`.

    A key like `#12` is a piece of the account: what was kept of event 12.
    """
    sources: list[Source] = []

    def collect() -> Iterator[Event | Change]:
        for event in takewhile(lambda event: at is None or event.turn <= at, events):
            yield event
            if isinstance(event.delta, PacketDelta | PlainDelta) and (found := _set_by(event, event.delta, key)):
                sources.append(found)

    packet = project(collect())
    value = _held(packet, key)
    return Explanation(key, packet.turn, value, value is not None, tuple(sources), _keys(packet))


def _set_by(event: Event | Change, delta: PacketDelta | PlainDelta, key: str) -> Source | None:
    tool = str(getattr(event, "tool", ""))
    if key in delta.knowledge:
        item = delta.knowledge[key]
        return Source(event.seq, event.turn, event.type, tool, item.value, item.supersedes)
    if delta.evidence is not None and key == f"#{event.seq}":
        kept = delta.evidence
        return Source(event.seq, event.turn, event.type, tool, "\n".join((kept.text, *kept.given, *kept.lines)).strip())
    value = {
        "last_error": delta.error.set if delta.error else None,
        "state_summary": delta.state_summary,
        "diagnostics": list(delta.diagnostics) or None,
        "candidate_actions": [action.model_dump() for action in delta.candidate_actions or ()] or None,
        "recent_actions": delta.action.summary if delta.action else None,
        "excerpts": [excerpt.label for excerpt in delta.excerpts] or None,
        "hub_context": delta.hub.set if delta.hub else None,
    }.get(key, delta.extensions.get(key))
    return None if value is None else Source(event.seq, event.turn, event.type, tool, value)


_FIELDS = (
    "last_error", "state_summary", "diagnostics", "candidate_actions", "recent_actions", "excerpts", "hub_context",
)  # fmt: skip
"""The fields of a packet that deltas set."""


def _keys(packet: DecisionPacket) -> tuple[str, ...]:
    fields = (name for name in _FIELDS if getattr(packet, name))
    pieces = (f"#{entry.seq}" for entry in packet.evidence.entries)
    return (*packet.knowledge, *packet.extensions, *fields, *pieces)


def _held(packet: DecisionPacket, key: str) -> Any:
    if key in packet.knowledge:
        return packet.knowledge[key].value
    if key in packet.extensions:
        return packet.extensions[key]
    if key.startswith("#"):
        entries = (entry for entry in packet.evidence.entries if key == f"#{entry.seq}")
        return next(("\n".join((entry.text, *entry.given, *entry.lines)).strip() for entry in entries), None)
    shown = packet.model_dump(mode="json", exclude_defaults=True)
    return shown.get(key)
