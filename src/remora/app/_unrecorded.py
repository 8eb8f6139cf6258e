"""Prompts of logs that were imported without packets: built when a command needs them, and never recorded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Container, Iterable
from pathlib import Path

from remora.app._deciding import PACKET_TOKENS
from remora.app._project import Project, counter_of
from remora.errors import ConfigError
from remora.events import AgentStartEvent, Change, Event, ModelRequestEvent
from remora.ports import BlobStore, TokenCounter
from remora.trace import MemoryTrace, Outline
from remora.twotrack import Identity, PromptSettings, Wiring, lacks_prompts, with_prompts

BEHIND, AHEAD, FARTHEST = 8, 24, 1024
"""Turns around the one that is looked at whose prompts are built with it; most, if turn after turn is read."""


class UnrecordedPrompts:
    """Adds the prompts that packets would have been to the events of imported logs. Other streams stay as they are."""

    def __init__(self, project: Project, counter: TokenCounter, budget: int | None = None) -> None:
        self._project, self._counter, self._budget = project, counter, budget

    def of(
        self, events: Iterable[Event], blobs: BlobStore | None = None, wanted: Container[int] | None = None
    ) -> AsyncGenerator[Event]:
        """The events with their prompts: all of them, or those of the turns that are `wanted`."""
        tokens = self._budget or self._project.config.runner.memory.packet_size_limit or PACKET_TOKENS
        wiring = Wiring(
            identity=Identity("", operation="import"),
            goal="",
            prompts=PromptSettings(0, style="account", calling="native", are_sent=False),
            writer=MemoryTrace(self._project.clock),
            blobs=blobs or self._project.blobs,
            counter=self._counter,
            clock=self._project.clock,
        )
        return with_prompts(self._checked(events), wiring, tokens, wanted)

    async def evidence(self, fragment: str) -> Iterable[Event | Change]:
        """What changed the packet of a stream, with the evidence that its prompts would have shown."""
        first = next(iter(self._project.library.events(fragment)), None)
        if not isinstance(first, AgentStartEvent) or not lacks_prompts(first):
            return self._project.library.changes(fragment)
        return [event async for event in self.of(self._project.library.events(fragment), wanted=())]

    def _checked(self, events: Iterable[Event]) -> Iterable[Event]:
        for event in events:
            if self._budget and isinstance(event, AgentStartEvent) and not lacks_prompts(event):
                raise ConfigError(
                    "The prompts of this stream are recorded, with their own budget",
                    hint=f"Use `remora trace what-if {event.agent_id[-7:]} --budget {self._budget}`",
                )
            yield event


class BuiltPrompts:
    """The prompts around the turn that a viewer looks at, of the log that it looked at last."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._path = Path()
        self._places: range = range(0)
        self._found: dict[int, ModelRequestEvent] = {}
        """By the place of their turn, with the `seq` of the turn's first event."""
        self._lock = threading.Lock()

    def of(self, outline: Outline, index: int, first: Event | None, last: int = 0) -> ModelRequestEvent | None:
        """The prompt of a turn; None if the stream records its own, or the turn has none. Those up to `last` follow."""
        if not isinstance(first, AgentStartEvent) or not lacks_prompts(first):
            return None
        with self._lock:
            if outline.path != self._path or index not in self._places:
                goes_on = outline.path == self._path and index == self._places.stop
                ahead = min(4 * len(self._places), FARTHEST) if goes_on else AHEAD
                places = range(max(index - BEHIND, 0), min(max(index + ahead, last), len(outline)))
                self._found = asyncio.run(self._build(outline, places))
                self._path, self._places = outline.path, places
            return self._found.get(index)

    async def _build(self, outline: Outline, places: range) -> dict[int, ModelRequestEvent]:
        turns = {outline[place].turn: place for place in places}
        prompts = UnrecordedPrompts(self._project, counter_of(None))
        events = self._project.library.events(outline.path.stem)
        found: dict[int, ModelRequestEvent] = {}
        async for event in prompts.of(events, wanted=turns):
            if isinstance(event, ModelRequestEvent):
                place = turns[event.turn]
                found[place] = event.model_copy(update={"seq": outline[place].seq})
                if place == places[-1]:
                    break
        return found
