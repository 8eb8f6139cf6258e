"""Reads a tool's output by its kind: records, numbered code, diff, log, table, listing, HTML, or plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from remora.context.evidence._failure import says_failed
from remora.context.evidence._git import commit_lines, is_git_log
from remora.context.evidence._html import html_lines, is_html
from remora.context.evidence._identifiers import Identifiers, identifiers
from remora.context.evidence._parsing import json_block, parsed
from remora.context.evidence._records import record_lines
from remora.context.evidence._words import words_of

Kind = Literal["records", "code", "diff", "traceback", "log", "table", "listing", "html", "text"]

MAX_BYTES = 8 * 1024
"""Most bytes of one output in evidence."""
MAX_LINE = 400
"""A longer line is split into several."""
PIECE = 200
"""Most characters of a part of a long line."""
SOLID_ENDS = 40
"""Characters that are kept of each end of a run without signs."""
CONTINUED = "… "
"""Begins the parts of a long line after the first one."""
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
ERROR_LINE = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)\b|[Ee]rror:|(?:ERROR|CRITICAL|FATAL)\b|E\d{3}\b|[Ff]ailed\b|NOT\b|[Ii]nvalid\b)"
)
"""A line that reports an error."""
_ERROR_SIGNS = ("E", "error:", "CRITICAL", "FATAL", "ailed", "NOT", "nvalid")
"""Every line that `ERROR_LINE` finds contains one of these. Searching for them is faster."""
ERROR_RANK = 4
"""A line that reports an error is kept like one with this many words of the focus."""
_SOLID = re.compile(r"[\w+/=-]{160,}")
_BREAKS = (",", ";", "}", "]", ">", "&")
_SENTENCE_ENDS = (". ", "! ", "? ", "; ", ", ")
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
    found = parsed(value)
    unread = 0
    kind: Kind = "records"
    if not isinstance(found, str):
        lines = record_lines(found, args, focus)
    elif block := json_block(found):
        before, found, after = block
        lines = [*before.split("\n"), *record_lines(found, args, focus), *after.split("\n")]
    else:
        unread = found.count("\n", MAX_READ // 2, -MAX_READ // 2) + 1 if len(found) > MAX_READ else 0
        kind, lines = _read_text(found)
    lines = clean_lines(lines)
    chosen = bounded(lines, MAX_BYTES, lambda: {at: _rank(line, focus) for at, line in enumerate(lines)})
    kept = tuple(lines[at] for at in chosen)
    rest = [lines[at] for at in sorted(set(range(len(lines))).difference(chosen))] if len(kept) < len(lines) else ()
    return Reading(
        kind, kept, says_failed(value), len(lines) - len(kept) + unread, identifiers(found, kind, kept, rest)
    )


def _rank(line: str, focus: frozenset[str]) -> int:
    return len(words_of(line) & focus) + (ERROR_RANK if ERROR_LINE.search(line) else 0)


def _read_text(text: str) -> tuple[Kind, list[str]]:
    if len(text) > MAX_READ:
        text = f"{text[: MAX_READ // 2]}\n…\n{text[-MAX_READ // 2 :]}"
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if is_html(text):
        return "html", html_lines(text)
    if text.startswith("<") and "\n" not in text.strip():
        text = text.replace("><", ">\n<")
    lines = text.split("\n")
    if is_git_log(lines):
        return "text", commit_lines(lines)
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


def error_lines(lines: Sequence[str]) -> list[int]:
    """The indices of lines that report an error."""
    text = "\n".join(lines)
    signs = [sign for sign in _ERROR_SIGNS if sign in text]
    if not signs:
        return []
    return [at for at, line in enumerate(lines) if any(map(line.__contains__, signs)) and ERROR_LINE.search(line)]


def visible_line(text: str) -> str:
    """The text in one line, without control, zero-width and bidirectional characters."""
    if text.isprintable():
        return text
    text = text.replace("\t", "  ").replace("\n", " ")
    return text if text.isprintable() else _CONTROL.sub("", text)


def clean_lines(lines: Sequence[str]) -> list[str]:
    """Remove control characters, trailing spaces and repeated blank lines, and split long lines."""
    found: list[str] = []
    for line in lines:
        line = line.rstrip()
        if not line.isprintable():
            line = visible_line(line)
        if len(line) > MAX_LINE:
            found += _pieces(line)
        elif line or (found and found[-1]):
            found.append(line)
    while found and not found[-1]:
        found.pop()
    return found


def _pieces(line: str) -> Iterator[str]:
    """A long line in parts, after a sentence or between words where possible. Later parts are indented by one more."""
    line = _SOLID.sub(_shortened, line)
    start = len(line) - len(line.lstrip())
    indent, rest = line[:start] + " " + CONTINUED, line[start:]
    before = line[:start]
    while len(rest) > PIECE:
        end = max(rest.rfind(sign, PIECE // 2, PIECE) + len(sign) - 1 for sign in _SENTENCE_ENDS)
        if end < PIECE // 2:
            end = rest.rfind(" ", PIECE // 2, PIECE)
        if end < 0:
            end = max(rest.rfind(sign, PIECE // 2, PIECE) for sign in _BREAKS) + 1 or PIECE
        yield before + rest[:end].rstrip()
        before, rest = indent, rest[end:].lstrip()
    yield before + rest


def _shortened(run: re.Match[str]) -> str:
    """Encoded data, such as base64, by its ends: nobody can act on the rest."""
    return f"{run[0][:SOLID_ENDS]}…[{len(run[0]):,} characters]…{run[0][-SOLID_ENDS:]}"


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
