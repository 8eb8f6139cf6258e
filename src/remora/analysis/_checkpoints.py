"""Packets on the way: where a stream itself proves one, it is worth keeping, and the fold can go on from there.

A receipt names the digest of the packet that was shown. So a kept packet is believed only at a receipt, and only if it
has the digest that the stream says it had. Whatever else it may be, it is then the packet that a full fold gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import ValidationError

from remora.context.models import DecisionPacket
from remora.context.projection import EMPTY, project
from remora.events import Event, ModelRequestEvent, canonical, digest

EVERY = 256
"""How many events apart packets are kept."""


@dataclass(frozen=True)
class Folded:
    """Where a fold came to, and the proven packets on its way, as JSON, by the `seq` of their receipts."""

    packet: DecisionPacket
    proven: dict[int, bytes] = field(default_factory=dict)


def fold(events: Iterable[Event], start: DecisionPacket = EMPTY, *, after: int = -1, to: int | None = None) -> Folded:
    """The packet after turn `to`, or after everything, where `start` is the one after `seq` `after`.

    Raises `ProjectionStopped`.
    """
    packet, proven, turn = start, dict[int, bytes](), start.turn
    part: list[Event] = []
    for event in events:
        if to is not None and event.turn > to:
            break
        turn = max(turn, event.turn)
        part.append(event)
        if event.seq - after >= EVERY and isinstance(event, ModelRequestEvent):
            packet, part = project(part, start=packet), []
            if turn == packet.turn and (kept := _kept(packet, event)):
                after, proven[event.seq] = event.seq, kept
    return Folded(project(part, start=packet), proven)


def restored(kept: bytes, receipt: Event) -> DecisionPacket | None:
    """The packet that was kept at the receipt, if it is the one that the receipt names."""
    if not isinstance(receipt, ModelRequestEvent) or receipt.delta is not None:
        return None
    try:
        packet = DecisionPacket.model_validate_json(kept)
    except ValidationError:
        return None
    same = packet.turn == receipt.turn and digest(canonical(packet)) == receipt.packet_sha256
    return packet if same else None


def _kept(packet: DecisionPacket, receipt: ModelRequestEvent) -> bytes | None:
    data = packet.model_dump_json(exclude_defaults=True).encode()
    return data if restored(data, receipt) == packet else None
