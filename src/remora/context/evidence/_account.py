"""The account: evidence as a short chronological text within a token budget.

Every item names its speaker or call, and its event (`#12`). The last line counts what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from remora.context.evidence._cached import cached
from remora.context.evidence._chat import (
    CALL_OVERHEAD,
    MESSAGE_OVERHEAD,
    RESULT_OVERHEAD,
    Message,
    chat_tokens,
)
from remora.context.evidence._draft import NATIVE, OLDER, Draft
from remora.context.evidence._entries import Entry
from remora.context.evidence._identifiers import by_key
from remora.context.evidence._memory import Evidence
from remora.context.evidence._task import task_text
from remora.context.evidence._text import show
from remora.context.evidence._words import weigh
from remora.context.evidence._worth import NO_PARENT, Judge, Piece, goal_words

Count = Callable[[str], int]
"""Counts the tokens of a text."""

TASK_SHARE = 0.27
SHARES = {"newest": 0.3, "call": 0.6, "user": 0.2, "agent": 0.05}
"""Limits in the first pass, as shares of the tokens beside the task, so that every kind gets some."""
FIRST_FILL = 0.68
"""The share of those tokens for the first pass. Identifiers of hidden outputs may use the rest."""
USED_CALLS = 12
"""The newest calls whose words decide which lines of a long task are shown: this many."""
LEDGER_SHARE = 0.03
NOTES = 30
"""Tokens for labels and for the line that counts what was left out."""
SAMPLE = 1_200
"""Characters of the sample that calibrates the token estimate."""
SAMPLE_LINES = 20
"""Lines of each entry in a sample for which too few lines are valuable."""
TRIES = 4
GAP_COST = 1
"""Estimated tokens of a gap between lines."""
MISSES = 24
"""Lines that do not fit, after which no more are tried: those that follow are worth less."""
LEAST_ADDED = 16
"""Tokens for which it is worth while to look at lines that were skipped."""
KNOWN_TRIES = 4
"""Entries whose identifiers do not fit, after which no more are tried."""
AIM = 0.975
"""The share of the budget that the first selection aims at."""
FULL = 0.95
"""An account that uses this share of the budget is good enough: no further attempt."""
SAFELY = 1.05
"""A correction takes back this much more than was estimated, and adds as much less."""
LEAST_ESTIMATED, MOST_ESTIMATED = 0.4, 1.6
"""Bounds of estimated tokens for each counted one."""


CALL_AS_JSON = 12
"""Tokens that a call takes more as JSON than as a line."""


@dataclass(frozen=True)
class Account:
    """A text within its budget, and the number of parts left out, by kind."""

    text: str
    tokens: int
    """Counted with the text around it, if there is any."""
    left_out: Mapping[str, int]


@dataclass(frozen=True)
class ChatAccount:
    """Chat messages within their budget, and the number of parts left out, by kind."""

    messages: tuple[Message, ...]
    tokens: int
    left_out: Mapping[str, int]


def write_account(
    goal: str,
    evidence: Evidence,
    budget: int,
    count: Count,
    around: tuple[str, str] = ("", ""),
    *,
    recalls: bool = True,
) -> Account:
    """Write the account of a run: at most `budget` tokens by `count`, with the text before and after it.

    `recalls`: the reader can call `recall`.
    """
    budget = max(0, budget)
    room = max(0, budget - count("".join(around))) if any(around) else budget
    writer = _Writer(goal, evidence, room, recalls)
    draft, tokens = _fitting(writer, budget, room, count, lambda made: count(made.text.join(around)))
    if tokens <= budget:
        return Account(draft.text, tokens, draft.left_out)
    return _cut(draft.text, budget, count, around, draft.left_out)


def write_chat(goal: str, evidence: Evidence, budget: int, count: Count, *, calls_in_text: bool = False) -> ChatAccount:
    """Write the account as chat messages: at most `budget` tokens by `count`, those of the template included."""
    room = max(0, budget - _chat_overhead(evidence.entries))

    writer = _Writer(goal, evidence, room)
    draft, tokens = _fitting(writer, budget, room, count, lambda made: chat_tokens(made.messages(calls_in_text), count))
    if tokens <= budget:
        return ChatAccount(tuple(draft.messages(calls_in_text)), tokens, draft.left_out)
    short = write_account(goal, evidence, budget, count)
    return ChatAccount(({"role": "user", "content": short.text},), short.tokens, short.left_out)


def _chat_overhead(entries: Sequence[Entry]) -> int:
    """Tokens that a chat takes beside the lines that an account shows: of the template, and around calls."""
    calls = sum([1 for entry in entries[-NATIVE:] if entry.speaker == "call"])
    messages = min(NATIVE, len(entries)) - calls
    return (
        calls * (CALL_OVERHEAD + RESULT_OVERHEAD + CALL_AS_JSON)
        + messages * MESSAGE_OVERHEAD
        + (weigh(OLDER) if len(entries) > NATIVE else 0)
    )


def _fitting(
    writer: _Writer, budget: int, room: int, count: Count, measure: Callable[[Draft], int]
) -> tuple[Draft, int]:
    """The draft that uses most of the budget; one that is over it if none fits.

    Selects lines once, by estimated tokens. Then counts the text, and takes the least valuable lines back, or adds the
    next ones, until the text fits well.
    """
    sample = writer.sample()
    by_estimate = max(1, weigh(sample)) / max(1, count(sample))
    target = room * min(MOST_ESTIMATED, max(LEAST_ESTIMATED, AIM * by_estimate))
    draft = writer.write(target)
    best: tuple[Draft, int] | None = None
    for _ in range(TRIES):
        tokens = measure(draft)
        unused = budget - tokens
        if unused >= 0 and (best is None or tokens > best[1]):
            best = draft, tokens
        if unused >= 0 and (not draft.left_out or unused <= room * (1 - FULL)):
            break
        off = abs(unused) * by_estimate
        corrected = writer.take_back(SAFELY * off) if unused < 0 else writer.add(off / SAFELY)
        if corrected:
            draft = writer.draft()
        else:
            target *= min(1.6, 0.98 * room / max(1, room - unused))
            draft = writer.write(target)
    return best or (draft, tokens)


def _cut(text: str, budget: int, count: Count, around: tuple[str, str], left_out: Mapping[str, int]) -> Account:
    """Cut the beginning of the text until the rest fits."""
    while (tokens := count(text.join(around))) > budget and text:
        text = text[len(text) - min(len(text) - 1, int(len(text) * 0.9 * budget / tokens)) :]
    return Account(text, tokens, left_out)


class _Writer:
    """Writes the account of one state of the evidence, for any number of tokens."""

    def __init__(self, goal: str, evidence: Evidence, budget: int, recalls: bool = True) -> None:
        self._goal = goal.strip()
        self._recalls = recalls
        self._evidence = evidence
        self._entries = evidence.entries
        self._judge = Judge(self._entries, goal_words(self._goal))
        self._pieces = sorted(self._judge.pieces(budget), key=itemgetter(0), reverse=True)
        self._end = self._judge.end

    def sample(self) -> str:
        """The most valuable lines, to calibrate the token estimate."""
        texts, size = [self._goal[:300]], SAMPLE
        for _, _, index, line, _, _, _ in self._pieces:
            entry = self._entries[index]
            texts.append(entry.text if line < 0 else entry.texts[line])
            size -= len(texts[-1])
            if size <= 0:
                break
        for entry in reversed(self._entries) if size > SAMPLE // 2 else ():
            texts += entry.texts[:SAMPLE_LINES]
        return "\n".join(texts)[:SAMPLE]

    def write(self, target: float) -> Draft:
        """What an account of about `target` tokens shows."""
        self._write_task(target * TASK_SHARE)
        if self._task != self._goal and (unused := target - NOTES - self._weight(target)) > target * TASK_SHARE:
            self._write_task(unused)
        room = target - self._task_weight - NOTES
        self._chosen: dict[int, set[int]] = {}
        self._steps: list[tuple[int, Collection[int], float]] = []
        limits = {name: room * part for name, part in SHARES.items()}
        left, rest = self._choose(self._pieces, room * FIRST_FILL, limits)
        shown = self._shown(self._chosen)
        left += room * (1 - FIRST_FILL) - GAP_COST * _gaps(self._chosen)
        self._ledger, left = self._ledger_line(room * LEDGER_SHARE, left, shown)
        self._listed, left = self._known(self._chosen, left, shown)
        left, self._rest = self._choose(sorted(rest, key=itemgetter(1), reverse=True), left, {})
        self._add_skipped(left)
        return self.draft()

    def _weight(self, most: float) -> int:
        """Estimated tokens of all entries; of the newest ones if they take more than `most`."""
        weight = 0
        for entry in reversed(self._entries):
            weight += entry.weight + entry.lines_weight
            if weight > most:
                break
        return weight

    def _add_skipped(self, room: float) -> None:
        """Choose lines that were not worth a score, if all others are chosen."""
        if room >= LEAST_ADDED and not self._rest:
            _, self._rest = self._choose(self._judge.skipped(), room, {})

    def add(self, room: float) -> bool:
        """Choose more lines, or more of the task, for about `room` tokens. False if there is nothing that fits."""
        steps, task = len(self._steps), self._task
        left, self._rest = self._choose(self._rest, room, {})
        self._add_skipped(left)
        if not self._rest and len(self._steps) == steps and task != self._goal:
            self._write_task(self._task_weight + room)
        return len(self._steps) > steps or self._task != task

    def _write_task(self, room: float) -> None:
        self._task, self._task_weight = task_text(self._goal, room, lambda: self._used)

    def take_back(self, tokens: float) -> bool:
        """Take back the lines that were chosen last, of about `tokens`. False if there are not so many."""
        while tokens > 0 and self._steps:
            index, lines, cost = self._steps.pop()
            self._chosen[index].difference_update(lines)
            if not self._chosen[index]:
                del self._chosen[index]
            tokens -= cost
        return tokens <= 0

    @cached
    def _used(self) -> frozenset[str]:
        calls = [entry.words for entry in self._entries[-2 * USED_CALLS :] if entry.speaker == "call"]
        return frozenset[str]().union(*calls[-USED_CALLS:])

    def _choose(self, pieces: Sequence[Piece], left: float, limits: Mapping[str, float]) -> tuple[float, list[Piece]]:
        """Choose the pieces that fit, in order, each kind within its limit. Returns the tokens and the pieces left."""
        chosen, steps, limits = self._chosen, self._steps, dict(limits)
        rest: list[Piece] = []
        tries = MISSES
        for at, piece in enumerate(pieces):
            _, _, index, line, cost, share, parent = piece
            if left < 4 or not tries:
                rest += pieces[at:]
                break
            shown = chosen.get(index)
            if shown is not None and line in shown:
                continue
            lines: Collection[int] = (line,)
            if cost <= left and parent != NO_PARENT and (shown is None or parent not in shown):
                lines = (line, *self._around(index, parent, shown or ()))
                cost += sum([self._cost(index, at) for at in lines[1:]])
            if cost > left or cost > limits.get(share, cost):
                rest.append(piece)
                tries -= cost > left
                continue
            if shown is None:
                chosen[index] = set(lines)
            else:
                shown.update(lines)
            steps.append((index, lines, cost))
            left -= cost
            if share in limits:
                limits[share] -= cost
        return left, rest

    def _around(self, index: int, parent: int, shown: Collection[int]) -> list[int]:
        """Lines that a line requires: its parent lines and the head of its entry."""
        needed: list[int] = []
        parents = self._entries[index].parents
        at = parent
        while at not in shown:
            needed.append(at)
            if at < 0:
                break
            at = parents[at]
        return needed

    def _cost(self, index: int, at: int) -> int:
        entry = self._entries[index]
        return entry.weight if at < 0 else entry.costs[at]

    def _known(self, chosen: dict[int, set[int]], left: float, shown: set[str]) -> tuple[list[int], float]:
        """The entries whose identifiers are listed because they are not shown yet, newest first."""
        found: list[int] = []
        tries = KNOWN_TRIES
        for index in range(len(self._entries) - 1, -1, -1):
            entry = self._entries[index]
            if left < 8 or not tries:
                break
            if not entry.identifiers or entry.known_words <= shown:
                continue
            weight = entry.known_weight
            if not shown.isdisjoint(entry.known_words):
                weight = weigh(by_key(entry.hidden_identifiers(shown)))
            cost = weight + 2 + (0 if -1 in chosen.get(index, ()) else entry.weight)
            if cost > left:
                tries -= 1
                continue
            found.append(index)
            chosen.setdefault(index, set()).add(-1)
            shown |= entry.known_words
            left -= cost
        return found, left

    def _still_hidden(self, known: Sequence[int], chosen: Mapping[int, set[int]]) -> dict[int, str]:
        """The identifiers of these entries that no chosen line shows, by entry, each once."""
        found: dict[int, str] = {}
        shown = self._shown(chosen) if known else set[str]()
        for index in known:
            if index not in chosen:
                continue
            new = self._entries[index].hidden_identifiers(shown)
            shown |= self._entries[index].known_words
            if new:
                found[index] = by_key(new)
        return found

    def _shown(self, chosen: Mapping[int, set[int]]) -> set[str]:
        shown: set[str] = set()
        for index, lines in chosen.items():
            entry = self._entries[index]
            words = entry.split.words
            shown |= entry.words
            shown.update(" ".join([words[at] for at in lines if at >= 0]).split())
        return shown

    def _ledger_line(self, room: float, left: float, shown: set[str]) -> tuple[str, float]:
        """Identifiers of outputs that were dropped: those that calls used first, then the newest."""
        if not self._evidence.ledger or room < 8:
            return "", left
        pairs: list[tuple[str, str]] = []
        for items in self._evidence.by_use:
            for item in items:
                if item.value.lower() in shown:
                    continue
                cost = weigh(item.value) + 5
                if cost > room:
                    break
                room -= cost
                left -= cost
                pairs.append((item.key, f"{item.value} #{item.seq}"))
        return (f"Earlier: {by_key(pairs)}" if pairs else ""), left

    def draft(self) -> Draft:
        """What is chosen now."""
        task, chosen = self._task, self._chosen
        known = self._still_hidden(self._listed, chosen)
        parts = [
            show(self._entries[index], chosen[index], self._end(index), known.get(index, ""))
            for index in sorted(chosen)
        ]
        hidden = self._evidence.height - sum(part.entry.height - part.gone for part in parts)
        items = len(self._entries) - len(chosen) + self._evidence.dropped
        counts = {"items": items, "lines": hidden, "task": int(task != self._goal)}
        left_out = {name: hidden for name, hidden in counts.items() if hidden}
        return Draft(task, self._ledger, parts, left_out, self._recalls)


def _gaps(chosen: Mapping[int, set[int]]) -> int:
    """The number of gaps before, between and after the chosen lines, about."""
    return sum(1 for lines in chosen.values() for at in lines if at + 1 not in lines)
