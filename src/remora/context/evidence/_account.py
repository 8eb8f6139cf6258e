"""The account: evidence as a short text in the order of time, within a number of tokens.

Every item says who spoke or which call gave it, and from which event (`#12`). What does not fit is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from remora.context.evidence._memory import Entry, Evidence, Known
from remora.context.evidence._words import weigh, words_of

Count = Callable[[str], int]

TASK_SHARE = 0.3
NEWEST_SHARE = 0.3
CALLS_SHARE = 0.6
AGENT_SHARE = 0.08
WORDS_SHARE = 0.2
FIRST_FILL = 0.72
HORIZON = 5
"""Times the budget: of outputs further back, only calls and identifiers are looked at."""
TRIES = 4

P = dict(lagent=40.0, luser=20.0, lnewest=0.0, lcall=20.0, top=2.0, small=16.0, hot=1.0, warm=0.4, fresh=1.8, freshmax=4, ent=0.4, entmax=4.0, age=0.8, decay=12.0, older=45.0, agent1=65.0, agent2=9.0, rep=6.0, cost=0.1, failed=2.0, near=6.0, call=80.0, callrank=0.3)

_LINE_NUMBER = re.compile(r"\s*(\d{1,7})[:|\t ]")
_NUMBER = re.compile(r"(?<![\w.])\d{1,7}(?![\w.])")

_HIDDEN_CALL = re.compile(r"#(?P<seq>\d+) (?P<tool>[\w.-]+)\((?P<args>.*)\): …")

Place = tuple[int, int]
"""An entry and one of its lines; -1 is its head."""


@dataclass(frozen=True)
class Account:
    """The text, and how much of what was left out."""

    text: str
    tokens: int
    left_out: dict[str, int]


def write_account(goal: str, evidence: Evidence, budget: int, count: Count) -> Account:
    """The account of a run, at most `budget` tokens by `count`."""
    chooser = _Chooser(goal, evidence, budget)
    target, best = budget * 1.0, None
    for _ in range(TRIES):
        text, left_out = chooser.text(target)
        tokens = count(text)
        if tokens <= budget:
            if best is None or tokens > best.tokens:
                best = Account(text, tokens, left_out)
            if not left_out or tokens >= budget * 0.95:
                break
            target *= min(1.5, 0.98 * budget / max(1, tokens))
        else:
            target *= 0.97 * budget / tokens
            if best is not None:
                break
    return best or _cut(text, budget, count, left_out)


def _cut(text: str, budget: int, count: Count, left_out: dict[str, int]) -> Account:
    """The end of the text that fits, whatever it takes."""
    while (tokens := count(text)) > budget and text:
        text = text[-min(len(text) - 1, int(len(text) * 0.9 * budget / tokens)) :] if len(text) > 1 else ""
    return Account(text, tokens, left_out)


@dataclass(frozen=True, order=True)
class _Piece:
    """Something that may be shown: a line of an entry, or its head (`line` is -1)."""

    worth: float
    entry: int
    line: int
    share: str = ""


class _Chooser:
    """Chooses what to show of one state, for any number of tokens."""

    def __init__(self, goal: str, evidence: Evidence, budget: int) -> None:
        self._goal = goal.strip()
        self._entries = evidence.entries
        self._ledger = evidence.ledger
        self._dropped = evidence.dropped
        self._budget = budget
        self._age = _ages(self._entries)
        self._footers = _footers(self._entries)

    @cached_property
    def _pieces(self) -> list[_Piece]:
        return sorted(self._worths(), reverse=True)

    @cached_property
    def _later(self) -> list[_Piece]:
        """The pieces in the order in which they get what their kinds' shares left."""
        less = {"agent": P["lagent"], "user": P["luser"], "newest": P["lnewest"], "call": P["lcall"]}
        return sorted(self._pieces, key=lambda piece: less.get(piece.share, 0) - piece.worth)

    @cached_property
    def _scorer(self) -> _Scorer:
        return _Scorer(self._goal, self._entries)

    def _worths(self) -> Iterator[_Piece]:
        seen, newest = 0, len(self._entries)
        ranks = Counter[str]()
        covered: set[str] = set()
        repeated: set[str] = set()
        for index in range(newest - 1, -1, -1):
            entry, age = self._entries[index], self._age[index]
            what = "output" if entry.speaker == "call" and entry.view else entry.speaker
            rank = ranks[what]
            if entry.speaker == "call":
                yield _Piece(P["call"] - P["callrank"] * ranks["call"], index, -1, "call")
                ranks["call"] += 1
            if what != "call":
                ranks[what] += 1
            base, share = _base(entry, rank)
            view = entry.view[: self._footers[index]]
            if what == "output" and 0 < sum(line.weight for line in view) <= P["small"]:
                base, share = P["call"], "call"
            if seen <= self._budget * HORIZON or entry.speaker == "user":
                related = self._scorer.entry(entry)
                for at, line in enumerate(view):
                    if line.words and not line.heads:
                        seen += line.weight
                        worth = self._scorer.line(entry, at, covered)
                        worth += related - P["age"] * age - P["cost"] * line.weight
                        if line.text in repeated:
                            worth -= P["rep"]
                        yield _Piece(base + worth, index, at, share)
            covered |= entry.all_words
            repeated.update(line.text for line in entry.view if len(line.text) > 12)

    def text(self, target: float) -> tuple[str, dict[str, int]]:
        """The account for about `target` tokens."""
        task = _task_text(self._goal, target * TASK_SHARE, self._focus)
        room = target - weigh(task) - 30
        chosen: set[Place] = set()
        left = self._choose(chosen, room, room * FIRST_FILL)
        known, left = self._known(chosen, left + room * (1 - FIRST_FILL))
        self._choose(chosen, room, left, limited=False)
        return self._written(task, chosen, known)

    @cached_property
    def _focus(self) -> frozenset[str]:
        calls = [entry.words for entry in self._entries if entry.speaker == "call"]
        return frozenset().union(*calls[-12:])

    def _cost(self, index: int, at: int) -> int:
        entry = self._entries[index]
        return entry.view[at].weight if at >= 0 else entry.weight

    def _choose(self, chosen: set[Place], room: float, left: float, *, limited: bool = True) -> float:
        """Add the pieces of most worth that fit, each kind within its share. Gives what is left."""
        spent = Counter[str]()
        shares = {"newest": NEWEST_SHARE, "call": CALLS_SHARE, "user": WORDS_SHARE, "agent": AGENT_SHARE} if limited else {}
        for piece in self._pieces if limited else self._later:
            if (piece.entry, piece.line) in chosen:
                continue
            needed = self._needed(piece, chosen)
            cost = sum(self._cost(*place) for place in needed)
            if cost <= left and spent[piece.share] + cost <= shares.get(piece.share, 1) * room:
                chosen.update(needed)
                spent[piece.share] += cost
                left -= cost
        return left

    def _needed(self, piece: _Piece, chosen: set[Place]) -> list[Place]:
        """The piece with what it belongs to, as far as that is not chosen yet."""
        index, at = piece.entry, piece.line
        view = self._entries[index].view if at >= 0 else ()
        needed = []
        while (index, at) not in chosen:
            needed.append((index, at))
            if at < 0:
                break
            at = view[at].parent
        return needed

    def _known(self, chosen: set[Place], left: float) -> tuple[dict[int, str], float]:
        """By entry, identifiers that no chosen line shows, newest outputs first."""
        shown: set[str] = set()
        for index, at in chosen:
            shown |= (self._entries[index].words | words_of(self._entries[index].brief)) if at < 0 else self._entries[index].view[at].words
        found: dict[int, str] = {}
        for index in range(len(self._entries) - 1, -1, -1):
            new = [(k, v) for k, v in self._entries[index].identifiers if v.lower() not in shown]
            if not new:
                continue
            text = by_key(new)
            cost = weigh(text) + 2 + (0 if (index, -1) in chosen else self._entries[index].weight)
            if cost <= left:
                found[index] = text
                chosen.add((index, -1))
                shown.update(v.lower() for _, v in new)
                left -= cost
        return found, left

    def _written(self, task: str, chosen: set[Place], known: dict[int, str]) -> tuple[str, dict[str, int]]:
        parts = [f"Task: {task}"] if task else []
        hidden = Counter[str]()
        if task != self._goal:
            hidden["task"] = 1
        if self._dropped:
            hidden["older items"] = self._dropped
        for index, entry in enumerate(self._entries):
            if (index, -1) not in chosen:
                hidden["items"] += 1
                hidden["lines"] += len(entry.view)
                continue
            lines, gone = self._entry_lines(index, entry, chosen, known.get(index, ""))
            hidden["lines"] += gone + entry.omitted
            parts += lines
        left_out = {name: number for name, number in hidden.items() if number}
        if left_out:
            told = ", ".join(f"{number} {name}" for name, number in left_out.items())
            parts.append(f"[Left out: {told}; `recall` brings them back]")
        return "\n".join(_grouped(parts)), left_out

    def _entry_lines(self, index: int, entry: Entry, chosen: set[Place], known: str) -> tuple[list[str], int]:
        shown: list[str] = []
        gone, gap = 0, False
        for at, line in enumerate(entry.view):
            if (index, at) in chosen:
                if gap:
                    shown.append(" …")
                    gap = False
                shown.append(line.text)
            elif at < self._footers[index] and line.words:
                gone += 1
                gap = True
        if gap and shown:
            shown.append(" …")
        if entry.speaker != "call":
            return [f"#{entry.seq} {entry.speaker}: {' '.join(part.strip() for part in shown)}"], gone
        if entry.brief and shown:
            shown.append(f" result: {entry.brief}")
        if known:
            shown.append(f" has {known}")
        outcome = " failed" if entry.failed else ""
        end = ":" if shown else f": {entry.brief}" if entry.brief else ": …" if gone else ": nothing"
        head = f"#{entry.seq} {entry.text}{outcome}{end}"
        if len(shown) == 1 and len(head) + len(shown[0]) < 120:
            return [f"{head} {shown[0].strip()}"], gone
        return [head, *shown], gone


