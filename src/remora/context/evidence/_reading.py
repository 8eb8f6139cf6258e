"""Reads a tool's output by its kind: records, numbered code, diff, log, table, listing, HTML, or plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from remora.context.evidence._failure import says_failed
from remora.context.evidence._html import html_lines, is_html
from remora.context.evidence._identifiers import Identifiers, identifiers
from remora.context.evidence._records import record_lines
from remora.context.evidence._words import words_of

Kind = Literal["records", "code", "diff", "traceback", "log", "table", "listing", "html", "text"]

MAX_BYTES = 8 * 1024
"""Most bytes of one output in evidence."""
MAX_LINE = 400
"""Most characters of one line."""
MAX_READ = 256 * 1024
"""Most characters that are read of an output. Of a longer one, head and tail are read."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_NUMBERED = re.compile(r"\s*\d+(?::|\||\t| {1,2}\S)")
_LOG = re.compile(
    r"\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:|\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d)"
    r"|\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b"
)
_PATH = re.compile(r"(?:[-dlrwxst]{10}\S* .*|\S*[/\\]\S*|\S+\.\w{1,8}/?)(?:\s+\S+\.\w{1,8}/?)*\s*")
_CELLS = re.compile(r"\|.*\||[^,\t]+(?:\t[^\t]*){2,}")
_LOOKED_AT = 200
"""Characters of a line that are examined to detect the kind."""


@dataclass(frozen=True)
class Reading:
    """A tool's output as readable lines."""

    kind: Kind
    lines: tuple[str, ...]
    failed: bool = False
    omitted: int = 0
    """Number of lines that did not fit."""
    identifiers: Identifiers = ()


def read_output(value: Any, focus: frozenset[str] = frozenset(), args: Mapping[str, Any] | None = None) -> Reading:
    """Read the result of a call with `args`. Of a large one, lines with words of `focus` are preferred."""
    parsed = _parsed(value)
    if isinstance(parsed, str):
        kind, lines = _read_text(parsed)
    else:
        kind, lines = "records", record_lines(parsed, args)
    lines = _clean(lines)
    chosen = bounded(lines, MAX_BYTES, lambda: {at: len(words_of(line) & focus) for at, line in enumerate(lines)})
    kept = tuple(lines[at] for at in chosen)
    return Reading(kind, kept, says_failed(parsed), len(lines) - len(kept), identifiers(parsed, kind, kept))


def _parsed(value: Any) -> Any:
    """The value, or the parsed value of a JSON text."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text[:1] in "{[" and text[-1:] in "}]" and text:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return value
    return value


def _read_text(text: str) -> tuple[Kind, list[str]]:
    if len(text) > MAX_READ:
        text = f"{text[: MAX_READ // 2]}\n…\n{text[-MAX_READ // 2 :]}"
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if is_html(text):
        return "html", html_lines(text)
    lines = text.split("\n")
    return _kind(lines), lines


def _kind(lines: Sequence[str]) -> Kind:
    """The kind that most of the first lines match."""
    seen = [line[:_LOOKED_AT] for line in lines[:200] if line.strip()][:60]
    if any(line.startswith("Traceback (most recent call last)") for line in seen):
        return "traceback"
    if any(line.startswith(("diff --git ", "@@ -")) for line in seen):
        return "diff"
    shapes: tuple[tuple[Kind, re.Pattern[str], float], ...] = (
        ("code", _NUMBERED, 0.6), ("log", _LOG, 0.5), ("table", _CELLS, 0.6), ("listing", _PATH, 0.6),
    )  # fmt: skip
    for kind, pattern, share in shapes:
        if len(seen) > 1 and sum(map(bool, map(pattern.match, seen))) >= share * len(seen):
            return kind
    return "text"


def visible_line(text: str) -> str:
    """The text in one line, without control, zero-width and bidirectional characters."""
    if text.isprintable():
        return text
    text = text.replace("\t", "  ").replace("\n", " ")
    return text if text.isprintable() else _CONTROL.sub("", text)


def _clean(lines: Sequence[str]) -> list[str]:
    """Remove control characters, trailing spaces and repeated blank lines, and cut long lines."""
    found: list[str] = []
    for line in lines:
        line = line.rstrip()
        if not line.isprintable():
            line = visible_line(line)
        if len(line) > MAX_LINE:
            line = f"{line[: MAX_LINE * 2 // 3]} … {line[-MAX_LINE // 3 :]}"
        if line or (found and found[-1]):
            found.append(line)
    while found and not found[-1]:
        found.pop()
    return found


def bounded(lines: Sequence[str], limit: int, rank: Callable[[], Mapping[int, int]]) -> list[int]:
    """The indices of as many lines as fit into `limit` bytes: from the start, from the end, and those ranked highest.

    `rank` gives the ranks by index, if not all lines fit. Lines without a rank are not preferred.
    """
    sizes = [len(line) if line.isascii() else len(line.encode(errors="replace")) for line in lines]
    if sum(sizes) + len(sizes) <= limit:
        return list(range(len(lines)))
    chosen: set[int] = set()
    room = limit
    for order, share in (
        (range(len(lines)), 0.4),
        (range(len(lines) - 1, -1, -1), 0.65),
        (_by_rank(rank()), 1.0),
        (range(len(lines)), 1.0),
    ):
        for index in order:
            if limit - room + sizes[index] + 1 > limit * share:
                break
            if index not in chosen:
                chosen.add(index)
                room -= sizes[index] + 1
    return sorted(chosen)


def _by_rank(ranks: Mapping[int, int]) -> list[int]:
    return sorted(sorted([at for at, rank in ranks.items() if rank]), key=ranks.__getitem__, reverse=True)
