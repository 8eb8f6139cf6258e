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
from math import fsum

from remora.context.evidence._cached import cached
from remora.context.evidence._entries import LINE_NUMBER, Entry
from remora.context.evidence._words import words_of

HORIZON = 2.5
"""Outputs beyond this many budgets of text are not scored; only their calls and identifiers are shown."""
MANY = 30
"""The newest entries whose words define the topic of the run: this many."""
LARGE_OUTPUT = 40
"""Lines of a large output."""
SMALL_OUTPUT = 16
"""An output of at most this many estimated tokens is scored like its call."""

CALL, USER, NEWEST, OLDER, AGENT_NEWEST, AGENT_OLDER = 80.0, 60.0, 60.0, 45.0, 65.0, 9.0
"""Base scores of lines."""
NEWEST_USER = 90.0
CALL_DECAY, USER_DECAY, LINE_DECAY = 6.0, 6.0, 0.8
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
        calls = [entry for entry in entries if entry.speaker == "call"][-MANY:]
        said = [entry for entry in entries[-MANY:] if entry.speaker != "call"]
        hot = frozenset[str]().union(*(entry.words for entry in (*said[-2:], *calls[-2:])))
        spread = Counter(chain.from_iterable([entry.all_words & hot for entry in calls]))
        common = max(3, len(calls) // 3)
        self._hot = frozenset([word for word in hot if spread[word] <= common])
        self._scores = self._word_scores(goal, said)
        texts = " ".join(entry.said for entry in (*said[-1:], *calls[-1:]))
        self._numbers = {int(number) for number in _NUMBER.findall(texts)[-NUMBERS:]}
        self._covered: set[str] = set()
        self._repeated: set[str] = set()
        self._sums: dict[frozenset[str], float] = {}
        self.ends = _ends(entries)
        """For each entry, the end of its lines without a tail that the next output repeats, such as a shell prompt."""

    def _word_scores(self, goal: frozenset[str], said: Sequence[Entry]) -> dict[str, float]:
        warm = goal.union(*(entry.words for entry in self._entries[-MANY:] if entry.speaker != "agent"))
        scores = dict.fromkeys(warm, WARM)
        for word in self._hot:
            scores[word] = scores.get(word, 0.0) + HOT
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
        for index in range(len(self._entries) - 1, -1, -1):
            entry = self._entries[index]
            speaker = entry.speaker
            at = age
            if seen > horizon and room["call"] <= 0 and (room["user"] <= 0 or ranks["user"] == people):
                break
            if speaker == "call":
                age += 1
                worth = CALL - CALL_DECAY * scale * at
                if room["call"] > 0:
                    room["call"] -= entry.weight
                    found.append((worth, worth - LATER["call"], index, -1, entry.weight, "call", NO_PARENT))
            if not entry.height:
                continue
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
        end = self.ends[index]
        if end <= SMALL_OUTPUT and sum(entry.costs[:end]) <= SMALL_OUTPUT:
            return CALL, "call"
        return (NEWEST, "newest") if rank == 0 else (OLDER + RECENT / rank, "")

    def _lines(self, index: int, base: float, share: str) -> list[Piece]:
        entry, scores = self._entries[index], self._scores
        hits = entry.all_words & scores.keys()
        related = hits & self._hot
        base += min(MOST_RELATED, RELATED * len(related)) + (FAILED if entry.failed else 0)
        less = LATER[share]
        stale = entry.names & self._covered
        repeated, sums = self._repeated, self._sums
        bonus = self._bonus(entry)
        # Of a large older output, only lines that say something new or related are looked at.
        skims = share == "" and entry.speaker == "call" and entry.height > LARGE_OUTPUT
        # In messages and short outputs, lines without words, such as `ok`, also count.
        shows_all = entry.speaker != "call" or share == "call"
        found: list[Piece] = []
        parents, heads = entry.parents, set(entry.parents)
        lines = zip(entry.texts[: self.ends[index]], entry.lexed.words, entry.costs, entry.fresh, strict=False)
        for at, (text, words, weight, fresh) in enumerate(lines):
            if at in heads or not (words or (shows_all and text.strip())):
                continue
            if stale and fresh:
                fresh = fresh - stale
            if skims and not fresh and related.isdisjoint(words):
                continue
            worth = base - LENGTH * weight
            if shared := words & hits:
                if (gain := sums.get(shared)) is None:
                    # `fsum` gives the same sum in every order. The order of a set differs between processes.
                    gain = sums[shared] = fsum([scores[word] for word in shared])
                worth += gain
            if fresh:
                worth += FRESH * min(MOST_FRESH, len(fresh))
            if text in repeated:
                worth -= REPEATED
            else:
                repeated.add(text)
            if bonus:
                worth += bonus.get(at, 0.0)
            found.append((worth, worth - less, index, at, weight, share, parents[at]))
        return found

    def _bonus(self, entry: Entry) -> dict[int, float]:
        """By line: what error lines of a failed output, and lines near a number that was named, score in addition."""
        bonus: dict[int, float] = {}
        if entry.failed:
            bonus = {at: ERROR for at, text in enumerate(entry.texts) if is_error_line(text)}
        if entry.kind == "code" and self._numbers:
            near = self._near
            bonus |= {at: near[number] for at, number in entry.line_numbers if number in near}
        return bonus

    @cached
    def _near(self) -> dict[int, float]:
        """What a line with this number scores, because it is near a number that was named."""
        near: dict[int, float] = {}
        for distance in range(int(NEAR / NEAR_DECAY), -1, -1):
            score = NEAR - NEAR_DECAY * distance
            for number in self._numbers:
                near[number - distance] = near[number + distance] = score
        return near


def is_error_line(text: str) -> bool:
    """Whether a line of a failed output reports an error. A numbered line is code."""
    return _ERROR.search(text) is not None and not LINE_NUMBER.match(text)


def _ends(entries: Sequence[Entry]) -> list[int]:
    """For each entry, the end of its lines without a tail that the next output repeats."""
    ends = [entry.height for entry in entries]
    after: Sequence[str] = ()
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if ends[index] and entry.speaker == "call":
            ends[index] -= _same_end(entry.lines, after)
            after = entry.lines
    return ends


def _same_end(lines: Sequence[str], others: Sequence[str]) -> int:
    if not lines or not others or lines[-1] != others[-1]:
        return 0
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
