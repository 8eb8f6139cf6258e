"""Recall: looking up in the run's own Long Track what the packet no longer shows, bounded and always the same way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from remora.context.contracts import ToolSpec, make_error_result, make_success_result
from remora.context.text import one_line

MAX_LINES = 5
LINE_CHARS = 120

RECALL = ToolSpec(
    name="recall",
    description="Find lines of earlier tool results that contain a text.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    effects="none",
)
"""Offered to agents whose definition says `recall: true`."""


@dataclass(frozen=True)
class Remembered:
    """An earlier tool result, as text."""

    seq: int
    turn: int
    tool: str
    text: str


def recall(past: Iterable[Remembered], text: str) -> dict[str, Any]:
    """A tool result with the newest lines of the past that contain `text`, whatever the case of its letters."""
    wanted = one_line(text).casefold()
    if not wanted:
        return make_error_result("recall needs a text to look for")
    found = [
        {"turn": item.turn, "seq": item.seq, "tool": item.tool, "line": number, "text": one_line(line, LINE_CHARS)}
        for item in past
        for number, line in enumerate(item.text.splitlines(), start=1)
        if wanted in line.casefold()
    ]
    newest = found[-MAX_LINES:]
    shown = one_line(text, 40)
    summary = f"{len(found)} lines of earlier results contain {shown!r}" if found else f"Nothing contains {shown!r}"
    lines = [f"turn {item['turn']} {item['tool']}:{item['line']} {item['text']}" for item in newest]
    return make_success_result(newest, summary, {f"recall: {shown}": lines} if lines else {})
