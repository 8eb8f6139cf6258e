"""Formats entries as lines of the account."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from remora.context.evidence._calls import without_head
from remora.context.evidence._entries import Entry

ONE_LINE = 120
"""A call and its output share a line if they are shorter than this."""
GAP = " …"
"""Follows a line after which others are hidden."""
SHORT_GAP = 8
"""A single hidden line of at most this many estimated tokens is shown: the gap sign would save little."""

_HIDDEN_CALL = re.compile(r"#(?P<seq>\d+) (?P<tool>[\w.-]+)\((?P<args>.*)\): …")


class Shown(NamedTuple):
    """What is shown of an entry."""

    entry: Entry
    given: list[str]
    """Lines of long arguments."""
    lines: list[str]
    """Lines of the output or the message."""
    gone: int
    """The number of hidden lines."""
    known: str
    """Identifiers in hidden lines."""

    @property
    def said(self) -> str:
        """A message as one text."""
        return " ".join(part.strip() for part in self.lines)


def show(entry: Entry, chosen: set[int], end: int, known: str) -> Shown:
    """An entry with these of its lines. Lines from `end` on are not counted as hidden."""
    lines, gone = _chosen_lines(entry, chosen, end)
    start = len(entry.given)
    return Shown(
        entry, [text for at, text in lines if at < start], [text for at, text in lines if at >= start], gone, known
    )


def entry_lines(part: Shown) -> list[str]:
    """The lines of an entry in the account."""
    entry, gone, known = part.entry, part.gone, part.known
    if entry.speaker != "call":
        return [f"#{entry.seq} {entry.speaker}: {part.said}"]
    # Only our own labels begin a line: an output could forge a person's words otherwise.
    shown = [f" {line}" for line in (*part.given, *part.lines)]
    beside = entry.brief
    if beside and shown:
        shown.append(f" result: {beside}")
        beside = ""
    if known:
        shown.append(f" has {known}")
    hidden = "" if shown else "…" if gone or entry.omitted else "nothing"
    rest = f": {beside or hidden}".rstrip()
    head = f"#{entry.seq} {without_head(entry.text, part.given)}{' failed' if entry.failed else ''}{rest}"
    if len(shown) == 1 and len(head) + len(shown[0]) < ONE_LINE:
        return [f"{head} {shown[0].strip()}"]
    return [head, *shown]


def _chosen_lines(entry: Entry, chosen: set[int], end: int) -> tuple[list[tuple[int, str]], int]:
    """The chosen lines with their indices, marked where others are hidden, and the number of hidden ones."""
    texts, filled = entry.texts, entry.filled
    shown: list[tuple[int, str]] = []
    hidden, last = 0, -1
    for at in sorted(chosen):
        if at < 0:
            continue
        gap = filled[min(at, end)] - filled[last + 1] if last + 1 < min(at, end) else 0
        if gap == 1 and shown and entry.costs[only := filled.index(filled[last + 1] + 1) - 1] <= SHORT_GAP:
            shown.append((only, texts[only]))
        elif gap:
            if shown:
                shown[-1] = (shown[-1][0], shown[-1][1] + GAP)
            hidden += gap
        shown.append((at, texts[at]))
        last = at
    rest = filled[end] - filled[last + 1] if last + 1 < end else 0
    if rest and shown:
        shown[-1] = (shown[-1][0], shown[-1][1] + GAP)
    return shown, hidden + rest


def grouped(parts: Iterable[str]) -> Iterator[str]:
    """Merge consecutive calls of one tool whose outputs are hidden into one line."""
    held: list[re.Match[str]] = []
    for part in parts:
        match = _hidden_call(part) if part.endswith(": …") else None
        if held and (match is None or match["tool"] != held[0]["tool"]):
            yield _group(held)
            held = []
        if match:
            held.append(match)
        else:
            yield part
    if held:
        yield _group(held)


@lru_cache(maxsize=512)
def _hidden_call(line: str) -> re.Match[str] | None:
    """The parts of a call whose output is hidden. Cached, because the same lines come back in every turn."""
    return _HIDDEN_CALL.fullmatch(line)


def _group(calls: Sequence[re.Match[str]]) -> str:
    if len(calls) == 1:
        return calls[0][0]
    first = calls[0]["args"]
    key = first.partition("=")[0] + "="
    rest = [call["args"].removeprefix(key) if ", " not in first else call["args"] for call in calls[1:]]
    return f"#{calls[0]['seq']}–{calls[-1]['seq']} {calls[0]['tool']}({' | '.join((first, *rest))}): …"
