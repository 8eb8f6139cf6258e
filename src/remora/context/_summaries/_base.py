"""Shared by the built-in summarizers: the text of a result, bounded excerpts, and counts in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from remora.context.summary import Summarized, Summarizer
from remora.context.text import one_line, visible

MAX_TEXT = 500_000
"""Most characters that are read of a result. Of a longer one, the beginning and the end are read."""
MAX_JSON = 8_000_000
EXCERPT_LINES = 30
EXCERPT_COLUMNS = 200

_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,30}[@-~]")

Read = Callable[[Any], Summarized | None]
"""Summarizes a result. Returns None if the result does not have the expected shape."""


class BuiltIn(Summarizer):
    """A built-in summarizer: a reader for one shape, and `otherwise` for results of any other shape."""

    def __init__(self, name: str, read: Read, otherwise: Callable[[Any], Summarized]) -> None:
        self.name = name
        self._read = read
        self._otherwise = otherwise

    def read(self, raw_result: Any) -> Summarized:
        """Summary, knowledge and excerpts in one pass."""
        summarized = self._read(raw_result) or self._otherwise(raw_result)
        line = one_line(summarized.summary) or "Nothing readable"
        # The line numbers of a cut text are unknown.
        return replace(summarized, summary=line, excerpts=() if is_cut(raw_result) else summarized.excerpts)

    def summarize(self, raw_result: Any) -> str:
        return self.read(raw_result).summary

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        return dict(self.read(raw_result).knowledge)

    def extract_excerpts(self, raw_result: Any) -> Sequence[Any]:
        return self.read(raw_result).excerpts


def text_of(raw: Any) -> str | None:
    """The text of a result without ANSI colours: a string, or a command's `stdout`, or `stderr` if that is empty."""
    text = _raw_text(raw)
    if text is None:
        return None
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT // 2] + "\n" + text[-MAX_TEXT // 2 :]
    return _COLOURS.sub("", text) if "\x1b" in text else text


def is_cut(raw: Any) -> bool:
    """Whether `text_of` cuts the text."""
    return len(_raw_text(raw) or "") > MAX_TEXT


def line_count(raw: Any) -> int:
    """The number of lines in the whole text of a result."""
    text = _raw_text(raw) or ""
    return text.count("\n") + (not text.endswith("\n"))


def whole_text_of(raw: Any) -> str | None:
    """The uncut text of a result; None if it is too long."""
    text = _raw_text(raw)
    return None if text is None or len(text) > MAX_JSON else text


def _raw_text(raw: Any) -> str | None:
    if isinstance(raw, Mapping) and isinstance(raw.get("stdout"), str):
        stdout, stderr = raw["stdout"], raw.get("stderr")
        return stderr if not stdout.strip() and isinstance(stderr, str) else stdout
    return raw if isinstance(raw, str) else None


def lines_of(text: str) -> list[str]:
    """The lines of a text, as editors number them."""
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return lines[:-1] if lines[-1] == "" else lines


def excerpt(label: str, lines: Sequence[str], start_line: int = 1) -> tuple[dict[str, Any], ...]:
    """An excerpt of the first `EXCERPT_LINES` lines; empty if they are blank."""
    shown = [visible(line[:EXCERPT_COLUMNS]) for line in lines[:EXCERPT_LINES]]
    if not any(line.strip() for line in shown):
        return ()
    return ({"label": visible(label[:80]), "text": "\n".join(shown), "start_line": start_line},)


def most(counts: Mapping[str, int], limit: int = 4) -> str:
    """The names with the highest counts, such as `E501 ×3, F401 ×1 and 2 more`."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rest = len(ordered) - limit
    return ", ".join(f"{name} ×{count}" for name, count in ordered[:limit]) + (f" and {rest} more" if rest > 0 else "")


def some(names: Sequence[str], limit: int = 5) -> str:
    """The first few names, and how many more there are."""
    rest = len(names) - limit
    return ", ".join(name[:60] for name in names[:limit]) + (f" and {rest} more" if rest > 0 else "")
