"""Entries as lines of the account."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from remora.context.evidence._entries import Entry

ONE_LINE = 120
"""Characters of a call and its output that stand in one line."""
GAP = " …"

_HIDDEN_CALL = re.compile(r"#(?P<seq>\d+) (?P<tool>[\w.-]+)\((?P<args>.*)\): …")


def entry_lines(entry: Entry, chosen: set[int], end: int, known: str) -> tuple[list[str], int]:
    """The lines of an entry that are shown, and how many are not. `known` are identifiers of those."""
    shown, gone = _chosen_lines(entry, chosen, end)
    if entry.speaker != "call":
        return [f"#{entry.seq} {entry.speaker}: {' '.join(part.strip() for part in shown)}"], gone
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
    shown: list[str] = []
    gone, gap = 0, False
    for at, line in enumerate(entry.view):
        if at in chosen:
            if gap:
                shown.append(GAP)
            shown.append(line.text)
            gap = False
        elif at < end and line.words:
            gone += 1
            gap = True
    return [*shown, *([GAP] if gap and shown else [])], gone


def grouped(parts: Iterable[str]) -> Iterator[str]:
    """The parts, calls of one tool in a row whose outputs are not shown in one line."""
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
    """Identifiers in one line, under their keys."""
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return "; ".join(f"{key} {', '.join(values)}" for key, values in groups.items())
