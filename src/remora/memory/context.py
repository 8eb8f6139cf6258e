"""The plan's `ContextManager`: a goal in, events applied, hooks run. The real one does the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from remora.context import manager, middleware, models
from remora.memory.schemas import DecisionPacket, ToolResultEvent, write_back

Hook = Callable[[DecisionPacket], Any]


class ContextManager:
    """Holds the packet of one agent, in memory. `remora.TwoTrack` also keeps the stream."""

    def __init__(self, initial_goal: str) -> None:
        self._manager = manager.ContextManager(
            {"agent_id": "", "goal": initial_goal, "operation": "", "node_id": ""},
        )

    @property
    def packet(self) -> DecisionPacket:
        """The packet as it is now: a copy."""
        return DecisionPacket.of(self._manager.packet)

    def apply_event(self, event: ToolResultEvent) -> None:
        """Fold the event's delta."""
        self._manager.apply_event(event.as_event())

    def run_middleware(self, hooks: Iterable[Hook]) -> None:
        """Fold what each hook changes in the packet that it is given."""
        self._manager.run_middleware([_on_the_real_packet(hook) for hook in hooks])


def _on_the_real_packet(hook: Hook) -> middleware.Hook:
    def run(packet: models.DecisionPacket) -> None:
        changed = DecisionPacket.of(packet)
        shown = changed.model_dump()
        hook(changed)
        write_back(shown, changed, packet)

    return run
