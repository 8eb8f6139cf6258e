"""The concept's `PacketBuilder`: builds the Decision Packet from the Long Track, and its prompt within a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from remora.context.models import DecisionPacket, KnowledgeEntry, RecentAction
from remora.context.projection import EMPTY, apply
from remora.context.render import Style, render_within
from remora.events import Event, as_event, canonical

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


def build_system_prompt(packet: DecisionPacket, tools: Iterable[str] = ()) -> str:
    """The concept review's prompt: the whole packet as Markdown, without a limit. Agents use `PacketBuilder.prompt`."""
    parts = [
        "You are a code maintenance agent.",
        f"## Current State\n- Goal: {packet.goal}\n- Target: {packet.node_id}\n- Turn: {packet.turn}",
        f"## Recent Actions\n{format_recent_actions(packet.recent_actions)}",
        f"## Working Knowledge\n{format_knowledge(packet.knowledge)}",
        format_error_state(packet.last_error) if packet.last_error else "",
        "\n".join(["## Available Tools", *(f"- {tool}" for tool in tools)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def format_recent_actions(actions: Iterable[RecentAction]) -> str:
    """One line for each action, oldest first."""
    return "\n".join(f"- Turn {each.turn}: {each.tool} ({each.outcome}): {each.summary}" for each in actions) or _NONE


def format_knowledge(knowledge: Mapping[str, KnowledgeEntry]) -> str:
    """One line for each entry."""
    return "\n".join(f"- {key}: {_one_line_of(entry.value)}" for key, entry in knowledge.items()) or _NONE


def format_error_state(error: str) -> str:
    """The last error under a heading."""
    return f"## Last Error\n{error}"


def _one_line_of(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value).decode()


_NONE = "- none"