def _grouped(parts: list[str]) -> Iterator[str]:
    """The parts, calls of one tool in a row whose outputs are not shown in one line."""
    held: list[re.Match[str]] = []
    for part in (*parts, ""):
        match = _HIDDEN_CALL.fullmatch(part)
        if held and (match is None or match["tool"] != held[0]["tool"]):
            yield _group(held)
            held = []
        if match:
            held.append(match)
        elif part:
            yield part


def _group(calls: list[re.Match[str]]) -> str:
    if len(calls) == 1:
        return calls[0][0]
    first = calls[0]["args"]
    key = first.partition("=")[0] + "="
    rest = [call["args"].removeprefix(key) if ", " not in first else call["args"] for call in calls[1:]]
    return f"#{calls[0]['seq']}–{calls[-1]['seq']} {calls[0]['tool']}({' | '.join((first, *rest))}): …"


def _base(entry: Entry, rank: int) -> tuple[float, str]:
    """What lines of an entry are worth before they are looked at, and whose share they take from."""
    if entry.speaker == "user":
        return (90, "") if rank == 0 else (60, "user")
    if entry.speaker == "agent":
        return (P["agent1"], "agent") if rank == 0 else (P["agent2"], "agent")
    return (60, "newest") if rank == 0 else (P["older"] + P["decay"] / rank, "")


