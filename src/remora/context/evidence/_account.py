"""The account: evidence as a short text in the order of time, within a number of tokens.

Every item says who spoke or which call gave it, and from which event (`#12`). What does not fit is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from remora.context.evidence._memory import Evidence
from remora.context.evidence._task import task_text
from remora.context.evidence._text import by_key, entry_lines, grouped
from remora.context.evidence._words import weigh
from remora.context.evidence._worth import Piece, ends_of, goal_words, pieces_of

Count = Callable[[str], int]
"""How many tokens a text takes."""

TASK_SHARE = 0.3
SHARES = {"newest": 0.3, "call": 0.6, "user": 0.2, "agent": 0.08}
"""Of the room beside the task, at most, until all kinds had their turn."""
FIRST_FILL = 0.8
"""Of that room, before identifiers of what is not shown get theirs."""
LEDGER_SHARE = 0.06
NOTES = 30
"""Tokens for labels and for the line on what was left out."""
SAMPLE = 1_200
"""Characters that are counted first."""
TRIES = 4
FULL = 0.95
"""Of the budget: an account that takes so much is not tried again."""


@dataclass(frozen=True)
class Account:
    """A text within its budget, and how much of what was left out."""

    text: str
    tokens: int
    left_out: Mapping[str, int]


def write_account(goal: str, evidence: Evidence, budget: int, count: Count) -> Account:
    """The account of a run, at most `budget` tokens by `count`.

    Lines are chosen by an estimate of their tokens; the text is then counted, and chosen anew by how far it was off.
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
    """The end of the text that fits, whatever it takes."""
    while (tokens := count(text)) > budget and text:
        text = text[len(text) - min(len(text) - 1, int(len(text) * 0.9 * budget / tokens)) :]
    return Account(text, tokens, left_out)


class _Writer:
    """Writes the account of one state, for any number of tokens."""

    def __init__(self, goal: str, evidence: Evidence, budget: int) -> None:
        self._goal = goal.strip()
        self._evidence = evidence
        self._entries = evidence.entries
        self._budget = budget
        self._ends = ends_of(self._entries)

    def sample(self) -> str:
        """Some of the text, to see how far the estimate of its tokens is off."""
        newest = [line.text for entry in self._entries[-3:] for line in (*entry.view[:6], *entry.view[-6:])]
        return "\n".join([self._goal[:300], *(entry.said for entry in self._entries[-3:]), *newest])[:SAMPLE]

    def write(self, target: float) -> tuple[str, Mapping[str, int]]:
        """The account for about `target` tokens, and what was left out."""
        task, weight = task_text(self._goal, target * TASK_SHARE, self._used)
        room = target - weight - NOTES
        chosen: list[set[int]] = [set() for _ in self._entries]
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

    @cached_property
    def _first(self) -> list[Piece]:
        pieces = pieces_of(self._entries, self._ends, goal_words(self._goal), self._budget)
        return sorted(pieces, reverse=True)

    @cached_property
    def _later(self) -> list[Piece]:
        return sorted(self._first, key=lambda piece: piece.later, reverse=True)

    def _choose(
        self, pieces: Iterable[Piece], chosen: list[set[int]], left: float, limits: Mapping[str, float]
    ) -> float:
        """Add the pieces of most worth that fit, each kind within its limit. Gives what is left."""
        spent: dict[str, float] = dict.fromkeys(limits, 0.0)
        for piece in pieces:
            cost = piece.cost
            if cost > left:
                if left < 4:
                    break
                continue
            shown = chosen[piece.entry]
            if piece.line in shown:
                continue
            around = self._around(piece, shown)
            cost += sum(self._cost(piece.entry, at) for at in around)
            share = piece.share
            if cost > left or (share in spent and spent[share] + cost > limits[share]):
                continue
            shown.add(piece.line)
            shown.update(around)
            left -= cost
            if share in spent:
                spent[share] += cost
        return left

    def _around(self, piece: Piece, shown: set[int]) -> list[int]:
        """What a piece cannot stand without: its entry's head, and the lines it belongs to."""
        needed: list[int] = []
        if piece.line >= 0:
            view = self._entries[piece.entry].view
            at = view[piece.line].parent
            while at not in shown:
                needed.append(at)
                if at < 0:
                    break
                at = view[at].parent
        return needed

    def _cost(self, index: int, at: int) -> int:
        entry = self._entries[index]
        return entry.weight if at < 0 else entry.view[at].weight

    def _known(self, chosen: list[set[int]], left: float, shown: set[str]) -> tuple[dict[int, str], float]:
        """By entry, identifiers that are not shown yet, newest outputs first."""
        found: dict[int, str] = {}
        for index in range(len(self._entries) - 1, -1, -1):
            if left < 8:
                break
            entry = self._entries[index]
            new = [pair for pair in entry.identifiers if pair[1].lower() not in shown]
            if not new:
                continue
            text = by_key(new)
            cost = weigh(text) + 2 + (0 if -1 in chosen[index] else entry.weight)
            if cost <= left:
                found[index] = text
                chosen[index].add(-1)
                shown.update(value.lower() for _, value in new)
                left -= cost
        return found, left

    def _shown(self, chosen: list[set[int]]) -> set[str]:
        shown: set[str] = set()
        for entry, lines in zip(self._entries, chosen, strict=True):
            if lines:
                shown |= entry.words
                shown.update(*(entry.view[at].words for at in lines if at >= 0))
        return shown

    def _ledger_line(self, room: float, left: float, shown: set[str]) -> tuple[str, float]:
        """Identifiers of outputs that are gone: those that calls have named first, then the newest."""
        if not self._evidence.ledger or room < 8:
            return "", left
        items = [item for item in reversed(self._evidence.ledger) if item.value.lower() not in shown]
        items.sort(key=lambda item: not item.used)
        pairs: list[tuple[str, str]] = []
        for item in items:
            cost = weigh(item.value) + 5
            if cost > room:
                break
            room -= cost
            left -= cost
            pairs.append((item.key, f"{item.value} #{item.seq}"))
        return (f"Earlier: {by_key(pairs)}" if pairs else ""), left

    def _text(
        self, task: str, chosen: Sequence[set[int]], known: Mapping[int, str], ledger: str
    ) -> tuple[str, Mapping[str, int]]:
        parts = [*([f"Task: {task}"] if task else []), *([ledger] if ledger else [])]
        hidden = Counter[str]()
        for index, entry in enumerate(self._entries):
            if not chosen[index]:
                hidden["items"] += 1
                hidden["lines"] += len(entry.view) + entry.omitted
                continue
            lines, gone = entry_lines(entry, chosen[index], self._ends[index], known.get(index, ""))
            hidden["lines"] += gone + entry.omitted
            parts += lines
        hidden["items"] += self._evidence.dropped
        hidden["task"] = int(task != self._goal)
        left_out = {name: number for name, number in hidden.items() if number}
        return "\n".join([*grouped(parts), *_note(left_out)]), left_out


def _note(left_out: Mapping[str, int]) -> list[str]:
    told = [f"{left_out[name]} {name}" for name in ("items", "lines") if name in left_out]
    told += ["part of the task"] if "task" in left_out else []
    return [f"[Left out: {', '.join(told)}; `recall` brings them back]"] if told else []
