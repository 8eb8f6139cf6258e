"""Summarizer for Python tracebacks."""

from __future__ import annotations

import re
from typing import Any

from remora.context._summaries._base import EXCERPT_LINES, excerpt, lines_of, text_of
from remora.context.summary import Summarized
from remora.context.text import one_line

_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s{1,20}File "([^"\n]{1,400})", line (\d{1,9})(?:, in (.{1,200}))?')


def read_traceback(raw: Any) -> Summarized | None:
    """The last traceback in a text: the exception and its location."""
    text = text_of(raw)
    if text is None or _BEGIN not in text:
        return None
    lines = lines_of(text)
    begin = max((index for index, line in enumerate(lines) if line.strip() == _BEGIN), default=None)
    if begin is None:
        return None
    indent = len(lines[begin]) - len(lines[begin].lstrip())
    end = next((i for i in range(begin + 1, len(lines)) if _is_end(lines[i], indent)), None)
    if end is None:
        return None
    frames = [match for line in lines[begin:end] if (match := _FRAME.match(line))]
    raised = one_line(lines[end], 140)
    place = f"{frames[-1][1]}:{frames[-1][2]}" if frames else ""
    knowledge = {"exception": raised.partition(":")[0]} | ({"exception_at": place} if place else {})
    start = max(begin, end + 1 - EXCERPT_LINES)
    shown = excerpt("traceback", lines[start : end + 1], start + 1)
    return Summarized(f"{raised}, at {place}" if place else raised, knowledge, shown)


def _is_end(line: str, indent: int) -> bool:
    """Whether this line names the exception: the first one not indented deeper than the traceback's header."""
    return bool(line.strip()) and len(line) - len(line.lstrip()) <= indent
