"""Holds one agent's packet and keeps the rule: recorded first, then folded, and changed in no other way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from remora.context.models import MAX_RECENT_ACTIONS, DecisionPacket
from remora.context.projection import apply
from remora.context.summarizers import Summarizer, distill
from remora.events import Event, HubDelta, HubUpdateEvent, PacketDelta, ToolResultEvent, TurnStartEvent, timestamp

HUB_PATIENCE_S = 0.5

Record = Callable[[Event], Awaitable[Event]]
"""Makes an event durable and gives it back as recorded."""


class ContextManager:
    """The packet of one agent. With `record`, every change is in the stream before it is in the packet."""

    MAX_RECENT_ACTIONS = MAX_RECENT_ACTIONS

    def __init__(
        self,
        initial_context: Mapping[str, Any],
        summarizers: dict[str, Summarizer] | None = None,
        *,
        record: Record | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.packet = DecisionPacket(
            agent_id=initial_context["agent_id"],
            goal=initial_context["goal"],
            operation=initial_context["operation"],
            node_id=initial_context["node_id"],
            node_summary=initial_context.get("node_summary", ""),
        )
        self.summarizers = dict(summarizers or {})
        self._record = record
        self._clock = clock or (lambda: datetime.now(UTC))
        self._hub_client: Any = None

    async def record(self, draft: Event) -> Event:
        """Make the event durable, then fold it."""
        event = await self._record(draft) if self._record else draft
        self.packet = apply(self.packet, event)
        return event

    def apply_event(self, event: Mapping[str, Any] | Event) -> None:
        """Fold an event: a typed one, or a plain dict with or without a delta. Other types change nothing."""
        if isinstance(event, Event):
            self.packet = apply(self.packet, event)
            return
        kind = event.get("type") or event.get("event")
        if kind == "tool_result":
            self.packet = apply(self.packet, self._tool_result(event))
        elif kind == "turn_start" and isinstance(event.get("turn"), int):
            self.packet = apply(self.packet, TurnStartEvent(turn=event["turn"]))
        elif kind == "hub_update":
            self.packet = apply(self.packet, self._hub_update(event.get("context") or {}))

    def increment_turn(self) -> None:
        """Begin the next turn."""
        self.packet = apply(self.packet, TurnStartEvent(turn=self.packet.turn + 1))

    def set_hub_client(self, client: Any) -> None:
        """Ask this Hub from now on."""
        self._hub_client = client

    async def pull_hub_context(self) -> None:
        """Bring fresh facts about the target into the packet. A Hub that is absent, slow or broken changes nothing."""
        if self._hub_client is None:
            return
        try:
            async with asyncio.timeout(HUB_PATIENCE_S):
                facts = await self._hub_client.get_context([self.packet.node_id])
        except Exception:  # noqa: BLE001 - the Hub is optional: whatever it does, the run goes on
            return
        if facts and facts != self.packet.hub_context:
            await self.record(self._hub_update(facts))

    def run_middleware(self, hooks: Iterable[Callable[[DecisionPacket], Any]]) -> None:
        """Let hooks enrich the packet in place."""
        for hook in hooks:
            hook(self.packet)

    def register_summarizer(self, tool_name: str, summarizer: Summarizer) -> None:
        """Use `summarizer` for what `tool_name` returns without a summary of its own."""
        self.summarizers[tool_name] = summarizer

    def get_prompt_context(self) -> dict[str, Any]:
        """The packet as a dict for a prompt template."""
        packet = self.packet
        return {
            "goal": packet.goal,
            "operation": packet.operation,
            "node_id": packet.node_id,
            "node_summary": packet.node_summary,
            "turn": packet.turn,
            "recent_actions": [
                {"tool": action.tool, "summary": action.summary, "outcome": action.outcome}
                for action in packet.recent_actions
            ],
            "knowledge": {key: entry.value for key, entry in packet.knowledge.items()},
            "last_error": packet.last_error,
            "hub_context": packet.hub_context,
        }

    def _tool_result(self, event: Mapping[str, Any]) -> ToolResultEvent:
        tool = str(event.get("tool_name") or event.get("tool") or "unknown")
        data = event.get("data") or {}
        distilled = distill(tool, data, self.summarizers)
        delta = data.get("delta") if isinstance(data, Mapping) else None
        return ToolResultEvent(
            call_id="",
            tool=tool,
            outcome=distilled.outcome,
            raw=data,
            turn=self.packet.turn,
            delta=delta if delta is not None else distilled.delta,
        )

    def _hub_update(self, facts: Mapping[str, Any]) -> HubUpdateEvent:
        delta = PacketDelta(hub=HubDelta(set=dict(facts)))
        return HubUpdateEvent(turn=self.packet.turn, ts=timestamp(self._clock()), delta=delta, nodes=tuple(facts))
