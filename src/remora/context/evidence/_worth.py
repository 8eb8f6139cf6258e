"""Scores every line of the evidence by its speaker, its age and its words.

The order follows what the next call is likely to need: the newest message of a person, the calls so far, the newest
output, older messages of people, then lines of older outputs that share words with the latest messages and calls, or
that contain identifiers that nothing newer contains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from remora.context.evidence._entries import Entry
from remora.context.evidence._words import words_of

HORIZON = 4
"""Outputs beyond this many budgets of text are not scored; only their calls and identifiers are shown."""
MANY = 40
"""The newest entries whose words define the topic of the run: this many."""
SMALL_OUTPUT = 16
"""An output of at most this many estimated tokens is scored like its call."""

CALL, USER, NEWEST, OLDER, AGENT_NEWEST, AGENT_OLDER = 80.0, 60.0, 60.0, 45.0, 65.0, 9.0
"""Base scores of lines."""
NEWEST_USER = 90.0
CALL_DECAY, USER_DECAY, LINE_DECAY = 4.0, 6.0, 0.8
"""Subtracted for each later call. The first two are for a budget of 1,000 tokens and shrink with larger budgets."""
RECENT = 12.0
"""Added for the second newest output, half of it for the third newest, and so on."""

HOT, HOTTER, WARM = 1.0, 2.0, 0.4
"""For each word that a line shares with the latest messages and calls; with the last message; with all."""
FRESH, MOST_FRESH = 1.8, 4
"""For each identifier that no newer entry contains; the most identifiers that count."""
RELATED, MOST_RELATED = 0.4, 4.0
"""For each word that the whole output shares with the latest messages and calls; the maximum."""
NEAR, NEAR_DECAY = 6.0, 0.3
"""For a numbered line near a number in the latest call or message; subtracted for each line between."""
NUMBERS = 8
FAILED, ERROR, REPEATED, LENGTH = 2.0, 16.0, 6.0, 0.1
"""For lines of a failed output; for its error lines; subtracted for a repeated line; subtracted for each token."""

LATER = {"agent": 40.0, "user": 20.0, "call": 20.0, "newest": 0.0, "": 0.0}
"""Subtracted from the score, by share, in the second pass."""

_ERROR = re.compile(r"\b(?:[A-Z]\w*(?:Error|Exception)\b|[Ee]rror:|ERROR\b|E\d{3}\b|[Ff]ailed\b|NOT\b|[Ii]nvalid\b)")
_LINE_NUMBER = re.compile(r"\s*(\d{1,7})[:|\t ]")
_NUMBER = re.compile(r"(?<![\w.])\d{1,7}(?![\w.])")


class Piece(NamedTuple):
    """A line of an entry, or its head (`line` is -1), that can be shown."""

    worth: float
    later: float
    """The score in the second pass."""
    entry: int
    line: int
    cost: int
    share: str


def pieces_of(entries: Sequence[Entry], ends: Sequence[int], goal: frozenset[str], budget: int) -> list[Piece]:
    """All pieces of the entries, each entry up to its end."""
    return list(_Judge(entries, ends, goal).pieces(budget))


class _Judge:
    """Scores the lines of one state of the evidence, newest first."""

    def __init__(self, entries: Sequence[Entry], ends: Sequence[int], goal: frozenset[str]) -> None:
        self._entries = entries
        self._ends = ends
        calls = [entry for entry in entries if entry.speaker == "call"]
        said = [entry for entry in entries if entry.speaker != "call"]
        hot = frozenset[str]().union(*(entry.words for entry in (*said[-2:], *calls[-2:])))
        common = max(3, len(calls[-MANY:]) // 3)
        spread = Counter(word for entry in calls[-MANY:] for word in entry.all_words & hot)
        self._hot = frozenset(word for word in hot if spread[word] <= common)
        self._hotter = self._hot & said[-1].words if said else frozenset()
        self._warm = goal.union(*(entry.words for entry in entries[-MANY:] if entry.speaker != "agent"))
        texts = " ".join(entry.said for entry in (*said[-1:], *calls[-1:]))
        self._numbers = {int(number) for number in _NUMBER.findall(texts)[-NUMBERS:]}
        self._covered: set[str] = set()
        self._repeated: set[str] = set()

    def pieces(self, budget: int) -> Iterator[Piece]:
        seen, ranks = 0, Counter[str]()
        scale = min(4.0, 1000 / max(1, budget))
        for index in range(len(self._entries) - 1, -1, -1):
            entry, age = self._entries[index], ranks["call"]
            if entry.speaker == "call":
                worth = CALL - CALL_DECAY * scale * age
                yield Piece(worth, worth - LATER["call"], index, -1, entry.weight, "call")
                ranks["call"] += 1
            if not entry.view:
                continue
            base, share = self._base(entry, index, ranks[f"{entry.speaker} said"])
            ranks[f"{entry.speaker} said"] += 1
            if seen > budget * HORIZON and share not in ("user", "call"):
                continue
            seen += min(budget, entry.view_weight)
            decay = USER_DECAY * scale if share == "user" else LINE_DECAY
            yield from self._lines(index, base - decay * age, share)
            self._covered |= entry.all_words

    def _base(self, entry: Entry, index: int, rank: int) -> tuple[float, str]:
        """The base score of the entry's lines, and the share that they count towards."""
        if entry.speaker == "user":
            return (NEWEST_USER, "") if rank == 0 else (USER, "user")
        if entry.speaker == "agent":
            return (AGENT_NEWEST if rank == 0 else AGENT_OLDER, "agent")
        if sum(line.weight for line in entry.view[: self._ends[index]]) <= SMALL_OUTPUT:
            return CALL, "call"
        return (NEWEST, "newest") if rank == 0 else (OLDER + RECENT / rank, "")

    def _lines(self, index: int, base: float, share: str) -> Iterator[Piece]:
        entry = self._entries[index]
        shared = entry.all_words & self._hot
        base += min(MOST_RELATED, RELATED * len(shared)) + (FAILED if entry.failed else 0)
        less = LATER[share]
        numbers = self._numbers if entry.kind == "code" else ()
        # In messages and short outputs, lines without words, such as `ok`, also count.
        shows_all = entry.speaker != "call" or share == "call"
        for at, line in enumerate(entry.view[: self._ends[index]]):
            if line.heads or not (line.words or (shows_all and line.text.strip())):
                continue
            worth = base + WARM * len(line.words & self._warm) - LENGTH * line.weight
            if shared:
                worth += HOT * len(line.words & shared) + HOTTER * len(line.words & self._hotter)
            if line.fresh:
                worth += FRESH * min(MOST_FRESH, len(line.fresh - self._covered))
            if line.text in self._repeated:
                worth -= REPEATED
            else:
                self._repeated.add(line.text)
            if entry.failed and _ERROR.search(line.text) and not _LINE_NUMBER.match(line.text):
                worth += ERROR
            if numbers and (match := _LINE_NUMBER.match(line.text)):
                distance = min(abs(int(match[1]) - number) for number in numbers)
                worth += max(0.0, NEAR - NEAR_DECAY * distance)
            yield Piece(worth, worth - less, index, at, line.weight, share)


def ends_of(entries: Sequence[Entry]) -> list[int]:
    """For each entry, the end of its lines without a tail that the next output repeats, such as a shell prompt."""
    found = [len(entry.view) for entry in entries]
    after: Entry | None = None
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if entry.speaker == "call" and entry.view:
            if after is not None:
                found[index] -= _same_end(entry.lines, after.lines)
            after = entry
    return found


def _same_end(lines: Sequence[str], others: Sequence[str]) -> int:
    same = 0
    for line, other in zip(reversed(lines), reversed(others), strict=False):
        if line != other:
            break
        same += 1
    return same


@lru_cache(maxsize=8)
def goal_words(goal: str) -> frozenset[str]:
    """Words of a task. Cached, because every turn of a run needs them."""
    return words_of(goal)
