"""`ContextManager` holds one agent's packet. It records every change before folding it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from remora.context.aliases import is_plan_delta, plan_delta
from remora.context.middleware import Hook, difference, hook_name
from remora.context.models import MAX_RECENT_ACTIONS, DecisionPacket
from remora.context.projection import apply, changes_packet, counts_turns, project
from remora.context.pulling import HUB_PATIENCE_S as HUB_PATIENCE_S
from remora.context.pulling import Pulling
from remora.context.summarizers import Summarizer, distill, summarize_here
from remora.errors import TraceError
from remora.events import (
    Event,
    HubDelta,
    HubUpdateEvent,
    PacketDelta,
    PacketUpdateEvent,
    ToolResultEvent,
    TurnStartEvent,
    timestamp,
)

_ENVELOPE = frozenset({*Event.ENVELOPE, "event", "tool", "tool_name", "call_id", "args", "timestamp"})

Record = Callable[[Sequence[Event]], Awaitable[Sequence[Event]]]
"""Writes events with one append and returns them as recorded."""


class ContextManager:
    """The packet of one agent. With `record`, the stream has every change before the packet does."""

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
        self.only_turns = False
        """Whether the packet only counts turns, for a recording whose packet nobody reads."""
        self._pulling: Pulling | None = None
        self._one_at_a_time = asyncio.Lock()

    async def record(self, *drafts: Event) -> Sequence[Event]:
        """Write the events to the stream, then fold them. Every change of a recorded packet goes through here."""
        async with self._one_at_a_time:  # calls may run in parallel, and the fold follows the stream's order
            events = await self._record(drafts) if self._record and drafts else drafts
            changes = counts_turns if self.only_turns else changes_packet
            if relevant := [event for event in events if changes(event)]:
                self.packet = project(relevant, start=self.packet)
            return events

    def apply_event(self, event: Mapping[str, Any] | Event) -> None:
        """Fold an event, typed or a dict, without recording it.

        A dict of type `tool_result` may lack a delta, may have its fields under `data` or beside `type`, and may use
        the names in `remora.context.aliases`. Dicts of unknown types change nothing.
        """
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
        """Start the next turn. Raises `TraceError` if turns are recorded: use `await next_turn()` then."""
        self._require_unrecorded("next_turn()")
        self.packet = apply(self.packet, TurnStartEvent(turn=self.packet.turn + 1))

    async def next_turn(self) -> None:
        """Record and start the next turn."""
        await self.record(TurnStartEvent(turn=self.packet.turn + 1))

    def set_hub_client(self, client: Any) -> None:
        """Use this Hub from now on; None for no Hub."""
        self._pulling = None if client is None else Pulling(client)

    async def hub_events(self, turn: int) -> list[Event]:
        """Ask the Hub and return the events to record before a turn's prompt; empty if nothing changed."""
        if self._pulling is None:
            return []
        return await self._pulling.drafts(self.packet, turn, timestamp(self._clock()))

    async def pull_hub_context(self) -> None:
        """Fetch fresh facts about the nodes in play into the packet. Failures of the Hub never raise."""
        await self.record(*await self.hub_events(self.packet.turn))

    def run_middleware(self, hooks: Iterable[Hook]) -> None:
        """Fold the changes of each hook to its copy of the packet. Raises `TraceError` if changes are recorded."""
        self._require_unrecorded("middleware(hooks)")
        for hook in hooks:
            changed = self.packet.model_copy(deep=True)
            hook(changed)
            for event in self._packet_update(hook, self.packet, changed):
                self.packet = apply(self.packet, event)

    async def middleware(self, hooks: Iterable[Hook]) -> None:
        """Record, then fold, the changes of each hook, async or not: one `packet_update` for each hook with changes.

        If a hook raises, its changes are discarded.
        """
        for hook in hooks:
            before = self.packet
            changed = before.model_copy(deep=True)
            result = hook(changed)
            if inspect.isawaitable(result):
                await result
            await self.record(*self._packet_update(hook, before, changed))

    def register_summarizer(self, tool_name: str, summarizer: Summarizer) -> None:
        """Use `summarizer` for results of `tool_name` that have no summary."""
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
        data = event["data"] if "data" in event else {key: event[key] for key in event if key not in _ENVELOPE}
        data = {} if data is None else data
        distilled = distill(tool, data, summarize_here(tool, data, self.summarizers))
        delta = data.get("delta") if isinstance(data, Mapping) else None
        if is_plan_delta(delta):
            delta = plan_delta(tool, delta)
        return ToolResultEvent(
            call_id=str(event.get("call_id", "")),
            tool=tool,
            outcome=distilled.outcome,
            raw=data,
            turn=self.packet.turn,
            delta=delta if delta is not None else distilled.delta,
        )

    def _hub_update(self, facts: Mapping[str, Any]) -> HubUpdateEvent:
        """An update that replaces all Hub facts and removes nodes without new facts."""
        gone = tuple(node for node in self.packet.hub_context or {} if node not in facts)
        delta = PacketDelta(hub=HubDelta(set=dict(facts), remove=gone))
        return HubUpdateEvent(turn=self.packet.turn, ts=timestamp(self._clock()), delta=delta, nodes=tuple(facts))

    def _packet_update(self, hook: Hook, before: DecisionPacket, changed: DecisionPacket) -> Iterable[Event]:
        delta = difference(before, changed)
        if delta is not None:
            ts = timestamp(self._clock())
            yield PacketUpdateEvent(source=hook_name(hook), turn=self.packet.turn, ts=ts, delta=delta)

    def _require_unrecorded(self, instead: str) -> None:
        if self._record is not None:
            raise TraceError(
                "Nothing may change this packet without being recorded", hint=f"Use `await manager.{instead}`"
            )
