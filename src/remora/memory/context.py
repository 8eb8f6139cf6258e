"""The plan's `ContextManager`, a wrapper around the real one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from remora.context import manager, middleware, models
from remora.memory.schemas import DecisionPacket, ToolResultEvent, write_back

Hook = Callable[[DecisionPacket], Any]


class ContextManager:
    """The packet of one agent, in memory. `remora.TwoTrack` also keeps the stream."""

    def __init__(self, initial_goal: str) -> None:
        self._manager = manager.ContextManager(
            {"agent_id": "", "goal": initial_goal, "operation": "", "node_id": ""},
        )

    @property
    def packet(self) -> DecisionPacket:
        """A copy of the current packet."""
        return DecisionPacket.of(self._manager.packet)

    def apply_event(self, event: ToolResultEvent) -> None:
        """Fold the event's delta."""
        self._manager.apply_event(event.as_event())

    def run_middleware(self, hooks: Iterable[Hook]) -> None:
        """Run the hooks on copies of the packet and fold their changes."""
        self._manager.run_middleware([_adapt_hook(hook) for hook in hooks])


def _adapt_hook(hook: Hook) -> middleware.Hook:
    def run(packet: models.DecisionPacket) -> None:
        changed = DecisionPacket.of(packet)
        shown = changed.model_dump()
        hook(changed)
        write_back(shown, changed, packet)

    return run
