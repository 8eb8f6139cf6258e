"""The Long Track as evidence, for a reader with a larger window: raw results instead of summaries, bounded in bytes."""

from __future__ import annotations

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


class LongTrack:
    """Evidence of a whole run, folded event by event. The agent's check stays hidden."""

    def __init__(self, goal: str) -> None:
        self.evidence = Evidence()
        self._goal = words_of(goal)
        self._args: dict[str, dict[str, Any]] = {}

    def take(self, event: Event, value: Any = None) -> None:
        """Add what the event says. `value` is the raw result of a tool."""
        match event:
            case ToolCallEvent(call_id=call_id, args=args) if not is_check(event):
                self._args[call_id] = args
            case ToolResultEvent(call_id=call_id) if not is_check(event):
                args = self._args.pop(call_id, {})
                entry = called(event.seq, event.tool, args, self._reading(event, value, args))
                self.evidence = remember(self.evidence, entry, self._goal)
            case UserInputEvent(text=text) if text.strip():
                self.evidence = remember(self.evidence, person_said(event.seq, text), self._goal)
            case ModelResponseEvent(text=text, calls=()) if text.strip():
                self.evidence = remember(self.evidence, agent_said(event.seq, text), self._goal)

    def _reading(self, event: ToolResultEvent, value: Any, args: dict[str, Any]) -> Reading:
        """The raw result as lines, or its summary if it has nothing else."""
        reading = read_output(raw_result_of(value), self._goal, args)
        summary = event.delta.action.summary if isinstance(event.delta, PacketDelta) and event.delta.action else ""
        if reading.lines or not summary:
            return reading
        return Reading("text", (summary,), event.outcome == "error")
