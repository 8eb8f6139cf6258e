"""Answers `recall` from the run's own stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from remora.context.recall import Recall, Remembered
from remora.events import Event, ModelResponseEvent, ToolResultEvent, UserInputEvent, is_check
from remora.twotrack._tool_results import ToolResultBuilder


async def recall_from(
    events: AsyncIterator[Event], results: ToolResultBuilder, text: str, seq: int | None, lines: str
) -> dict[str, Any]:
    """Look up event `seq`, or search earlier results for `text`. Returns a bounded tool result."""
    query = Recall(text, seq, lines)
    async for event in events:
        if is_check(event) or not query.wants(event.seq):
            continue
        if isinstance(event, ToolResultEvent):
            query.take(Remembered(event.seq, event.turn, event.tool, await results.text(event)))
        elif isinstance(event, UserInputEvent | ModelResponseEvent) and seq is not None:
            query.take(Remembered(event.seq, event.turn, event.type, event.text))
    return query.result()
