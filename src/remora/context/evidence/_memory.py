"""The fold of evidence: keeps the newest entries in full and shortens older ones, bounded in bytes.

It depends only on recorded events. When the entries exceed `MAX_BYTES`, the oldest outputs are cut to their most
relevant lines, then to none; after that, whole entries are dropped. A ledger keeps the identifiers of shortened
outputs, each with its key and its event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import Annotated

import orjson
from pydantic import Field

from remora.context.evidence._cached import cached
from remora.context.evidence._entries import Entry, clip
from remora.context.evidence._reading import bounded
from remora.context.evidence._words import words_of

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
FOCUS = 12
"""The newest messages and calls whose words decide which lines of an older output are kept: this many."""
ENOUGH, ENOUGH_BY_RULES_2 = 12, 14
"""Sixteenths of `MAX_BYTES` to which the evidence is shrunk, so that most turns need not shrink it."""
RULES = 3
"""The rules of new streams. Streams of projector 2 fold by rules 2: all entries are the focus."""


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
    rules: Annotated[int, Field(exclude=True)] = field(default=RULES, compare=False)
    """How the fold shrinks it. A packet does not show it."""

    @cached
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)

    @cached
    def height(self) -> int:
        """The number of lines of all entries, dropped ones of each included."""
        return sum([entry.height + entry.omitted for entry in self.entries])

    @cached
    def encoded(self) -> bytes:
        """The evidence as canonical JSON, joined from the encoded entries."""
        entries = b",".join([entry.encoded for entry in self.entries])
        return b'{"dropped":%d,"entries":[%b],"ledger":%b}' % (self.dropped, entries, self._encoded_ledger)

    @cached
    def _encoded_ledger(self) -> bytes:
        return orjson.dumps([[item.key, item.value, item.seq, item.used] for item in self.ledger])

    @cached
    def ledger_values(self) -> list[str]:
        """The values in the ledger."""
        return [item.value for item in self.ledger]

    @cached
    def by_use(self) -> tuple[list[Known], list[Known]]:
        """The ledger, newest first: identifiers that later calls used, and the others."""
        newest = self.ledger[::-1]
        return [item for item in newest if item.used], [item for item in newest if not item.used]

    def with_entry(self, entry: Entry, ledger: tuple[Known, ...]) -> Evidence:
        """Add an entry. What is known of the other entries is not computed again."""
        grown = Evidence((*self.entries, entry), ledger, self.dropped, self.rules)
        grown.__dict__["size"] = self.size + entry.size
        if "height" in self.__dict__:
            grown.__dict__["height"] = self.height + entry.height + entry.omitted
        if ledger is self.ledger:
            grown.__dict__.update({name: self.__dict__[name] for name in _OF_LEDGER if name in self.__dict__})
        return grown


_OF_LEDGER = ("_encoded_ledger", "by_use", "ledger_values")
"""What is known of a ledger."""


def remember(evidence: Evidence, entry: Entry, goal: frozenset[str] = frozenset()) -> Evidence:
    """Add an entry, within the bounds. When older entries are shortened, lines with words of `goal` are preferred."""
    ledger = evidence.ledger
    if entry.speaker == "call" and any(map(entry.text.__contains__, evidence.ledger_values)):
        ledger = _mark_used(ledger, entry.text)
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
    entries = entries[over:]
    enough = MAX_BYTES * (ENOUGH if evidence.rules > 2 else ENOUGH_BY_RULES_2) // 16
    focus = _focus(evidence.entries[over:], goal, evidence.rules)
    rank = _ranks if evidence.rules > 2 else _ranks_by_rules_2
    for index, old in _oldest_first(entries):
        if size <= enough:
            break
        new = entries[index] = _shorter(old, focus, rank)
        if old.level == 0:
            gone.append(old)
        size += (new.size if new else 0) - old.size
    kept = tuple(entry for entry in entries if entry is not None)
    dropped = evidence.dropped + len(evidence.entries) - len(kept)
    news = [Known(key, value, entry.seq) for entry in gone for key, value in entry.identifiers if entry.level == 0]
    return Evidence(kept, _bounded_ledger(evidence.ledger, news), dropped, evidence.rules)


def _oldest_first(entries: Sequence[Entry | None]) -> Iterator[tuple[int, Entry]]:
    """The entries in the order in which they are shortened: least shortened and oldest first, people's words last."""
    for level in (0, 1, 2):
        for speakers in (("call", "agent"), ("user",)):
            for index in range(len(entries) - NEWEST):
                entry = entries[index]
                if entry is not None and entry.level == level and entry.speaker in speakers:
                    yield index, entry


def _focus(entries: Sequence[Entry], goal: frozenset[str], rules: int) -> frozenset[str]:
    if rules > 2:
        entries = [entry for entry in entries if entry.speaker != "agent"][-FOCUS:]
    return goal.union(*[entry.words for entry in entries])


Rank = Callable[[Entry, frozenset[str]], Mapping[int, int]]


def _ranks(entry: Entry, focus: frozenset[str]) -> Mapping[int, int]:
    """By line of long arguments and of the output: how many words of `focus` it has."""
    first, later, _, _ = entry.index
    words = first.keys() & focus
    ranks = Counter([first[word] for word in words])
    ranks.update(chain.from_iterable([later[word] for word in later.keys() & words]))
    return ranks


def _ranks_by_rules_2(entry: Entry, focus: frozenset[str]) -> Mapping[int, int]:
    return {at: len(words_of(line) & focus) for at, line in enumerate((*entry.given, *entry.lines))}


def _shorter(entry: Entry, focus: frozenset[str], rank: Rank) -> Entry | None:
    if entry.level == 2:
        return None
    most = SHORT_WORDS if entry.level == 0 else SHORT_WORDS // 2
    clipped, call = clip(entry.text, most), entry.call if len(entry.call) <= most else ""
    if entry.speaker == "call" and entry.level == 1:
        return entry.shortened(clipped, (), (), call=call, omitted=entry.omitted + len(entry.lines), identifiers=())
    ranks = cache(lambda: rank(entry, focus))
    start = len(entry.given)
    if entry.speaker != "call":
        return entry.shortened(entry.text, (), _kept(entry.lines, ranks, start, most))
    given = _kept(entry.given, ranks, 0, SHORT_OUTPUT // 2)
    lines = _kept(entry.lines, ranks, start, SHORT_OUTPUT)
    return entry.shortened(clipped, given, lines, call=call, omitted=entry.omitted + len(entry.lines) - len(lines))


def _kept(lines: Sequence[str], ranks: Callable[[], Mapping[int, int]], start: int, limit: int) -> list[int]:
    end = start + len(lines)
    return bounded(lines, limit, lambda: {at - start: rank for at, rank in ranks().items() if start <= at < end})


def _mark_used(ledger: tuple[Known, ...], text: str) -> tuple[Known, ...]:
    """Move the identifiers that a call names to the end of the ledger, and mark them as used."""
    used = [item for item in ledger if item.value in text]
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
