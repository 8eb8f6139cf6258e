"""Recall: a bounded, deterministic search in the run's own Long Track."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Any

from remora.context.contracts import ToolSpec, make_error_result, make_success_result
from remora.context.evidence import whole_lines
from remora.context.text import number, one_line

MAX_LINES = 5
"""Most lines that a search returns."""
LINE_CHARS = 120
WIDE_LINE_CHARS = 200
"""Most characters of a line that a search returns if the text stands beyond its beginning."""
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

_RANGE = re.compile(r"\D{0,8}(\d{1,9})\s*(?:([-–:,]|\.\.|to)\s*(\d{1,9})?)?\W*")
_SEQ = re.compile(r"\s*#?(\d{1,9})\s*")


@dataclass(frozen=True)
class Remembered:
    """An earlier event of the run, as text."""

    seq: int
    turn: int
    tool: str
    text: str
    is_value: bool = False
    """Whether the text is the JSON of a value, and not what a tool wrote."""

    @property
    def may_be_json(self) -> bool:
        """Whether its lines may hold what its text writes in another way, such as `id: 7` for `"id":7`."""
        return self.is_value or self.text.lstrip()[:1] in ("{", "[")

    @property
    def lines(self) -> list[str]:
        """Its lines. Long ones are divided, and JSON in one line is read as what it holds."""
        return whole_lines(self.text, is_value=self.is_value) or [""]


class Recall:
    """One query. It reads events one by one and keeps only what it returns."""

    def __init__(self, text: str = "", seq: int | str | None = None, lines: Any = "") -> None:
        self._text = one_line(text)
        self.seq, self._problem = _event_number(seq)
        self._lines = "-".join(map(str, lines)) if isinstance(lines, list | tuple) else str(lines or "").strip()
        if self._lines and not _RANGE.fullmatch(self._lines):
            self._problem = f"`lines` is {one_line(self._lines, 40)!r}: expected a range such as `10-40`"
        self._matches: deque[dict[str, Any]] = deque(maxlen=MAX_LINES)
        self._count = 0
        self._event: Remembered | None = None
        self.skipped_before = 0
        """Events before this one were not searched."""
        self.skipped_large = 0
        """Results that were not searched because they are too large."""

    def wants(self, seq: int) -> bool:
        """Whether the query needs this event."""
        return self.seq is None or self.seq == seq

    def take(self, item: Remembered) -> None:
        """Read one event. Events must come oldest first."""
        if self.seq is not None:
            self._event = item if item.seq == self.seq else self._event
            return
        wanted = self._text.casefold()
        if not wanted or not (item.may_be_json or wanted in item.text.casefold()):
            return
        for at, line in enumerate(item.lines, start=1):
            if wanted in line.casefold():
                self._count += 1
                match = {"turn": item.turn, "seq": item.seq, "tool": item.tool, "line": at}
                self._matches.append(match | {"text": _around(line, wanted)})

    def result(self) -> dict[str, Any]:
        """The matches as a tool result."""
        if self._problem:
            return make_error_result(self._problem)
        if self.seq is not None:
            return self._excerpt(self.seq)
        if not self._text:
            return make_error_result("recall needs a `text` to look for, or the `seq` of an event")
        shown, newest = one_line(self._text, 40), list(self._matches)
        verb = "contains" if self._count == 1 else "contain"
        header = f"{number(self._count, 'line')} of earlier results {verb} {shown!r}"
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
        lines = self._event.lines
        first, last = _line_range(self._lines, len(lines))
        numbered = list(enumerate(lines[first - 1 : last], first))
        if wanted := self._text.casefold():
            numbered = [(at, line) for at, line in numbered if wanted in line.casefold()]
            if not numbered:
                return make_success_result([], f"No line of #{seq} contains {one_line(self._text, 40)!r}")
            first = numbered[0][0]
        shown = _fitting([f"{at}: {line}" if wanted else line for at, line in numbered])
        summary = f"{len(shown)} of {number(len(lines), 'line')} of #{seq} {self._event.tool}, from line {first}"
        excerpt = {"label": f"#{seq} {self._event.tool}", "text": "\n".join(shown), "start_line": first}
        return make_success_result({"seq": seq, "first": first, "lines": len(shown)}, summary) | {"excerpts": [excerpt]}


def _event_number(seq: int | str | None) -> tuple[int | None, str]:
    """The number of an event, also from a text such as `#12`; else what is wrong."""
    if seq is None or isinstance(seq, int):
        return seq, ""
    if match := _SEQ.fullmatch(str(seq)):
        return int(match[1]), ""
    return None, f"`seq` is {one_line(str(seq), 40)!r}: expected the number of an event"


def _around(line: str, wanted: str) -> str:
    """The beginning of a line; if the text stands further on, the part around it."""
    at = line.casefold().find(wanted)
    if at + len(wanted) < LINE_CHARS:
        return one_line(line, LINE_CHARS)
    if len(line) <= WIDE_LINE_CHARS:
        return one_line(line, WIDE_LINE_CHARS)
    start = max(0, at - WIDE_LINE_CHARS // 2)
    return one_line(f"…{line[start:]}", WIDE_LINE_CHARS)


def _fitting(lines: list[str]) -> list[str]:
    """The first lines that an excerpt may have; at least one."""
    size, shown = 0, list[str]()
    for line in lines[:MAX_EXCERPT_LINES]:
        size += len(line) + 1
        if size > MAX_EXCERPT_CHARS and shown:
            break
        shown.append(line)
    return shown


def _line_range(text: str, count: int) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    if not match:
        return 1, count
    first = min(max(1, int(match[1])), count)
    return first, max(first, int(match[3])) if match[3] else count
