"""The account: evidence as a short chronological text within a token budget.

Every item names its speaker or call, and its event (`#12`). The last line counts what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from remora.context.evidence._memory import Evidence
from remora.context.evidence._task import task_text
from remora.context.evidence._text import by_key, entry_lines, grouped
from remora.context.evidence._words import weigh
from remora.context.evidence._worth import Judge, Piece, goal_words

Count = Callable[[str], int]
"""Counts the tokens of a text."""

TASK_SHARE = 0.3
SHARES = {"newest": 0.3, "call": 0.6, "user": 0.2, "agent": 0.08}
"""Limits in the first pass, as shares of the tokens beside the task, so that every kind gets some."""
FIRST_FILL = 0.8
"""The share of those tokens for the first pass. Identifiers of hidden outputs may use the rest."""
LEDGER_SHARE = 0.06
NOTES = 30
"""Tokens for labels and for the line that counts what was left out."""
SAMPLE = 1_200
"""Characters of the sample that calibrates the token estimate."""
TRIES = 4
KNOWN_TRIES = 6
"""Entries whose identifiers do not fit, after which no more are tried."""
FULL = 0.95
"""An account that uses this share of the budget is good enough: no further attempt."""


@dataclass(frozen=True)
class Account:
    """A text within its budget, and the number of parts left out, by kind."""

    text: str
    tokens: int
    left_out: Mapping[str, int]


def write_account(goal: str, evidence: Evidence, budget: int, count: Count) -> Account:
    """Write the account of a run, at most `budget` tokens by `count`.

    Selects lines by estimated tokens, counts the text, and corrects the target for the next attempt.
    """
    writer = _Writer(goal, evidence, budget)
    sample = writer.sample()
    target, best = budget * min(1.3, max(0.4, 0.97 * weigh(sample) / max(1, count(sample)))), None
    for _ in range(TRIES):
        text, left_out = writer.write(target)
        tokens = count(text)
        if tokens > budget:
            target *= 0.98 * budget / tokens
            if best is None:
                continue
            break
        if best is None or tokens > best.tokens:
            best = Account(text, tokens, left_out)
        if not left_out or tokens >= budget * FULL:
            break
        target *= min(1.6, 0.985 * budget / max(1, tokens))
    return best or _cut(text, budget, count, left_out)


def _cut(text: str, budget: int, count: Count, left_out: Mapping[str, int]) -> Account:
    """Cut the beginning of the text until the rest fits."""
    while (tokens := count(text)) > budget and text:
        text = text[len(text) - min(len(text) - 1, int(len(text) * 0.9 * budget / tokens)) :]
    return Account(text, tokens, left_out)


class _Writer:
    """Writes the account of one state of the evidence, for any number of tokens."""

    def __init__(self, goal: str, evidence: Evidence, budget: int) -> None:
        self._goal = goal.strip()
        self._evidence = evidence
        self._entries = evidence.entries
        judge = Judge(self._entries, goal_words(self._goal))
        self._first = sorted(judge.pieces(budget), key=attrgetter("worth"), reverse=True)
        self._later = sorted(self._first, key=attrgetter("later"), reverse=True)
        self._ends = judge.ends
        self._lines = sum([entry.height + entry.omitted for entry in self._entries])
        """The number of lines of all entries."""

    def sample(self) -> str:
        """Part of the text, to calibrate the token estimate."""
        newest = [line.text for entry in self._entries[-3:] for line in (*entry.view[:6], *entry.view[-6:])]
        return "\n".join([self._goal[:300], *(entry.said for entry in self._entries[-3:]), *newest])[:SAMPLE]

    def write(self, target: float) -> tuple[str, Mapping[str, int]]:
        """Write the account for about `target` tokens. Returns it with the counts of what was left out."""
        task, weight = task_text(self._goal, target * TASK_SHARE, self._used)
        room = target - weight - NOTES
        chosen: dict[int, set[int]] = {}
        left = self._choose(
            self._first, chosen, room * FIRST_FILL, {name: room * part for name, part in SHARES.items()}
        )
        shown = self._shown(chosen)
        ledger, left = self._ledger_line(room * LEDGER_SHARE, left + room * (1 - FIRST_FILL), shown)
        known, left = self._known(chosen, left, shown)
        self._choose(self._later, chosen, left, {})
        return self._text(task, chosen, known, ledger)

    @cached_property
    def _used(self) -> frozenset[str]:
        calls = [entry.words for entry in self._entries if entry.speaker == "call"]
        return frozenset[str]().union(*calls[-12:])

    def _choose(
        self, pieces: Iterable[Piece], chosen: dict[int, set[int]], left: float, limits: Mapping[str, float]
    ) -> float:
        """Add the pieces that fit, most valuable first, each kind within its limit. Returns the tokens left."""
        rest = dict(limits)
        for piece in pieces:
            _, _, index, line, cost, share = piece
            if cost > left:
                if left < 4:
                    break
                continue
            shown = chosen.get(index)
            around: Sequence[int] = ()
            if shown is None or line not in shown:
                around = self._around(index, line, shown or ())
                cost += sum([self._cost(index, at) for at in around])
            else:
                continue
            if cost > left or (share in rest and cost > rest[share]):
                continue
            if shown is None:
                shown = chosen[index] = set()
            shown.add(line)
            shown.update(around)
            left -= cost
            if share in rest:
                rest[share] -= cost
        return left

    def _around(self, index: int, line: int, shown: Collection[int]) -> list[int]:
        """Lines that a line requires: the head of its entry and its parent lines."""
        needed: list[int] = []
        if line >= 0:
            view = self._entries[index].view
            at = view[line].parent
            while at not in shown:
                needed.append(at)
                if at < 0:
                    break
                at = view[at].parent
        return needed

    def _cost(self, index: int, at: int) -> int:
        entry = self._entries[index]
        return entry.weight if at < 0 else entry.view[at].weight

    def _known(self, chosen: dict[int, set[int]], left: float, shown: set[str]) -> tuple[dict[int, str], float]:
        """Identifiers that are not shown yet, by entry, newest outputs first."""
        found: dict[int, str] = {}
        tries = KNOWN_TRIES
        for index in range(len(self._entries) - 1, -1, -1):
            entry = self._entries[index]
            if left < 8 or not tries:
                break
            new = [(key, value) for key, value, words in entry.known if not words <= shown]
            if not new:
                continue
            text = by_key(new)
            cost = weigh(text) + 2 + (0 if -1 in chosen.get(index, ()) else entry.weight)
            if cost > left:
                tries -= 1
                continue
            found[index] = text
            chosen.setdefault(index, set()).add(-1)
            shown.update(*(words for _, _, words in entry.known))
            left -= cost
        return found, left

    def _shown(self, chosen: Mapping[int, set[int]]) -> set[str]:
        shown: set[str] = set()
        for index, lines in chosen.items():
            entry = self._entries[index]
            view = entry.view
            shown |= entry.words
            shown.update(*[view[at].words for at in lines if at >= 0])
        return shown

    def _ledger_line(self, room: float, left: float, shown: set[str]) -> tuple[str, float]:
        """Identifiers of outputs that were dropped: those that calls used first, then the newest."""
        if not self._evidence.ledger or room < 8:
            return "", left
        pairs: list[tuple[str, str]] = []
        for used in (True, False):
            for item in reversed(self._evidence.ledger):
                if item.used is not used or item.value.lower() in shown:
                    continue
                cost = weigh(item.value) + 5
                if cost > room:
                    break
                room -= cost
                left -= cost
                pairs.append((item.key, f"{item.value} #{item.seq}"))
        return (f"Earlier: {by_key(pairs)}" if pairs else ""), left

    def _text(
        self, task: str, chosen: Mapping[int, set[int]], known: Mapping[int, str], ledger: str
    ) -> tuple[str, Mapping[str, int]]:
        parts = [*([f"Task: {task}"] if task else []), *([ledger] if ledger else [])]
        hidden = self._lines
        for index in sorted(chosen):
            entry = self._entries[index]
            lines, gone = entry_lines(entry, chosen[index], self._ends[index], known.get(index, ""))
            hidden -= entry.height - gone
            parts += lines
        items = len(self._entries) - len(chosen) + self._evidence.dropped
        counts = {"items": items, "lines": hidden, "task": int(task != self._goal)}
        left_out = {name: number for name, number in counts.items() if number}
        return "\n".join([*grouped(parts), *_note(left_out)]), left_out


def _note(left_out: Mapping[str, int]) -> list[str]:
    told = [f"{left_out[name]} {name}" for name in ("items", "lines") if name in left_out]
    told += ["part of the task"] if "task" in left_out else []
    return [f"[Left out: {', '.join(told)}; `recall` brings them back]"] if told else []
