"""Scores: of the words that a turn's calls take from the past, the share that a memory shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.evidence.data import Suite, output_text
from benchmarks.evidence.rows import Count, Memory
from remora.analysis import AssistantTurn, Chat, call_words, words_in

Make = Callable[[str, Count], Memory]


@dataclass
class Score:
    """What one memory showed at one budget, turn by turn."""

    recalls: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    missed: list[tuple[str, int, tuple[str, ...]]] = field(default_factory=list)
    """Where it was not grounded: source, turn, the words."""
    cpu: list[float] = field(default_factory=list)
    """Seconds for reading, folding and rendering one turn."""

    @property
    def recall(self) -> float:
        return sum(self.recalls) / len(self.recalls) if self.recalls else 1.0

    @property
    def grounded(self) -> float:
        return sum(recall == 1 for recall in self.recalls) / len(self.recalls) if self.recalls else 1.0

    def row(self) -> dict[str, float | int]:
        """The figures of a table's row."""
        return {
            "turns": len(self.recalls),
            "recall": round(self.recall, 4),
            "grounded": round(self.grounded, 4),
            "tokens": round(sum(self.tokens) / max(1, len(self.tokens))),
            "most_tokens": max(self.tokens, default=0),
            "cpu_ms": round(1000 * sum(self.cpu) / max(1, len(self.cpu)), 3),
        }


def score(suite: Suite, make: Make, budgets: Sequence[int], count: Count, *, names: bool = False) -> dict[int, Score]:
    """The scores of a memory on all runs of a suite, by budget. `names`: as `call_words` says."""
    scores = {budget: Score() for budget in budgets}
    for chat in suite.chats:
        _run(chat, make, scores, count, names)
    return scores


def _run(chat: Chat, make: Make, scores: dict[int, Score], count: Count, names: bool) -> None:
    memory, before, fixed = make(chat.goal, count), words_in(chat.goal), words_in(chat.system)
    turn, heard = 0, 0.0
    for step in chat.steps:
        if isinstance(step, AssistantTurn) and step.calls:
            turn += 1
            needed = (call_words(step.calls, names=names) & before) - fixed
            for budget, kept in scores.items():
                _judge(kept, memory, budget, needed, count, (chat.source, turn), heard)
            heard = 0.0
        began = time.process_time()
        memory.take(step)
        heard += time.process_time() - began
        before |= _words(step)


def _judge(
    kept: Score, memory: Memory, budget: int, needed: set[str], count: Count, place: tuple[str, int], heard: float
) -> None:
    began = time.process_time()
    shown = memory.show(budget)
    kept.cpu.append(time.process_time() - began + heard)
    if not needed:
        return
    missing = needed - words_in(shown)
    kept.recalls.append(1 - len(missing) / len(needed))
    kept.tokens.append(count(shown))
    if missing:
        kept.missed.append((*place, tuple(sorted(missing))))


def _words(step: object) -> set[str]:
    """What a step adds to what stood before: a person's words, calls, outputs. The agent's own words are no source."""
    if not isinstance(step, AssistantTurn):
        return words_in(getattr(step, "text", ""))
    found = call_words(step.calls, names=True)
    return found.union(*(words_in(output_text(result)) for result in step.results.values()))