class _Scorer:
    """How much a line of an output is worth: by its words, its kind and its age."""

    def __init__(self, goal: str, entries: Sequence[Entry]) -> None:
        said = [entry for entry in entries if entry.speaker != "call"]
        calls = [entry for entry in entries if entry.speaker == "call"]
        hot = frozenset[str]().union(*(entry.words for entry in (*said[-2:], *calls[-2:])))
        users = [entry.words for entry in entries if entry.speaker == "user"]
        self._warm = words_of(goal).union(*users, *(entry.words for entry in calls))
        common = max(3, len(calls) // 3)
        spread = Counter(word for entry in calls for word in entry.all_words & hot)
        self._hot = frozenset(word for word in hot if spread[word] <= common)
        self._top = frozenset[str]().union(*(entry.words for entry in said[-1:])) & self._hot
        texts = " ".join(entry.text for entry in (*said[-1:], *calls[-1:]))
        self._numbers = sorted({int(match) for match in _NUMBER.findall(texts)})

    def entry(self, entry: Entry) -> float:
        """How much the whole entry has to do with what goes on."""
        return min(P["entmax"], P["ent"] * len(entry.all_words & self._hot))

    def line(self, entry: Entry, at: int, covered: set[str]) -> float:
        line = entry.view[at]
        worth = P["hot"] * len(line.words & self._hot) + P["warm"] * len(line.words & self._warm)
        worth += P["top"] * len(line.words & self._top)
        worth += P["fresh"] * min(P["freshmax"], len(line.fresh - covered))
        if entry.kind == "code" and self._numbers and (match := _LINE_NUMBER.match(line.text)):
            distance = min(abs(int(match[1]) - number) for number in self._numbers)
            worth += max(0.0, P["near"] - distance * 0.3)
        if entry.failed:
            worth += P["failed"]
        return worth


def _ages(entries: Sequence[Entry]) -> list[int]:
    """For each entry, how many calls came after it."""
    ages, calls = [], 0
    for entry in reversed(entries):
        ages.append(calls)
        calls += entry.speaker == "call"
    return ages[::-1]


def _footers(entries: Sequence[Entry]) -> list[int]:
    """For each entry, where the lines begin that the next output ends with, too: a prompt, a status."""
    found = [len(entry.view) for entry in entries]
    after: Entry | None = None
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if entry.speaker != "call":
            continue
        if after is not None:
            same = 0
            while same < min(len(entry.lines), len(after.lines)) and entry.lines[-1 - same] == after.lines[-1 - same]:
                same += 1
            found[index] -= same
        after = entry
    return found


def _task_text(goal: str, room: float, focus: frozenset[str]) -> str:
    """The task whole, or its head, its tail, and lines between them that later calls had words of."""
    if weigh(goal) <= room:
        return goal
    lines = goal.splitlines()
    weights = [weigh(line) + 1 for line in lines]
    chosen: set[int] = set()
    orders: tuple[tuple[Sequence[int], float], ...] = (
        (range(len(lines)), 0.6),
        (sorted(range(len(lines)), key=lambda at: -len(words_of(lines[at]) & focus)), 0.85),
        (range(len(lines) - 1, -1, -1), 1.0),
    )
    spent = 0
    for order, share in orders:
        for at in order:
            if at not in chosen and spent + weights[at] <= room * share:
                chosen.add(at)
                spent += weights[at]
            elif at not in chosen:
                break
    if not chosen:
        size = int(len(goal) * room / max(1, weigh(goal)))
        return f"{goal[: size * 2 // 3]} … {goal[len(goal) - size // 3 :]}"
    parts, last = [], -1
    for at in sorted(chosen):
        if at > last + 1:
            parts.append("…")
        parts.append(lines[at])
        last = at
    return "\n".join([*parts, *(["…"] if last < len(lines) - 1 else [])])


def by_key(pairs: Sequence[tuple[str, str]]) -> str:
    """Identifiers in one line, under their keys."""
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return "; ".join(f"{key} {', '.join(values)}" for key, values in groups.items())


def ledger_line(ledger: Sequence[Known]) -> str:
    return by_key([(item.key, f"{item.value} #{item.seq}") for item in ledger])
