"""The plan's models: a packet of plain texts, a delta with three fields, and an event with a delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from remora import events
from remora.context import models
from remora.context.aliases import plan_delta

FRESHNESS = "hub_context_freshness"


class DecisionPacket(BaseModel):
    """A packet as the plan defines it.

    Changing it changes nothing else; use `run_middleware` to change the real packet.
    """

    goal: str
    recent_history: list[str] = Field(default_factory=list)
    """The last 10 actions, one line each."""
    knowledge: dict[str, str] = Field(default_factory=dict)
    last_error: str | None = None
    hub_context_freshness: dict[str, float] = Field(default_factory=dict)
    """For nodes with fresh Hub facts, when they were fetched."""

    @classmethod
    def of(cls, packet: models.DecisionPacket) -> DecisionPacket:
        """Convert a real packet."""
        noted = packet.extensions.get(FRESHNESS)
        return cls(
            goal=packet.goal,
            recent_history=packet.recent_history,
            knowledge={key: str(entry.value) for key, entry in packet.knowledge.items()},
            last_error=packet.last_error,
            hub_context_freshness=packet.hub_context_freshness | (noted if isinstance(noted, dict) else {}),
        )


class PacketDelta(BaseModel):
    """How an event changes the packet. None means no change."""

    add_history: str | None = None
    update_knowledge: dict[str, str] | None = None
    set_error: str | None = None


class MemoryEvent(BaseModel):
    """An entry of the Long Track with its delta."""

    type: str
    delta: PacketDelta = Field(default_factory=PacketDelta)

    def as_event(self) -> events.Event:
        """Convert to an event of format 1, for an emitter, a writer or the fold."""
        fields = self.model_dump(exclude={"delta"})
        return events.as_event({**fields, "delta": plan_delta(self.type, self.delta.model_dump())})


class ToolResultEvent(MemoryEvent):
    """A tool finished: its full result, and the change to the packet."""

    type: Literal["tool_result"] = "tool_result"
    tool_name: str
    raw_output: str | dict[str, Any]
    delta: PacketDelta

    def as_event(self) -> events.ToolResultEvent:
        """Convert to an event of format 1. It is an error if the delta sets one."""
        outcome: events.Outcome = "error" if self.delta.set_error else "success"
        return events.ToolResultEvent(
            call_id="",
            tool=self.tool_name,
            outcome=outcome,
            raw=self.raw_output,
            delta=plan_delta(self.tool_name, self.delta.model_dump(), outcome),
        )


def write_back(shown: Mapping[str, Any], changed: DecisionPacket, packet: models.DecisionPacket) -> None:
    """Apply the changes between `shown` and `changed` to the real packet."""
    for key, text in changed.knowledge.items():
        if shown["knowledge"].get(key) != text:
            packet.update_knowledge(key, text)
    for key in shown["knowledge"].keys() - changed.knowledge.keys():
        del packet.knowledge[key]
    if len(changed.recent_history) > len(shown["recent_history"]):
        packet.add_action("middleware", changed.recent_history[-1], "success")
    if changed.last_error != shown["last_error"]:
        packet.record_error(changed.last_error) if changed.last_error else packet.clear_error()
    if changed.hub_context_freshness != shown[FRESHNESS]:
        packet.extensions[FRESHNESS] = dict(changed.hub_context_freshness)
    packet.goal = changed.goal
