"""What the built-in summarizers share: the text of a result, bounded excerpts, and words for numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from remora.context.summary import Summarized, Summarizer
from remora.context.text import one_line, visible

MAX_TEXT = 500_000
"""Characters that are read of a result; of a longer one its beginning and its end."""
MAX_JSON = 8_000_000
EXCERPT_LINES = 30
EXCERPT_COLUMNS = 200

_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,30}[@-~]")

Read = Callable[[Any], Summarized | None]
"""What a result comes to, or None if it does not have the shape that the reader knows."""


class BuiltIn(Summarizer):
    """A summarizer of ours: one reader, and another for results of any other shape."""

    def __init__(self, name: str, read: Read, otherwise: Callable[[Any], Summarized]) -> None:
        self.name = name
        self._read = read
        self._otherwise = otherwise

    def read(self, raw_result: Any) -> Summarized:
        """Everything at once."""
        found = self._read(raw_result) or self._otherwise(raw_result)
        line = one_line(found.summary) or "Nothing readable"
        # Of a text that was cut nobody knows the line numbers.
        return replace(found, summary=line, excerpts=() if is_cut(raw_result) else found.excerpts)

    def summarize(self, raw_result: Any) -> str:
        return self.read(raw_result).summary

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        return dict(self.read(raw_result).knowledge)

    def extract_excerpts(self, raw_result: Any) -> Sequence[Any]:
        return self.read(raw_result).excerpts


def text_of(raw: Any) -> str | None:
    """The text of a result, without colours: a string, or a command's `stdout` (its `stderr` where that is empty)."""
    text = _raw_text(raw)
    if text is None:
        return None
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT // 2] + "\n" + text[-MAX_TEXT // 2 :]
    return _COLOURS.sub("", text)


def is_cut(raw: Any) -> bool:
    """Whether `text_of` leaves something out."""
    return len(_raw_text(raw) or "") > MAX_TEXT


def line_count(raw: Any) -> int:
    """How many lines the text of a result has, whatever is left out of it."""
    text = _raw_text(raw) or ""
    return text.count("\n") + (not text.endswith("\n"))


def whole_text_of(raw: Any) -> str | None:
    """The text of a result that must be read as a whole or not at all."""
    text = _raw_text(raw)
    return None if text is None or len(text) > MAX_JSON else text


def _raw_text(raw: Any) -> str | None:
    if isinstance(raw, Mapping) and isinstance(raw.get("stdout"), str):
        stdout, stderr = raw["stdout"], raw.get("stderr")
        return stderr if not stdout.strip() and isinstance(stderr, str) else stdout
    return raw if isinstance(raw, str) else None


def lines_of(text: str) -> list[str]:
    """Lines as editors count them."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def excerpt(label: str, lines: Sequence[str], start_line: int = 1) -> tuple[dict[str, Any], ...]:
    """The first of these lines as a slice that the model sees."""
    shown = [visible(line[:EXCERPT_COLUMNS]) for line in lines[:EXCERPT_LINES]]
    if not any(line.strip() for line in shown):
        return ()
    return ({"label": visible(label[:80]), "text": "\n".join(shown), "start_line": start_line},)


def most(counts: Mapping[str, int], limit: int = 4) -> str:
    """The most frequent ones with their counts, most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rest = len(ordered) - limit
    return ", ".join(f"{name} ×{count}" for name, count in ordered[:limit]) + (f" and {rest} more" if rest > 0 else "")


def some(names: Sequence[str], limit: int = 5) -> str:
    """The first few names, and how many more there are."""
    rest = len(names) - limit
    return ", ".join(name[:60] for name in names[:limit]) + (f" and {rest} more" if rest > 0 else "")
