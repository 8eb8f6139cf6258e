"""Selects the part of the Long Track that a larger model reads."""

from __future__ import annotations

from collections.abc import AsyncIterator

from remora.context.evidence import Evidence
from remora.context.handover import LongTrack
from remora.events import Event, ToolResultEvent
from remora.twotrack._tool_results import ToolResultBuilder


class Handover:
    """The evidence of a run. It reads the stream once, then each new event, so that it always covers the whole run."""

    def __init__(self, goal: str, results: ToolResultBuilder) -> None:
        self._long_track = LongTrack(goal)
        self._results = results

    @property
    def evidence(self) -> Evidence:
        """What the run's results say, bounded in bytes."""
        return self._long_track.evidence

    async def read(self, events: AsyncIterator[Event]) -> None:
        """Take every event of the stream."""
        async for event in events:
            await self.take(event)

    async def take(self, event: Event) -> None:
        """Take one event, with the raw result that it may keep in a blob."""
        value = await self._results.value(event) if isinstance(event, ToolResultEvent) else None
        self._long_track.take(event, value)
