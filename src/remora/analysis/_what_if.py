"""What-if: the prompts of recorded runs beside those that other rules give. Pure: pairs of events in, figures out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial

from remora.analysis._grounding import NeededWords, words_in
from remora.context.text import message_text, messages_text
from remora.events import AgentStartEvent, Event, ModelRequestEvent
from remora.ports import TokenCounter

MAX_DIFF_LINES = 200
"""Lines of one prompt's diff."""


@dataclass(frozen=True)
class PromptFigures:
    """Prompts by one set of rules: as recorded, or by other rules. Figures of several runs can be added."""

    tokens: int = 0
    """All packets together, without system text and tools."""
    recalled: float = 0.0
    """Sum over turns of the share of used words that the prompt showed."""
    grounded: int = 0
    """Turns in which no used word was missing."""
    scored: int = 0
    """Turns whose calls used words from the past."""

    def __add__(self, other: PromptFigures) -> PromptFigures:
        return PromptFigures(
            self.tokens + other.tokens,
            self.recalled + other.recalled,
            self.grounded + other.grounded,
            self.scored + other.scored,
        )

    @property
    def recall(self) -> float:
        return self.recalled / self.scored if self.scored else 1.0

    @property
    def grounded_share(self) -> float:
        return self.grounded / self.scored if self.scored else 1.0


@dataclass(frozen=True)
class ChangedPrompt:
    """A prompt that other rules change."""

    turn: int
    seq: int
    tokens_before: int
    tokens_after: int
    lost: tuple[str, ...] = ()
    """Words that the turn's calls used and only the recorded prompt showed."""
    gained: tuple[str, ...] = ()
    """Words that the turn's calls used and only the new prompt shows."""
    diff: tuple[str, ...] = ()


@dataclass(frozen=True)
class WhatIf:
    """One run, or several, as recorded and by other rules."""

    agent_id: str = ""
    operation: str = ""
    goal: str = ""
    prompts: int = 0
    changed: int = 0
    before: PromptFigures = field(default_factory=PromptFigures)
    after: PromptFigures = field(default_factory=PromptFigures)
    changes: tuple[ChangedPrompt, ...] = ()
    counter: str = ""
    recorded_by: str = ""
    """The counter that kept the recorded prompts within their limit. Another one may cut them elsewhere."""
    kept_results: int = 0
    """Results that could not be read, so that their recorded deltas were kept."""
    problem: str = ""
    """Why the run could not be compared; empty if it was."""

    def plus(self, other: WhatIf) -> WhatIf:
        """The totals of both, without their changes."""
        return WhatIf(
            prompts=self.prompts + other.prompts,
            changed=self.changed + other.changed,
            before=self.before + other.before,
            after=self.after + other.after,
            counter=other.counter or self.counter,
            kept_results=self.kept_results + other.kept_results,
        )


@dataclass(frozen=True)
class Tolerance:
    """How much may change before a comparison counts as failed. None: any change."""

    changed: float | None = None
    """Share of prompts that may change."""
    evidence_loss: float | None = None
    """By how much recall, or the share of grounded turns, may fall."""
    token_growth: float | None = None
    """By which share the tokens may grow."""

    def breaches(self, total: WhatIf) -> list[str]:
        """One sentence for each limit that is exceeded."""
        found = []
        share = total.changed / total.prompts if total.prompts else 0.0
        if self.changed is not None and share > self.changed:
            found.append(f"{share:.1%} of the prompts change: expected at most {self.changed:.1%}")
        for name, loss in _losses(total).items():
            if self.evidence_loss is not None and loss > self.evidence_loss + 1e-9:
                found.append(f"{name} falls by {loss:.3f}: expected at most {self.evidence_loss:.3f}")
        growth = total.after.tokens / total.before.tokens - 1 if total.before.tokens else 0.0
        if self.token_growth is not None and growth > self.token_growth + 1e-9:
            found.append(f"Tokens grow by {growth:.1%}: expected at most {self.token_growth:.1%}")
        return found


