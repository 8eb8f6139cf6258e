"""The account: evidence as a short chronological text within a token budget.

Every item names its speaker or call, and its event (`#12`). The last line counts what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from remora.context.evidence._cached import cached
from remora.context.evidence._chat import CALL_OVERHEAD, RESULT_OVERHEAD, Message, chat_messages, chat_tokens
from remora.context.evidence._identifiers import by_key
from remora.context.evidence._memory import Evidence
from remora.context.evidence._task import task_text
from remora.context.evidence._text import Shown, entry_lines, grouped, show
from remora.context.evidence._words import weigh
from remora.context.evidence._worth import NO_PARENT, Judge, Piece, goal_words

Count = Callable[[str], int]
"""Counts the tokens of a text."""

TASK_SHARE = 0.3
SHARES = {"newest": 0.3, "call": 0.6, "user": 0.2, "agent": 0.08}
"""Limits in the first pass, as shares of the tokens beside the task, so that every kind gets some."""
FIRST_FILL = 0.68
"""The share of those tokens for the first pass. Identifiers of hidden outputs may use the rest."""
LEDGER_SHARE = 0.06
NOTES = 30
"""Tokens for labels and for the line that counts what was left out."""
SAMPLE = 1_200
"""Characters of the sample that calibrates the token estimate."""
TRIES = 4
GAP_COST = 1
"""Estimated tokens of a gap between lines."""
KNOWN_TRIES = 4
"""Entries whose identifiers do not fit, after which no more are tried."""
FULL = 0.93
"""An account that uses this share of the budget is good enough: no further attempt."""


NATIVE = 4
"""The newest entries that a chat shows as messages: this many. Older ones are lines of its first message."""
OLDER = "Before that, oldest first. `#n` is an event's number. Indented lines are tools' outputs."


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


@dataclass(frozen=True)
class _Draft:
    """What is shown of a run."""

    task: str
    ledger: str
    """Identifiers of outputs that were dropped, in one line."""
    parts: Sequence[Shown]
    left_out: Mapping[str, int]

    @cached
    def text(self) -> str:
        """The account as text."""
        task = [f"Task: {self.task}"] if self.task else []
        return "\n".join([*task, *self._lines(self.parts), *_note(self.left_out)])

    def messages(self, native: int, *, calls_in_text: bool) -> list[Message]:
        """The account as chat: the newest entries, at most `native` of them, as messages, older ones as lines."""
        start = max(0, len(self.parts) - native)
        older = next((at for at in range(len(self.parts), start, -1) if not _is_message(self.parts[at - 1])), start)
        opening = [*([self.task] if self.task else []), *_note(self.left_out)]
        if lines := self._lines(self.parts[:older]):
            opening += [OLDER, *lines]
        return chat_messages("\n".join(opening), self.parts[older:], calls_in_text=calls_in_text)

    def _lines(self, parts: Sequence[Shown]) -> list[str]:
        ledger = [self.ledger] if self.ledger else []
        return [*ledger, *grouped([line for part in parts for line in entry_lines(part)])]


def write_account(
    goal: str, evidence: Evidence, budget: int, count: Count, around: tuple[str, str] = ("", "")
) -> Account:
    """Write the account of a run: at most `budget` tokens by `count`, with the text before and after it."""
    budget = max(0, budget)
    room = max(0, budget - count("".join(around))) if any(around) else budget
    writer = _Writer(goal, evidence, room)
    draft, tokens = _fitting(writer, budget, room, count, lambda made: count(made.text.join(around)))
    if tokens <= budget:
        return Account(draft.text, tokens, draft.left_out)
    return _cut(draft.text, budget, count, around, draft.left_out)


def write_chat(goal: str, evidence: Evidence, budget: int, count: Count, *, calls_in_text: bool = False) -> ChatAccount:
    """Write the account as chat messages: at most `budget` tokens by `count`, those of the template included."""
    calls = min(NATIVE, len(evidence.entries))
    room = max(0, budget - calls * (CALL_OVERHEAD + RESULT_OVERHEAD) // 2)

    def messages(draft: _Draft) -> list[Message]:
        return draft.messages(NATIVE, calls_in_text=calls_in_text)

    writer = _Writer(goal, evidence, room)
    draft, tokens = _fitting(writer, budget, room, count, lambda made: chat_tokens(messages(made), count))
    if tokens <= budget:
        return ChatAccount(tuple(messages(draft)), tokens, draft.left_out)
    short = write_account(goal, evidence, budget, count)
    return ChatAccount(({"role": "user", "content": short.text},), short.tokens, short.left_out)


def _fitting(
    writer: _Writer, budget: int, room: int, count: Count, measure: Callable[[_Draft], int]
) -> tuple[_Draft, int]:
    """The draft that uses most of the budget; one that is over it if none fits.

    Selects lines by estimated tokens, counts the text, and corrects the target for the next attempt.
    """
    sample = writer.sample()
    target = room * min(1.3, max(0.4, 0.97 * weigh(sample) / max(1, count(sample))))
    best: tuple[_Draft, int] | None = None
    for _ in range(TRIES):
        draft = writer.write(target)
        tokens = measure(draft)
        if tokens > budget:
            target *= 0.98 * room / max(1, room + tokens - budget)
            if best is None:
                continue
            break
        if best is None or tokens > best[1]:
            best = draft, tokens
        unused = budget - tokens
        if not draft.left_out or unused <= room * (1 - FULL):
            break
        target *= min(1.6, 0.985 * room / max(1, room - unused))
    return best or (draft, tokens)


def _cut(text: str, budget: int, count: Count, around: tuple[str, str], left_out: Mapping[str, int]) -> Account:
    """Cut the beginning of the text until the rest fits."""
    while (tokens := count(text.join(around))) > budget and text:
        text = text[len(text) - min(len(text) - 1, int(len(text) * 0.9 * budget / tokens)) :]
    return Account(text, tokens, left_out)


class _Writer:
    """Writes the account of one state of the evidence, for any number of tokens."""

    def __init__(self, goal: str, evidence: Evidence, budget: int) -> None:
        self._goal = goal.strip()
        self._evidence = evidence
        self._entries = evidence.entries
        judge = Judge(self._entries, goal_words(self._goal))
        self._first = sorted(judge.pieces(budget), key=itemgetter(0), reverse=True)
        self._later = sorted(self._first, key=itemgetter(1), reverse=True)
        self._ends = judge.ends
        self._lines = sum([entry.height + entry.omitted for entry in self._entries])
        """The number of lines of all entries."""

    def sample(self) -> str:
        """The most valuable lines, to calibrate the token estimate."""
        texts, size = [self._goal[:300]], SAMPLE
        for _, _, index, line, _, _, _ in self._first:
            entry = self._entries[index]
            texts.append(entry.text if line < 0 else entry.texts[line])
            size -= len(texts[-1])
            if size <= 0:
                break
        return "\n".join(texts)[:SAMPLE]

    def write(self, target: float) -> _Draft:
        """What an account of about `target` tokens shows."""
        task, weight = task_text(self._goal, target * TASK_SHARE, self._used)
        room = target - weight - NOTES
        chosen: dict[int, set[int]] = {}
        left = self._choose(
            self._first, chosen, room * FIRST_FILL, {name: room * part for name, part in SHARES.items()}
        )
        shown = self._shown(chosen)
        left += room * (1 - FIRST_FILL) - GAP_COST * _gaps(chosen)
        ledger, left = self._ledger_line(room * LEDGER_SHARE, left, shown)
        known, left = self._known(chosen, left, shown)
        self._choose(self._later, chosen, left, {})
        return self._draft(task, chosen, self._still_hidden(known, chosen), ledger)

    @cached
    def _used(self) -> frozenset[str]:
        calls = [entry.words for entry in self._entries if entry.speaker == "call"]
        return frozenset[str]().union(*calls[-12:])

    def _choose(
        self, pieces: Iterable[Piece], chosen: dict[int, set[int]], left: float, limits: Mapping[str, float]
    ) -> float:
        """Add the pieces that fit, most valuable first, each kind within its limit. Returns the tokens left."""
        rest = dict(limits)
        for _, _, index, line, cost, share, parent in pieces:
            if cost > left:
                if left < 4:
                    break
                continue
            shown = chosen.get(index)
            if shown is not None and line in shown:
                continue
            around: Sequence[int] = ()
            if parent != NO_PARENT and (shown is None or parent not in shown):
                around = self._around(index, parent, shown or ())
                cost += sum([self._cost(index, at) for at in around])
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
        for index in self._identified:
            entry = self._entries[index]
            if left < 8 or not tries:
                break
            if entry.known_words <= shown:
                continue
            new = [(key, value) for key, value, words in entry.known if not words <= shown]
            weight = entry.known_weight if len(new) == len(entry.known) else weigh(by_key(new))
            cost = weight + 2 + (0 if -1 in chosen.get(index, ()) else entry.weight)
            if cost > left:
                tries -= 1
                continue
            found.append(index)
            chosen.setdefault(index, set()).add(-1)
            shown |= entry.known_words
            left -= cost
        return found, left

    @cached
    def _identified(self) -> list[int]:
        """The entries that have identifiers, newest first."""
        return [index for index in range(len(self._entries) - 1, -1, -1) if self._entries[index].identifiers]

    def _still_hidden(self, known: Iterable[int], chosen: Mapping[int, set[int]]) -> dict[int, str]:
        """The identifiers of these entries that no chosen line shows, by entry, each once."""
        shown = self._shown(chosen)
        found: dict[int, str] = {}
        for index in known:
            new = [(key, value) for key, value, words in self._entries[index].known if not words <= shown]
            shown |= self._entries[index].known_words
            if new:
                found[index] = by_key(new)
        return found

    def _shown(self, chosen: Mapping[int, set[int]]) -> set[str]:
        shown: set[str] = set()
        for index, lines in chosen.items():
            entry = self._entries[index]
            words = entry.lexed.words
            shown |= entry.words
            shown.update(*[words[at] for at in lines if at >= 0])
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

    def _draft(self, task: str, chosen: Mapping[int, set[int]], known: Mapping[int, str], ledger: str) -> _Draft:
        parts = [
            show(self._entries[index], chosen[index], self._ends[index], known.get(index, ""))
            for index in sorted(chosen)
        ]
        hidden = self._lines - sum(part.entry.height - part.gone for part in parts)
        items = len(self._entries) - len(chosen) + self._evidence.dropped
        counts = {"items": items, "lines": hidden, "task": int(task != self._goal)}
        return _Draft(task, ledger, parts, {name: number for name, number in counts.items() if number})


def _is_message(part: Shown) -> bool:
    """Whether the entry can be written as messages: streams of earlier versions lack the arguments of calls."""
    return part.entry.speaker != "call" or part.entry.made is not None


def _gaps(chosen: Mapping[int, set[int]]) -> int:
    """The number of gaps before, between and after the chosen lines, about."""
    return sum(1 for lines in chosen.values() for at in lines if at + 1 not in lines)


def _note(left_out: Mapping[str, int]) -> list[str]:
    told = [f"{left_out[name]} {name}" for name in ("items", "lines") if name in left_out]
    told += ["part of the task"] if "task" in left_out else []
    return [f"[Left out: {', '.join(told)}; `recall` brings them back]"] if told else []
