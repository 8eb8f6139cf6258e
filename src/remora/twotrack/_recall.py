"""Answers `recall` from the run's own stream, and from the streams that it continues."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from remora.context.recall import RECALL, Recall, Remembered
from remora.errors import TraceError
from remora.events import (
    Event,
    ModelResponseEvent,
    PacketDelta,
    PacketUpdateEvent,
    ToolResultEvent,
    UserInputEvent,
    is_check,
)

MAX_GENERATIONS = 16
"""How many streams back a taken-over entry is followed to its raw result."""
SEARCHED_EVENTS = 2_000
"""The newest events that a search for words reads."""
SEARCHED_BYTES = 1024 * 1024
"""Most bytes of a result that a search for words reads. A larger one can be looked up by its seq."""


class ReadStream(Protocol):
    """Reads the events of an agent's stream after a seq, oldest first."""

    def __call__(self, agent_id: str, /, *, after: int) -> AsyncIterator[Event]: ...


class ReadResult(Protocol):
    """Reads the raw results of events."""

    async def text(self, event: ToolResultEvent, /) -> str:
        """The raw result of an event, as text."""
        ...


async def recall_from(
    agent_id: str, read: ReadStream, last: int, results: ReadResult, text: str, seq: int | str | None, lines: str
) -> dict[str, Any]:
    """Look up event `seq`, or search the newest results up to event `last` for `text`. Returns a bounded result."""
    query = Recall(text, seq, lines)
    seq = query.seq
    first = max(0, last - SEARCHED_EVENTS + 1) if seq is None else max(0, seq)
    query.skipped_before = first if seq is None else 0
    async for event in read(agent_id, after=first - 1):
        if seq is not None and event.seq > seq:
            break
        if is_check(event) or not query.wants(event.seq):
            continue
        if isinstance(event, ToolResultEvent):
            if seq is None and event.tool == RECALL.name:
                continue  # it repeats what the search finds in its place
            if seq is None and event.raw_ref is not None and event.raw_ref.size > SEARCHED_BYTES:
                query.skipped_large += 1
                continue
            query.take(Remembered(event.seq, event.turn, event.tool, await results.text(event), _is_value(event)))
        elif isinstance(event, UserInputEvent | ModelResponseEvent) and seq is not None:
            query.take(Remembered(event.seq, event.turn, event.type, event.text))
        elif isinstance(event, PacketUpdateEvent) and event.origin:
            query.take(await _taken_over(event, read if seq is not None else None, results))
    return query.result()


async def _taken_over(event: PacketUpdateEvent, read: ReadStream | None, results: ReadResult) -> Remembered:
    """What an event took over from a parent: with `read`, the raw result behind it, else the lines that it holds."""
    found: Event | None = event
    for _ in range(MAX_GENERATIONS if read else 0):
        if not isinstance(found, PacketUpdateEvent):
            break
        found = await _find(read, found.origin) if read else None
    if isinstance(found, ToolResultEvent):
        return Remembered(event.seq, event.turn, found.tool, await results.text(found), _is_value(found))
    if isinstance(found, UserInputEvent | ModelResponseEvent):
        return Remembered(event.seq, event.turn, found.type, found.text)
    evidence = event.delta.evidence if isinstance(event.delta, PacketDelta) else None
    held = "\n".join((evidence.text, *evidence.given, *evidence.lines)).strip() if evidence else ""
    return Remembered(event.seq, event.turn, event.source, held)


def _is_value(event: ToolResultEvent) -> bool:
    """Whether the tool returned an object or a list, and not text."""
    if event.raw_ref is not None:
        return event.raw_ref.encoding in ("json", "exact-json")
    return isinstance(event.raw, dict | list)


async def _find(read: ReadStream, origin: dict[str, Any]) -> Event | None:
    """The event that `origin` names; None if it is gone or cannot be read."""
    agent_id, seq = origin.get("agent_id"), origin.get("seq")
    if not isinstance(agent_id, str) or not isinstance(seq, int):
        return None
    try:
        async for event in read(agent_id, after=seq - 1):
            if event.seq == seq:
                return event
    except TraceError:
        return None
    return None
