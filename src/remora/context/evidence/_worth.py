"""Scores every line of the evidence by its speaker, its age and its words.

The order follows what the next call is likely to need: the newest message of a person, the calls so far, the newest
output, older messages of people, then lines of older outputs that share words with the latest messages and calls, or
that contain identifiers that nothing newer contains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from remora.context.evidence._cached import cached
from remora.context.evidence._entries import Entry
from remora.context.evidence._words import words_of

HORIZON = 1.9
"""Outputs beyond this many budgets of text are not scored; only their calls and identifiers are shown."""
MANY = 60
"""The newest entries whose words define the topic of the run: this many."""
SPREAD = 12
"""The newest calls in which a word is counted, to tell words of the topic from words that are everywhere."""
LARGE_OUTPUT = 40
"""Lines of a large output."""
SMALL_OUTPUT = 16
"""An output of at most this many estimated tokens is scored like its call."""

# Scores are tenths of a point. Those of words are whole numbers: their sum is the same in every order of a set.
CALL, USER, NEWEST, OLDER, AGENT_NEWEST, AGENT_OLDER = 800, 600, 600, 450, 650, 90
"""Base scores of lines."""
NEWEST_USER = 900
CALL_DECAY, USER_DECAY, LINE_DECAY = 36, 60, 8
"""Subtracted for each later call. The first two are for a budget of 1,000 tokens and shrink with larger budgets."""
RECENT = 120
"""Added for the second newest output, half of it for the third newest, and so on."""

HOT, HOTTER, WARM = 10, 20, 4
"""For each word that a line shares with the latest messages and calls; with the last message; with all."""
FRESH, MOST_FRESH = 22, 4
"""For each identifier that no newer entry contains; the most identifiers that count."""
RELATED, MOST_RELATED = 4, 40
"""For each word that the whole output shares with the latest messages and calls; the maximum."""
NEAR, NEAR_DECAY = 60, 3
"""For a numbered line near a number in the latest call or message; subtracted for each line between."""
NUMBERS = 8
FAILED, ERROR, REPEATED, LENGTH = 20, 160, 60, 1
"""For lines of a failed output; for error lines of it or of a log; subtracted for a repeated line; for each token."""

LATER = {"agent": 400, "user": 200, "call": 200, "newest": 0, "": 0}
"""Subtracted from the score, by share, in the second pass."""

_NUMBER = re.compile(r"(?<![\w.])\d{1,7}(?![\w.])")


Piece = tuple[float, float, int, int, int, str, int]
"""A line that can be shown: its score, its score in the second pass, the index of its entry, its own index (-1 for the
entry's head), its estimated tokens, the share that it counts towards, and the index of the line that it requires."""
NO_PARENT = -2
"""In a piece: it requires no other line."""


class Judge:
    """Scores the lines of one state of the evidence, newest first."""

    def __init__(self, entries: Sequence[Entry], goal: frozenset[str]) -> None:
        self._entries = entries
        newest = entries[-MANY:]
        calls = [entry for entry in newest if entry.speaker == "call"][-SPREAD:]
        said = [entry for entry in newest if entry.speaker != "call"]
        hot = frozenset[str]().union(*(entry.words for entry in (*said[-2:], *calls[-2:])))
        spread = Counter(chain.from_iterable([_shared(entry, hot) for entry in calls]))
        common = max(3, len(calls) // 3)
        self._hot = frozenset([word for word in hot if spread[word] <= common])
        self._scores = self._word_scores(goal, said)
        texts = " ".join(entry.said for entry in (*said[-1:], *calls[-1:]))
        self._numbers = {int(number) for number in _NUMBER.findall(texts)[-NUMBERS:]}
        self._covered: set[str] = set()
        self._repeated: set[str] = set()
        self._ends: dict[int, int] = {}
        self._skims: list[tuple[int, float, frozenset[int]]] = []

    def end(self, index: int) -> int:
        """The end of an entry's lines without a tail that the next output repeats, such as a shell prompt."""
        end = self._ends.get(index)
        return self._entries[index].height if end is None else end

    def _word_scores(self, goal: frozenset[str], said: Sequence[Entry]) -> dict[str, int]:
        warm = goal.union(*(entry.words for entry in self._entries[-MANY:] if entry.speaker != "agent"))
        scores = dict.fromkeys(warm, WARM)
        for word in self._hot:
            scores[word] = scores.get(word, 0) + HOT
        for word in self._hot & said[-1].words if said else ():
            scores[word] += HOTTER
        return scores

    def pieces(self, budget: int) -> list[Piece]:
        """All pieces that could be worth showing within the budget."""
        found: list[Piece] = []
        seen, scale = 0, min(2.8, (1000 / max(1, budget)) ** 0.75)
        room = {"user": budget, "call": budget}
        ranks = {"user": 0, "agent": 0, "call": 0}
        age, horizon = 0, budget * HORIZON
        people = sum([1 for entry in self._entries if entry.speaker == "user"])
        after: Sequence[str] = ()
        for index in range(len(self._entries) - 1, -1, -1):
            entry = self._entries[index]
            speaker = entry.speaker
            at = age
            if seen > horizon and room["call"] <= 0 and (room["user"] <= 0 or ranks["user"] == people):
                break
            if speaker == "call":
                age += 1
                if room["call"] > 0:
                    room["call"] -= entry.weight
                    worth = CALL - CALL_DECAY * scale * at
                    found.append((worth, worth - LATER["call"], index, -1, entry.weight, "call", NO_PARENT))
            if not entry.height:
                continue
            if speaker == "call":
                if after and entry.lines and entry.lines[-1] == after[-1]:
                    self._ends[index] = entry.height - _same_end(entry.lines, after)
                after = entry.lines
            base, share = self._base(entry, index, ranks[speaker])
            ranks[speaker] += 1
            if room[share] <= 0 if share in room else seen > horizon:
                continue
            if share == "user":
                room["user"] -= entry.lines_weight
            seen += min(budget, entry.lines_weight)
            decay = USER_DECAY * scale if share == "user" else LINE_DECAY
            found += self._lines(index, base - decay * at, share)
            self._covered |= entry.names
        return found

    def _base(self, entry: Entry, index: int, rank: int) -> tuple[float, str]:
        """The base score of the entry's lines, and the share that they count towards."""
        if entry.speaker == "user":
            return (NEWEST_USER, "") if rank == 0 else (USER, "user")
        if entry.speaker == "agent":
            return (AGENT_NEWEST if rank == 0 else AGENT_OLDER, "agent")
        end = self.end(index)
        if end <= SMALL_OUTPUT:
            weight = entry.lines_weight if end == entry.height else sum(entry.costs[:end])
            if weight <= SMALL_OUTPUT:
                return CALL, "call"
        return (NEWEST, "newest") if rank == 0 else (OLDER + RECENT / rank, "")

    def _lines(self, index: int, base: float, share: str) -> list[Piece]:
        entry = self._entries[index]
        gains, related = self._gains(entry)
        base += min(MOST_RELATED, RELATED * related) + (FAILED if entry.failed else 0)
        fresh = self._fresh(entry)
        bonus, repeated, less = self._bonus(entry), self._repeated, LATER[share]
        # Of a large older output, only lines that say something new or related are looked at.
        skims = share == "" and entry.speaker == "call" and entry.height > LARGE_OUTPUT
        end, found = self.end(index), list[Piece]()
        texts, costs, parents = entry.texts, entry.costs, entry.parents
        choices: Sequence[int] = entry.choices
        if skims:
            choices = [at for at in choices if fresh[at] or gains.get(at, 0) >= HOT]
        for at in choices:
            if at >= end:
                break
            news, gain = fresh[at], gains.get(at, 0)
            worth = (
                base + gain + FRESH * (news if news < MOST_FRESH else MOST_FRESH) - LENGTH * ((cost := costs[at]) & -8)
            )
            if (text := texts[at]) in repeated:
                worth -= REPEATED
            else:
                repeated.add(text)
            if bonus:
                worth += bonus.get(at, 0)
            found.append((worth, worth - less, index, at, cost, share, parents[at]))
        if skims:
            self._skims.append((index, base, frozenset([piece[3] for piece in found])))
        return found

    def skipped(self) -> list[Piece]:
        """The lines that `pieces` left out of large older outputs, of the newest output first."""
        found: list[Piece] = []
        for index, base, looked_at in self._skims:
            entry, end = self._entries[index], self.end(index)
            rest = [at for at in entry.choices if at < end and at not in looked_at]
            found += [(base, base, index, at, entry.costs[at], "", entry.parents[at]) for at in rest]
        return found

    def _gains(self, entry: Entry) -> tuple[dict[int, int], int]:
        """By line, the scores of its words; and how many words of the topic the entry has."""
        scores, first, later = self._scores, entry.index.first, entry.index.later
        hits = first.keys() & scores.keys()
        gains: dict[int, int] = {}
        for word in hits:
            score, at = scores[word], first[word]
            gains[at] = gains.get(at, 0) + score
            for at in later.get(word, ()):
                gains[at] = gains.get(at, 0) + score
        return gains, len(hits & self._hot)

    def _fresh(self, entry: Entry) -> Sequence[int]:
        """By line, the number of identifiers that neither an earlier line nor a newer entry contains."""
        first, _, names, fresh = entry.index
        if stale := names & self._covered:
            fresh = fresh.copy()
            for name in stale:
                fresh[first[name]] -= 1
        return fresh

    def _bonus(self, entry: Entry) -> dict[int, int]:
        """By line: what error lines of a failed output, and lines near a number that was named, score in addition."""
        bonus: dict[int, int] = {}
        if entry.failed or entry.kind == "log":
            bonus = dict.fromkeys(entry.error_lines, ERROR)
        if entry.kind == "code" and self._numbers:
            near = self._near
            bonus |= {at: near[number] for at, number in entry.line_numbers if number in near}
        return bonus

    @cached
    def _near(self) -> dict[int, int]:
        """What a line with this number scores, because it is near a number that was named."""
        near: dict[int, int] = {}
        for distance in range(NEAR // NEAR_DECAY, -1, -1):
            score = NEAR - NEAR_DECAY * distance
            for number in self._numbers:
                near[number - distance] = near[number + distance] = score
        return near


def _shared(entry: Entry, words: frozenset[str]) -> frozenset[str]:
    """The words that the call or its output has."""
    return (words & entry.vocabulary) | (words & entry.words)


def _same_end(lines: Sequence[str], others: Sequence[str]) -> int:
    """The number of last lines that are the same."""
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
