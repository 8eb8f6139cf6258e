"""Answers `recall` from the run's own stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from remora.context.recall import Recall, Remembered
from remora.events import Event, ModelResponseEvent, ToolResultEvent, UserInputEvent, is_check
from remora.twotrack._tool_results import ToolResultBuilder

SEARCHED_EVENTS = 2_000
"""The newest events that a search for words reads."""
SEARCHED_BYTES = 1024 * 1024
"""Most bytes of a result that a search for words reads. A larger one can be looked up by its seq."""


class ReadAfter(Protocol):
    """Reads the run's events after a seq, oldest first."""

    def __call__(self, *, after: int) -> AsyncIterator[Event]: ...


async def recall_from(
    read: ReadAfter, last: int, results: ToolResultBuilder, text: str, seq: int | None, lines: str
) -> dict[str, Any]:
    """Look up event `seq`, or search the newest results up to event `last` for `text`. Returns a bounded result."""
    query = Recall(text, seq, lines)
    first = max(0, last - SEARCHED_EVENTS + 1) if seq is None else max(0, seq)
    query.skipped_before = first if seq is None else 0
    async for event in read(after=first - 1):
        if seq is not None and event.seq > seq:
            break
        if is_check(event) or not query.wants(event.seq):
            continue
        if isinstance(event, ToolResultEvent):
            if seq is None and event.raw_ref is not None and event.raw_ref.size > SEARCHED_BYTES:
                query.skipped_large += 1
                continue
            query.take(Remembered(event.seq, event.turn, event.tool, await results.text(event)))
        elif isinstance(event, UserInputEvent | ModelResponseEvent) and seq is not None:
            query.take(Remembered(event.seq, event.turn, event.type, event.text))
    return query.result()