class Comparison:
    """Compares one run with what other rules make of it, event by event."""

    def __init__(self, counter: TokenCounter, *, diffs: bool = False) -> None:
        self._counter = counter
        self._diffs = diffs
        self._words: NeededWords | None = None
        self._start = AgentStartEvent()
        self._texts: tuple[str, str] = ("", "")
        self._rows: list[ChangedPrompt] = []
        self._last_changed = False
        self._figures = (PromptFigures(), PromptFigures())
        self._prompts = 0
        self._kept = 0
        self._recorded_by = ""
        self._early: list[tuple[Event, str]] = []

    def take(self, recorded: Event, event: Event, text: str = "", problem: str = "") -> None:
        """Add an event: as recorded, with its whole prompt, and by other rules. `text` is a tool's raw result."""
        self._kept += bool(problem)
        if isinstance(recorded, AgentStartEvent):
            self._start = recorded
        if isinstance(recorded, ModelRequestEvent) and isinstance(event, ModelRequestEvent):
            self._request(recorded, event)
        if self._words is None:
            self._early.append((recorded, text))
        elif needed := self._words.take(recorded, partial(_same, text)):
            self._score(needed)

    def result(self) -> WhatIf:
        """The figures of all events so far."""
        return WhatIf(
            agent_id=self._start.agent_id,
            operation=self._start.operation,
            goal=self._start.goal,
            prompts=self._prompts,
            changed=len(self._rows),
            before=self._figures[0],
            after=self._figures[1],
            changes=tuple(self._rows),
            counter=self._counter.name,
            recorded_by=self._recorded_by,
            kept_results=self._kept,
        )

    def _request(self, recorded: ModelRequestEvent, event: ModelRequestEvent) -> None:
        if self._words is None:
            self._begin(recorded)
        self._prompts += 1
        self._recorded_by = str(recorded.counter.get("name", ""))
        self._texts = before, after = _shown(recorded), _shown(event)
        count = self._counter.count
        tokens = (count(before), count(after)) if before != after else (count(before),) * 2
        self._figures = (
            self._figures[0] + PromptFigures(tokens[0]),
            self._figures[1] + PromptFigures(tokens[1]),
        )
        self._last_changed = before != after
        if self._last_changed:
            diff = _diff(before, after) if self._diffs else ()
            self._rows.append(ChangedPrompt(recorded.turn, recorded.seq, *tokens, diff=diff))

    def _begin(self, first: ModelRequestEvent) -> None:
        """The first prompt shows the system text, whose words count for nobody."""
        self._words = NeededWords(
            "\n".join(message_text(message) for message in first.messages if message.get("role") == "system")
        )
        for event, text in self._early:
            self._words.take(event, partial(_same, text))
        self._early.clear()

    def _score(self, needed: set[str]) -> None:
        missing = [needed - words_in(text) for text in self._texts]
        self._figures = (
            self._figures[0] + _scored(needed, missing[0]),
            self._figures[1] + _scored(needed, missing[1]),
        )
        if self._last_changed:
            row = self._rows[-1]
            lost, gained = tuple(sorted(missing[1] - missing[0])), tuple(sorted(missing[0] - missing[1]))
            tokens = row.tokens_before, row.tokens_after
            self._rows[-1] = ChangedPrompt(row.turn, row.seq, *tokens, lost, gained, row.diff)


def what_if(steps: Iterable[tuple[Event, Event, str]], counter: TokenCounter, *, diffs: bool = False) -> WhatIf:
    """Compare a run with what other rules make of it: pairs of events, each with a tool's raw result as text."""
    comparison = Comparison(counter, diffs=diffs)
    for recorded, event, text in steps:
        comparison.take(recorded, event, text)
    return comparison.result()


def _same(text: str, _event: Event) -> str:
    return text


def _losses(total: WhatIf) -> dict[str, float]:
    return {
        "Recall": total.before.recall - total.after.recall,
        "The share of grounded turns": total.before.grounded_share - total.after.grounded_share,
    }


def _scored(needed: set[str], missing: set[str]) -> PromptFigures:
    return PromptFigures(0, 1 - len(missing) / len(needed), int(not missing), 1)


def _shown(event: ModelRequestEvent) -> str:
    """What a prompt shows beside the system text."""
    return messages_text(event.messages)


def _diff(before: str, after: str) -> tuple[str, ...]:
    lines: Sequence[str] = list(
        unified_diff(before.splitlines(), after.splitlines(), "recorded", "what if", lineterm="", n=1)
    )
    more = len(lines) - MAX_DIFF_LINES
    return (*lines[:MAX_DIFF_LINES], *([f"… {more} more lines"] if more > 0 else []))
