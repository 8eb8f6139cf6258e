"""The fold of evidence: what was said, called and returned, newest in full, older in fewer words, bounded in bytes.

Everything here depends on recorded events alone. When the entries take more than `MAX_BYTES`, the oldest outputs keep
only their most relevant lines, then none; then whole entries go. Identifiers of outputs that lost lines are kept in a
ledger, each with its key and the event it came from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from remora.context.evidence._entries import Entry, clip
from remora.context.evidence._reading import bounded

MAX_BYTES = 48 * 1024
"""Of all entries together."""
MAX_ENTRIES = 240
NEWEST = 3
"""Entries that are never shortened."""
SHORT_OUTPUT = 600
"""Bytes of an older output that stay at first."""
SHORT_WORDS = 300
"""Characters of older words."""
MAX_LEDGER = 240
"""Identifiers."""


@dataclass(frozen=True)
class Known:
    """An identifier that outlived the output it came from."""

    key: str
    value: str
    seq: int
    used: bool = False
    """Whether a call has named it since."""


@dataclass(frozen=True)
class Evidence:
    """What is remembered of a run."""

    entries: tuple[Entry, ...] = ()
    ledger: tuple[Known, ...] = ()
    dropped: int = 0
    """Entries that are gone."""

    @cached_property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)


def remember(evidence: Evidence, entry: Entry, goal: frozenset[str] = frozenset()) -> Evidence:
    """The evidence with one more entry, within its bounds. Of the oldest, words of `goal` are kept first."""
    ledger = _mark_used(evidence.ledger, entry) if entry.speaker == "call" and evidence.ledger else evidence.ledger
    grown = Evidence((*evidence.entries, entry), ledger, evidence.dropped)
    return _shrink(grown, goal) if grown.size > MAX_BYTES or len(grown.entries) > MAX_ENTRIES else grown


def _shrink(evidence: Evidence, goal: frozenset[str]) -> Evidence:
    entries, ledger, dropped = list(evidence.entries), list(evidence.ledger), evidence.dropped
    focus = goal.union(*(entry.words for entry in entries))
    size = evidence.size
    while size > MAX_BYTES * 7 // 8 or len(entries) > MAX_ENTRIES:
        index = _next(entries)
        if index is None:
            break
        old = entries[index]
        new = _shorter(old, focus)
        if old.level == 0:
            ledger += [Known(key, value, old.seq) for key, value in old.identifiers]
        if new is None:
            del entries[index]
            dropped += 1
        else:
            entries[index] = new
        size += (new.size if new else 0) - old.size
    return Evidence(tuple(entries), _bounded_ledger(ledger), dropped)


def _next(entries: list[Entry]) -> int | None:
    """The entry to shorten next: the oldest of those that were shortened least, words after outputs."""
    older = range(len(entries) - NEWEST)
    if len(entries) > MAX_ENTRIES:
        return 0
    for level in (0, 1, 2):
        for speakers in (("call", "agent"), ("user",)):
            for index in older:
                if entries[index].level == level and entries[index].speaker in speakers:
                    return index
    return None


def _shorter(entry: Entry, focus: frozenset[str]) -> Entry | None:
    if entry.level == 2:
        return None
    clipped = clip(entry.text, SHORT_WORDS if entry.level == 0 else SHORT_WORDS // 2)
    if entry.speaker != "call":
        lines, _ = bounded(entry.lines, focus, SHORT_WORDS if entry.level == 0 else SHORT_WORDS // 2)
        return replace(entry, lines=tuple(lines), level=entry.level + 1)
    if entry.level == 1:
        gone = entry.omitted + len(entry.lines)
        return replace(entry, text=clipped, given=(), lines=(), omitted=gone, identifiers=(), level=entry.level + 1)
    given, _ = bounded(entry.given, focus, SHORT_OUTPUT // 2)
    lines, left_out = bounded(entry.lines, focus, SHORT_OUTPUT)
    return replace(
        entry, text=clipped, given=tuple(given), lines=tuple(lines), omitted=entry.omitted + left_out, level=1
    )


def _mark_used(ledger: tuple[Known, ...], entry: Entry) -> tuple[Known, ...]:
    """The ledger with what the call names last."""
    text = entry.text
    used = [item for item in ledger if item.value in text]
    if not used:
        return ledger
    rest = [item for item in ledger if item.value not in text]
    return (*rest, *(replace(item, used=True) for item in used))


def _bounded_ledger(ledger: Iterable[Known]) -> tuple[Known, ...]:
    newest: dict[str, Known] = {}
    for item in ledger:
        before = newest.pop(item.value, None)
        newest[item.value] = replace(item, used=item.used or bool(before and before.used))
    items = list(newest.values())
    for unused_only in (True, False):
        over = len(items) - MAX_LEDGER
        if over > 0:
            going = {id(item) for item in [item for item in items if not (unused_only and item.used)][:over]}
            items = [item for item in items if id(item) not in going]
    return tuple(items)
