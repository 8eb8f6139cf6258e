"""Formats entries as lines of the account."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from remora.context.evidence._entries import Entry

ONE_LINE = 120
"""A call and its output share a line if they are shorter than this."""
GAP = "…"
SHORT_GAP = 8
"""A single hidden line of at most this many estimated tokens is shown: the gap sign would save little."""

_HIDDEN_CALL = re.compile(r"#(?P<seq>\d+) (?P<tool>[\w.-]+)\((?P<args>.*)\): …")


def entry_lines(entry: Entry, chosen: set[int], end: int, known: str) -> tuple[list[str], int]:
    """The shown lines of an entry, and the number of hidden ones. `known` lists identifiers in hidden lines."""
    shown, gone = _chosen_lines(entry, chosen, end)
    if entry.speaker != "call":
        return [f"#{entry.seq} {entry.speaker}: {' '.join(part.strip() for part in shown)}"], gone
    # Only our own labels begin a line: an output could forge a person's words otherwise.
    shown = [f" {line}" for line in shown]
    beside = entry.brief
    if beside and shown:
        shown.append(f" result: {beside}")
        beside = ""
    if known:
        shown.append(f" has {known}")
    hidden = "" if shown else "…" if gone or entry.omitted else "nothing"
    rest = f": {beside or hidden}".rstrip()
    head = f"#{entry.seq} {entry.text}{' failed' if entry.failed else ''}{rest}"
    if len(shown) == 1 and len(head) + len(shown[0]) < ONE_LINE:
        return [f"{head} {shown[0].strip()}"], gone
    return [head, *shown], gone


def _chosen_lines(entry: Entry, chosen: set[int], end: int) -> tuple[list[str], int]:
    view = entry.view
    shown: list[str] = []
    hidden, last = 0, -1
    for at in sorted(chosen):
        if at < 0:
            continue
        gap = [line for line in view[last + 1 : min(at, end)] if line.words]
        if len(gap) == 1 and shown and gap[0].weight <= SHORT_GAP:
            shown.append(gap[0].text)
        elif gap:
            shown.append(GAP)
            hidden += len(gap)
        shown.append(view[at].text)
        last = at
    rest = sum(1 for line in view[last + 1 : end] if line.words)
    return [*shown, *([GAP] if rest and shown else [])], hidden + rest


def grouped(parts: Iterable[str]) -> Iterator[str]:
    """Merge consecutive calls of one tool whose outputs are hidden into one line."""
    held: list[re.Match[str]] = []
    for part in parts:
        match = _HIDDEN_CALL.fullmatch(part) if part.endswith(": …") else None
        if held and (match is None or match["tool"] != held[0]["tool"]):
            yield _group(held)
            held = []
        if match:
            held.append(match)
        else:
            yield part
    if held:
        yield _group(held)


def _group(calls: Sequence[re.Match[str]]) -> str:
    if len(calls) == 1:
        return calls[0][0]
    first = calls[0]["args"]
    key = first.partition("=")[0] + "="
    rest = [call["args"].removeprefix(key) if ", " not in first else call["args"] for call in calls[1:]]
    return f"#{calls[0]['seq']}–{calls[-1]['seq']} {calls[0]['tool']}({' | '.join((first, *rest))}): …"


def by_key(pairs: Iterable[tuple[str, str]]) -> str:
    """Identifiers in one line, grouped by key."""
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return "; ".join(f"{key} {', '.join(values)}" for key, values in groups.items())
