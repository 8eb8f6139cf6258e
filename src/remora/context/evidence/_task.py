"""Shortens the task to a share of the tokens: its head, its tail, and lines in between that later calls used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from remora.context.evidence._words import weigh, words_of

HEAD, USED = 0.6, 0.85
"""Shares of the tokens: for the head; for the head and lines that later calls used. The tail gets the rest."""


def task_text(goal: str, room: float, used: Callable[[], frozenset[str]]) -> tuple[str, int]:
    """The task in about `room` tokens, and its weight. Lines with words of `used` are preferred to the tail."""
    lines, weights, words = _looked_at(goal)
    if (whole := sum(weights)) <= room:
        return goal, whole
    wanted = used()
    by_use = sorted(range(len(lines)), key=lambda at: -len(words[at] & wanted))
    orders: tuple[tuple[Sequence[int], float], ...] = (
        (range(len(lines)), HEAD),
        (by_use, USED),
        (range(len(lines) - 1, -1, -1), 1.0),
    )
    chosen: set[int] = set()
    spent = 0
    for order, share in orders:
        for at in order:
            if at in chosen:
                continue
            if spent + weights[at] > room * share:
                break
            chosen.add(at)
            spent += weights[at]
    return (_joined(lines, chosen), spent + 2) if chosen else (_head_and_tail(goal, room), int(room))


@lru_cache(maxsize=8)
def _looked_at(goal: str) -> tuple[list[str], list[int], list[frozenset[str]]]:
    """The lines of a task with their weights and words. Cached, because every turn of a run needs them."""
    lines = goal.splitlines()
    return lines, [weigh(line) + 1 for line in lines], [words_of(line) for line in lines]


def _joined(lines: Sequence[str], chosen: set[int]) -> str:
    parts: list[str] = []
    last = -1
    for at in sorted(chosen):
        if at > last + 1:
            parts.append("…")
        parts.append(lines[at])
        last = at
    return "\n".join([*parts, *(["…"] if last < len(lines) - 1 else [])])


def _head_and_tail(goal: str, room: float) -> str:
    """Both ends of a task that is one long line."""
    size = max(0, int(len(goal) * room / max(1, weigh(goal))))
    return f"{goal[: size * 2 // 3]} … {goal[len(goal) - size // 3 :]}" if size > 2 else ""
