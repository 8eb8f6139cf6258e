"""The fold of evidence: keeps the newest entries in full and shortens older ones, bounded in bytes.

It depends only on recorded events. When the entries exceed `MAX_BYTES`, the oldest outputs are cut to their most
relevant lines, then to none; after that, whole entries are dropped. A ledger keeps the identifiers of shortened
outputs, each with its key and its event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from remora.context.evidence._cached import cached
from remora.context.evidence._entries import Entry, clip
from remora.context.evidence._reading import bounded

MAX_BYTES = 48 * 1024
"""Most bytes of all entries together."""
MAX_ENTRIES = 160
NEWEST = 3
"""The newest entries are never shortened: this many."""
SHORT_OUTPUT = 600
"""Bytes of an output after it is shortened once."""
SHORT_WORDS = 300
"""Bytes of a message, or characters of a call, after it is shortened once."""
MAX_LEDGER = 240
"""Most identifiers in the ledger."""


@dataclass(frozen=True)
class Known:
    """An identifier whose output was shortened or dropped."""

    key: str
    value: str
    seq: int
    used: bool = False
    """Whether a later call used it."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of a run."""

    entries: tuple[Entry, ...] = ()
    ledger: tuple[Known, ...] = ()
    dropped: int = 0
    """Number of dropped entries."""

    @cached
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)

    @cached
    def encoded(self) -> bytes:
        """The evidence as canonical JSON, joined from the encoded entries."""
        entries = b",".join([entry.encoded for entry in self.entries])
        return b'{"dropped":%d,"entries":[%b],"ledger":%b}' % (self.dropped, entries, self._encoded_ledger)

    @cached
    def _encoded_ledger(self) -> bytes:
        return orjson.dumps([[item.key, item.value, item.seq, item.used] for item in self.ledger])

    @cached
    def by_use(self) -> tuple[list[Known], list[Known]]:
        """The ledger, newest first: identifiers that later calls used, and the others."""
        newest = self.ledger[::-1]
        return [item for item in newest if item.used], [item for item in newest if not item.used]

    def with_entry(self, entry: Entry, ledger: tuple[Known, ...]) -> Evidence:
        """Add an entry. What is known of the other entries is not computed again."""
        grown = Evidence((*self.entries, entry), ledger, self.dropped)
        grown.__dict__["size"] = self.size + entry.size
        if ledger is self.ledger:
            grown.__dict__.update({name: self.__dict__[name] for name in _OF_LEDGER if name in self.__dict__})
        return grown


_OF_LEDGER = ("_encoded_ledger", "by_use")
"""What is known of a ledger."""


def remember(evidence: Evidence, entry: Entry, goal: frozenset[str] = frozenset()) -> Evidence:
    """Add an entry, within the bounds. When older entries are shortened, lines with words of `goal` are preferred."""
    ledger = _mark_used(evidence.ledger, entry) if entry.speaker == "call" and evidence.ledger else evidence.ledger
    grown = evidence.with_entry(entry, ledger)
    return _shrink(grown, goal) if grown.size > MAX_BYTES or len(grown.entries) > MAX_ENTRIES else grown


def _shrink(evidence: Evidence, goal: frozenset[str]) -> Evidence:
    """Shrink the evidence to well within its bounds, so that most turns need not shrink it again."""
    entries: list[Entry | None] = list(evidence.entries)
    gone = list[Entry]()
    size, over = evidence.size, 0
    if len(entries) > MAX_ENTRIES:
        over = len(entries) - MAX_ENTRIES * 7 // 8
        gone += evidence.entries[:over]
        size -= sum(entry.size for entry in gone)
    focus = goal.union(*(entry.words for entry in evidence.entries[over:]))
    entries = entries[over:]
    for index, old in _oldest_first(entries):
        if size <= MAX_BYTES * 7 // 8:
            break
        new = entries[index] = _shorter(old, focus)
        if old.level == 0:
            gone.append(old)
        size += (new.size if new else 0) - old.size
    kept = tuple(entry for entry in entries if entry is not None)
    dropped = evidence.dropped + len(evidence.entries) - len(kept)
    news = [Known(key, value, entry.seq) for entry in gone for key, value in entry.identifiers if entry.level == 0]
    return Evidence(kept, _bounded_ledger(evidence.ledger, news), dropped)


def _oldest_first(entries: Sequence[Entry | None]) -> Iterator[tuple[int, Entry]]:
    """The entries in the order in which they are shortened: least shortened and oldest first, people's words last."""
    for level in (0, 1, 2):
        for speakers in (("call", "agent"), ("user",)):
            for index in range(len(entries) - NEWEST):
                entry = entries[index]
                if entry is not None and entry.level == level and entry.speaker in speakers:
                    yield index, entry


def _shorter(entry: Entry, focus: frozenset[str]) -> Entry | None:
    if entry.level == 2:
        return None
    most = SHORT_WORDS if entry.level == 0 else SHORT_WORDS // 2
    clipped, call = clip(entry.text, most), entry.call if len(entry.call) <= most else ""
    if entry.speaker != "call":
        return entry.shortened(entry.text, (), _kept(entry, "lines", focus, most))
    if entry.level == 1:
        return entry.shortened(clipped, (), (), call=call, omitted=entry.omitted + len(entry.lines), identifiers=())
    given = _kept(entry, "given", focus, SHORT_OUTPUT // 2)
    lines = _kept(entry, "lines", focus, SHORT_OUTPUT)
    return entry.shortened(clipped, given, lines, call=call, omitted=entry.omitted + len(entry.lines) - len(lines))


def _kept(entry: Entry, name: Literal["given", "lines"], focus: frozenset[str], limit: int) -> list[int]:
    start = len(entry.given) if name == "lines" else 0
    return bounded(getattr(entry, name), limit, lambda at: len(entry.lexed.words[start + at] & focus))


def _mark_used(ledger: tuple[Known, ...], entry: Entry) -> tuple[Known, ...]:
    """Move the identifiers that the call names to the end of the ledger, and mark them as used."""
    text = entry.text
    used = [item for item in ledger if item.value in text]
    if not used:
        return ledger
    rest = [item for item in ledger if item.value not in text]
    return (*rest, *(replace(item, used=True) for item in used))


def _bounded_ledger(ledger: Iterable[Known], news: Iterable[Known]) -> tuple[Known, ...]:
    """Add identifiers to the ledger, which has each of its own once; the oldest ones that nobody used go first."""
    newest = {item.value: item for item in ledger}
    for item in news:
        before = newest.pop(item.value, None)
        newest[item.value] = replace(item, used=True) if before and before.used else item
    items = list(newest.values())
    for unused_only in (True, False):
        over = len(items) - MAX_LEDGER
        if over > 0:
            going = {id(item) for item in [item for item in items if not (unused_only and item.used)][:over]}
            items = [item for item in items if id(item) not in going]
    return tuple(items)
