"""What a larger model is handed of the Long Track: the run's results as evidence, bounded in bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from remora.context.evidence import Evidence, Reading, agent_said, called, person_said, read_output, remember, words_of
from remora.context.summarizers import raw_result_of
from remora.events import (
    Event,
    ModelResponseEvent,
    PacketDelta,
    ToolCallEvent,
    ToolResultEvent,
    UserInputEvent,
    is_check,
)
from remora.twotrack._tool_results import ToolResultBuilder


class Handover:
    """Evidence of a whole run, from its raw results instead of its summaries.

    It reads the stream once, then each new event, so that it always covers the whole run.
    """

    def __init__(self, goal: str, results: ToolResultBuilder) -> None:
        self.evidence = Evidence()
        self._goal = words_of(goal)
        self._results = results
        self._args: dict[str, dict[str, Any]] = {}

    async def read(self, events: AsyncIterator[Event]) -> None:
        """Take every event of the stream."""
        async for event in events:
            await self.take(event)

    async def take(self, event: Event) -> None:
        """Add what the event says. The agent's check stays hidden."""
        if is_check(event):
            return
        match event:
            case ToolCallEvent(call_id=call_id, args=args):
                self._args[call_id] = args
            case ToolResultEvent(call_id=call_id):
                args = self._args.pop(call_id, {})
                entry = called(event.seq, event.tool, args, await self._reading(event, args))
                self.evidence = remember(self.evidence, entry, self._goal)
            case UserInputEvent(text=text) if text.strip():
                self.evidence = remember(self.evidence, person_said(event.seq, text), self._goal)
            case ModelResponseEvent(text=text, calls=()) if text.strip():
                self.evidence = remember(self.evidence, agent_said(event.seq, text), self._goal)

    async def _reading(self, event: ToolResultEvent, args: dict[str, Any]) -> Reading:
        """The raw result as lines, or the result's summary if it has nothing else."""
        reading = read_output(raw_result_of(await self._results.value(event)), self._goal, args)
        summary = event.delta.action.summary if isinstance(event.delta, PacketDelta) and event.delta.action else ""
        if reading.lines or not summary:
            return reading
        return Reading("text", (summary,), event.outcome == "error")
