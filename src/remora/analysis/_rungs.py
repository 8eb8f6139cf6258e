"""Who decided what: the decisions of a run by rung, with their tokens and seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from remora.events import AgentStartEvent, Event, ModelRequestEvent, ModelResponseEvent

BY_RULE = "by rule"
"""The name of the row that counts the turns decided without a policy."""


@dataclass(frozen=True)
class RungRow:
    """The decisions of one rung; of the only model without a ladder."""

    rung: str
    decisions: int = 0
    undecided: int = 0
    """How many of them contained no valid call."""
    prompt_tokens: int = 0
    """By the server's own count where it gives one, else by ours."""
    reply_tokens: int = 0
    """As the server counted them; 0 if it does not."""
    seconds: float = 0.0
    """Between the recorded prompts and the recorded replies."""

    def plus(self, other: RungRow) -> RungRow:
        """Both rows together."""
        return RungRow(
            self.rung,
            self.decisions + other.decisions,
            self.undecided + other.undecided,
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
            round(self.seconds + other.seconds, 3),
        )


class RungTally:
    """Counts the decisions of a stream, event by event."""

    def __init__(self) -> None:
        self._rows: dict[str, RungRow] = {}
        self._policy = ""
        self._asked: ModelRequestEvent | None = None

    def take(self, event: Event) -> None:
        """Count one event. A prompt counts when it is answered."""
        if isinstance(event, AgentStartEvent):
            self._policy = str(event.model.get("policy", ""))
        elif isinstance(event, ModelRequestEvent):
            self._asked = event
        elif isinstance(event, ModelResponseEvent) and event.rule:
            self._add(RungRow(BY_RULE, decisions=1))
        elif isinstance(event, ModelResponseEvent) and self._asked is not None:
            asked, self._asked = self._asked, None
            row = RungRow(
                asked.rung or self._policy,
                decisions=1,
                undecided=int(bool(event.error)),
                prompt_tokens=tokens_in(event.usage, "prompt_tokens") or asked.tokens.get("total", 0),
                reply_tokens=tokens_in(event.usage, "completion_tokens"),
                seconds=_seconds(asked.ts, event.ts),
            )
            self._add(row)

    def _add(self, row: RungRow) -> None:
        self._rows[row.rung] = self._rows[row.rung].plus(row) if row.rung in self._rows else row

    @property
    def rows(self) -> tuple[RungRow, ...]:
        """One row for each rung that decided, in the order of its first decision."""
        return tuple(self._rows.values())


def decisions_by_rung(events: Iterable[Event]) -> tuple[RungRow, ...]:
    """The decisions of a stream by rung."""
    tally = RungTally()
    for event in events:
        tally.take(event)
    return tally.rows


def sum_rungs(rows: Iterable[RungRow]) -> tuple[RungRow, ...]:
    """The decisions of many agents by rung."""
    total: dict[str, RungRow] = {}
    for row in rows:
        total[row.rung] = total[row.rung].plus(row) if row.rung in total else replace(row)
    return tuple(total.values())


def tokens_in(usage: Mapping[str, Any], name: str) -> int:
    """A number of a server's usage; 0 if it is missing or not a positive number."""
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _seconds(asked: str, answered: str) -> float:
    try:
        return round(max(0.0, (datetime.fromisoformat(answered) - datetime.fromisoformat(asked)).total_seconds()), 3)
    except (ValueError, TypeError):
        return 0.0
