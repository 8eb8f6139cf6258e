"""The fold of evidence: what was said, called and returned, newest in full, older in fewer words, bounded in bytes.

Everything here depends on recorded events alone. When the entries take more than `MAX_BYTES`, the oldest outputs keep
only their most relevant lines, then none; then whole entries go. Identifiers of outputs that lost lines are kept in a
ledger, each with its key and the event it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from remora.context.evidence._calls import call_line
from remora.context.evidence._identifiers import Identifiers
from remora.context.evidence._reading import Reading, bounded
from remora.context.evidence._words import is_identifier, weigh, words_of

MAX_BYTES = 48 * 1024
"""Of all entries together."""
MAX_ENTRIES = 240
NEWEST = 3
"""Entries that are never shortened."""
BRIEF = 80
"""Characters of an output that stands beside its call."""
SHORT_OUTPUT = 600
"""Bytes of an older output that stay at first."""
SHORT_WORDS = 300
"""Characters of older words."""
MAX_WORDS = 4_000
"""Characters of one person's message; the stream holds all of it."""
MAX_OWN_WORDS = 1_000
"""Characters of one message of the agent."""
MAX_LEDGER = 240
"""Identifiers."""

_MARKS = re.compile(r"^\s*(?:[-*•]|#{1,6})\s+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")

Speaker = Literal["user", "agent", "call"]


@dataclass(frozen=True)
class Line:
    """One line of an entry, with what selection needs to know of it."""

    text: str
    words: frozenset[str]
    weight: int
    parent: int
    """The line that this one belongs to; -1 where it stands alone."""
    heads: bool
    """Whether other lines belong to it."""
    fresh: frozenset[str]
    """Identifiers that no line of the entry has before."""


@dataclass(frozen=True)
class Entry:
    """One thing that happened: words of a person or of the agent, or a call with its output."""

    seq: int
    speaker: Speaker
    text: str
    """The words, or the call in one line."""
    given: tuple[str, ...] = ()
    """Lines of long arguments."""
    lines: tuple[str, ...] = ()
    """Lines of the output."""
    kind: str = "text"
    failed: bool = False
    omitted: int = 0
    """Lines that are not here any more."""
    identifiers: Identifiers = ()
    level: int = 0
    """How often it was shortened."""

    @cached_property
    def size(self) -> int:
        """Bytes, about."""
        pairs = sum(len(key) + len(value) + 6 for key, value in self.identifiers)
        return len(self.text) + sum(map(len, self.given)) + sum(map(len, self.lines)) + pairs + 64

    @cached_property
    def words(self) -> frozenset[str]:
        """Of what was said, or of the call, long arguments included."""
        return words_of("\n".join((self.text, *self.given, *(() if self.speaker == "call" else self.lines))))

    @cached_property
    def all_words(self) -> frozenset[str]:
        return self.words.union(words_of(self.brief), *(line.words for line in self.view))

    @cached_property
    def tool(self) -> str:
        """What was called."""
        return self.text.partition("(")[0] if self.speaker == "call" else ""

    @cached_property
    def brief(self) -> str:
        """The output where it is so short that it stands beside the call."""
        is_short = self.speaker == "call" and len(self.lines) == 1 and len(self.lines[0]) <= BRIEF
        return self.lines[0].strip() if is_short else ""

    @cached_property
    def weight(self) -> int:
        return weigh(self.text) + weigh(self.brief) + 6

    @cached_property
    def view(self) -> tuple[Line, ...]:
        """Given lines, then those of the output."""
        found: list[Line] = []
        seen: set[str] = set()
        open_: list[tuple[int, int]] = []
        for index, text in enumerate((*self.given, *(() if self.brief else self.lines))):
            indent = len(text) - len(text.lstrip(" ")) if self.kind == "records" or index < len(self.given) else 0
            while open_ and open_[-1][0] >= indent:
                open_.pop()
            parent = open_[-1][1] if open_ else -1
            open_.append((indent, index))
            words = words_of(text)
            fresh = frozenset(word for word in words - seen if not word.isdigit() and is_identifier(word))
            seen |= words
            found.append(Line(text, words, weigh(text) + 1, parent, False, fresh))
        parents = {line.parent for line in found}
        return tuple(replace(line, heads=True) if at in parents else line for at, line in enumerate(found))


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


def person_said(seq: int, text: str) -> Entry:
    """A person's words."""
    return Entry(seq, "user", "", lines=_sentences(_clip(text.strip(), MAX_WORDS)))


def agent_said(seq: int, text: str) -> Entry:
    """The agent's own words."""
    return Entry(seq, "agent", "", lines=_sentences(_clip(text.strip(), MAX_OWN_WORDS)))


def called(seq: int, tool: str, args: Mapping[str, Any], reading: Reading) -> Entry:
    """A call and what came of it. Arguments that the output shows again are not kept twice."""
    text, given = call_line(tool, args)
    if given and reading.lines:
        shown = "\n".join(reading.lines)
        new = tuple(line for line in given if line.strip() and line.strip() not in shown)
        given = new if len(new) > 1 or (new and not new[0].endswith(":")) else ()
    return Entry(
        seq, "call", text, given, reading.lines, reading.kind, reading.failed, reading.omitted, reading.identifiers
    )


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
    clipped = _clip(entry.text, SHORT_WORDS if entry.level == 0 else SHORT_WORDS // 2)
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


def _sentences(text: str) -> tuple[str, ...]:
    """What was said, sentence by sentence, without marks of layout."""
    lines = (_MARKS.sub("", line).strip() for line in text.replace("**", "").splitlines())
    return tuple(part for line in lines for part in _SENTENCE.split(line) if part)


def _clip(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3].rstrip()} … {text[-limit // 3 :].lstrip()}"
