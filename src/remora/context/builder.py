"""The concept's `PacketBuilder`: builds the Decision Packet from the Long Track, and its prompt within a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from remora.context.models import DecisionPacket
from remora.context.projection import EMPTY, apply
from remora.context.render import Style, render_within
from remora.events import Event, as_event

ESTIMATED_BYTES = 3
"""Bytes that count as one token without a tokenizer: rather too many tokens than too few."""


class PacketBuilder:
    """Folds events into a packet, one by one or all at once, and renders it within a token limit."""

    def __init__(self, packet: DecisionPacket = EMPTY) -> None:
        self.packet = packet

    def add(self, event: Event | Mapping[str, Any]) -> DecisionPacket:
        """Fold one event and return the packet."""
        self.packet = apply(self.packet, as_event(event))
        return self.packet

    def build(self, events: Iterable[Event | Mapping[str, Any]]) -> DecisionPacket:
        """Fold all events and return the packet."""
        for event in events:
            self.add(event)
        return self.packet

    def prompt(
        self, limit: int, *, system: str = "", count: Callable[[str], int] | None = None, style: Style = "json"
    ) -> str:
        """The packet as the text that a model would see, within `limit` tokens. Raises `BudgetError`."""
        counted = count or _estimate
        fixed = counted(system)
        made = render_within(self.packet, system, fixed, limit=limit, count=counted, style=style, calling="native")
        return made.user


def _estimate(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // ESTIMATED_BYTES)
