"""Recall: a bounded, deterministic search in the run's own Long Track."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Any

from remora.context.contracts import ToolSpec, make_error_result, make_success_result
from remora.context.text import one_line

MAX_LINES = 5
"""Most lines that a search returns."""
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
"""Offered when a prompt left something out, and to agents with `recall: true`."""

_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:[-–:]\s*(\d{1,9}))?\s*")


@dataclass(frozen=True)
class Remembered:
    """An earlier event of the run, as text."""

    seq: int
    turn: int
    tool: str
    text: str


class Recall:
    """One query. It reads events one by one and keeps only what it returns."""

    def __init__(self, text: str = "", seq: int | None = None, lines: str = "") -> None:
        self._text = one_line(text)
        self._seq = seq
        self._lines = lines
        self._matches: deque[dict[str, Any]] = deque(maxlen=MAX_LINES)
        self._count = 0
        self._event: Remembered | None = None
        self.skipped_before = 0
        """Events before this one were not searched."""
        self.skipped_large = 0
        """Results that were not searched because they are too large."""

    def wants(self, seq: int) -> bool:
        """Whether the query needs this event."""
        return self._seq is None or self._seq == seq

    def take(self, item: Remembered) -> None:
        """Read one event. Events must come oldest first."""
        if self._seq is not None:
            self._event = item if item.seq == self._seq else self._event
            return
        wanted = self._text.casefold()
        for number, line in enumerate(item.text.splitlines(), start=1):
            if wanted and wanted in line.casefold():
                self._count += 1
                match = {"turn": item.turn, "seq": item.seq, "tool": item.tool, "line": number}
                self._matches.append(match | {"text": one_line(line, LINE_CHARS)})

    def result(self) -> dict[str, Any]:
        """The matches as a tool result."""
        if self._seq is not None:
            return self._excerpt(self._seq)
        if not self._text:
            return make_error_result("recall needs a `text` to look for, or the `seq` of an event")
        shown, newest = one_line(self._text, 40), list(self._matches)
        header = f"{self._count} lines of earlier results contain {shown!r}"
        lines = [f"turn {item['turn']} {item['tool']}:{item['line']} {item['text']}" for item in newest]
        summary = (header if lines else f"Nothing contains {shown!r}") + self._not_searched()
        return make_success_result(newest, summary, {f"recall: {shown}": lines} if lines else {})

    def _not_searched(self) -> str:
        """What the search left out, so that nobody takes it for absent."""
        parts = [f"events before #{self.skipped_before}"] if self.skipped_before else []
        parts += [f"{self.skipped_large} very large results"] if self.skipped_large else []
        return f"; not searched: {', '.join(parts)}" if parts else ""

    def _excerpt(self, seq: int) -> dict[str, Any]:
        if self._event is None:
            return make_error_result(f"There is no event #{seq} with an output or words in this run")
        lines = self._event.text.splitlines() or [""]
        first, last = _line_range(self._lines, len(lines))
        wanted = [line for line in lines[first - 1 : last] if self._text.casefold() in line.casefold()]
        text = "\n".join(wanted[:MAX_EXCERPT_LINES])[:MAX_EXCERPT_CHARS]
        shown = text.count("\n") + 1
        summary = f"{shown} of {len(lines)} lines of #{seq} {self._event.tool}, from line {first}"
        excerpt = {"label": f"#{seq} {self._event.tool}", "text": text, "start_line": first}
        return make_success_result({"seq": seq, "first": first, "lines": shown}, summary) | {"excerpts": [excerpt]}


def _line_range(text: str, count: int) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    if not match:
        return 1, count
    first = min(max(1, int(match[1])), count)
    return first, max(first, int(match[2])) if match[2] else count
