"""Both tracks in memory, and a scripted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from remora.context.contracts import ToolLike
from remora.context.render import Calling, Style
from remora.context.summarizers import Summarizer
from remora.errors import DecisionError
from remora.events import Call, Event, decode
from remora.inference import EstimatedCounter
from remora.ports import Decision, Prompt
from remora.trace import MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

Step = Decision | str | tuple[str, Mapping[str, Any]]
"""A decision, a text without a call, or a tool's name with its arguments."""


class TickingClock:
    """A clock that advances one millisecond per call, so that the same test writes the same bytes."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._time = start

    def now(self) -> datetime:
        self._time += timedelta(milliseconds=1)
        return self._time

    def monotonic(self) -> float:
        return self.now().timestamp()


class MemoryTwoTrack(TwoTrack):
    """`remora.TwoTrack` without a disk, with the same ids and times in every test."""

    def __init__(
        self,
        goal: str = "Test",
        *,
        tools: Sequence[ToolLike] = (),
        budget: int = 1000,
        system_prompt: str = "",
        identity: Identity | None = None,
        summarizers: Mapping[str, Summarizer] | None = None,
        calling: Calling = "native",
        style: Style = "account",
    ) -> None:
        clock = TickingClock()
        self._trace = MemoryTrace(clock)
        self.blobs = MemoryBlobs()
        """Large results."""
        wiring = Wiring(
            identity=identity or Identity("01TESTAGENT"),
            goal=goal,
            tools=tools,
            system_prompt=system_prompt,
            prompts=PromptSettings(budget, style=style, calling=calling, limit_name="budget"),
            writer=self._trace,
            blobs=self.blobs,
            counter=EstimatedCounter(),
            clock=clock,
        )
        self._wire(wiring if summarizers is None else replace(wiring, summarizers=summarizers))

    @property
    def events(self) -> list[Event]:
        """Everything recorded so far, decoded from its bytes."""
        return [decode(line) for line in self._trace.lines(self.identity.stream_id)] if self.last_seq >= 0 else []


class ScriptedModel:
    """A policy that answers from a script and records every prompt."""

    name = "scripted"

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.prompts: list[Prompt] = []

    async def decide(self, prompt: Prompt) -> Decision:
        """The next step. Raises `DecisionError` if there are no more."""
        self.prompts.append(prompt)
        if not self._steps:
            raise DecisionError(f"The script has {len(self.prompts) - 1} steps, and another decision was asked for")
        step = self._steps.pop(0)
        if isinstance(step, Decision):
            return step
        if isinstance(step, str):
            return Decision((), text=step, finish="stop")
        tool, args = step
        return Decision((Call(call_id=f"call-{prompt.turn}", tool=tool, args=dict(args)),), finish="tool_calls")
