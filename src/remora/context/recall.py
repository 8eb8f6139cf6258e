"""Recall: looking up in the run's own Long Track what the packet no longer shows, bounded and deterministic."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Any

from remora.context.contracts import ToolSpec, make_error_result, make_success_result
from remora.context.text import one_line

MAX_LINES = 5
"""Lines that a search for words gives."""
LINE_CHARS = 120
MAX_EXCERPT_LINES = 80
MAX_EXCERPT_CHARS = 4_000

RECALL = ToolSpec(
    name="recall",
    description="Bring back what was left out: event `seq`, maybe only its `lines` 10-40, or all lines with a `text`.",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string"}, "seq": {"type": "integer"}, "lines": {"type": "string"}},
    },
    effects="none",
)
"""Offered where something was left out, and to agents whose definition says `recall: true`."""

_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:[-–:]\s*(\d{1,9}))?\s*")


@dataclass(frozen=True)
class Remembered:
    """An earlier event of the run, as text."""

    seq: int
    turn: int
    tool: str
    text: str


class Recall:
    """One question to the past. Events are looked at one by one; only what is given back is kept."""

    def __init__(self, text: str = "", seq: int | None = None, lines: str = "") -> None:
        self._text = one_line(text)
        self._seq = seq
        self._lines = lines
        self._found: deque[dict[str, Any]] = deque(maxlen=MAX_LINES)
        self._count = 0
        self._event: Remembered | None = None

    def wants(self, seq: int) -> bool:
        """Whether an event has to be looked at."""
        return self._seq is None or self._seq == seq

    def take(self, item: Remembered) -> None:
        """Look at one event, oldest first."""
        if self._seq is not None:
            self._event = item if item.seq == self._seq else self._event
            return
        wanted = self._text.casefold()
        for number, line in enumerate(item.text.splitlines(), start=1):
            if wanted and wanted in line.casefold():
                self._count += 1
                found = {"turn": item.turn, "seq": item.seq, "tool": item.tool, "line": number}
                self._found.append(found | {"text": one_line(line, LINE_CHARS)})

    def result(self) -> dict[str, Any]:
        """What was found, as a tool result."""
        if self._seq is not None:
            return self._excerpt(self._seq)
        if not self._text:
            return make_error_result("recall needs a `text` to look for, or the `seq` of an event")
        shown, newest = one_line(self._text, 40), list(self._found)
        found = f"{self._count} lines of earlier results contain {shown!r}"
        lines = [f"turn {item['turn']} {item['tool']}:{item['line']} {item['text']}" for item in newest]
        summary = found if lines else f"Nothing contains {shown!r}"
        return make_success_result(newest, summary, {f"recall: {shown}": lines} if lines else {})

    def _excerpt(self, seq: int) -> dict[str, Any]:
        if self._event is None:
            return make_error_result(f"There is no event #{seq} with an output or words in this run")
        lines = self._event.text.splitlines() or [""]
        first, last = _range(self._lines, len(lines))
        wanted = [line for line in lines[first - 1 : last] if self._text.casefold() in line.casefold()]
        text = "\n".join(wanted[:MAX_EXCERPT_LINES])[:MAX_EXCERPT_CHARS]
        shown = text.count("\n") + 1
        summary = f"{shown} of {len(lines)} lines of #{seq} {self._event.tool}, from line {first}"
        excerpt = {"label": f"#{seq} {self._event.tool}", "text": text, "start_line": first}
        return make_success_result({"seq": seq, "first": first, "lines": shown}, summary) | {"excerpts": [excerpt]}


def _range(text: str, count: int) -> tuple[int, int]:
    found = _RANGE.fullmatch(text)
    if not found:
        return 1, count
    first = min(max(1, int(found[1])), count)
    return first, max(first, int(found[2])) if found[2] else count
