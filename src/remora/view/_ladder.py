"""Who decided what: decisions by model, and the moves between models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from remora.analysis._rungs import RungTally
from remora.events import EscalationEvent, Event, ModelRequestEvent, ModelResponseEvent, NoticeEvent

MAX_STEPS = 2000
"""Decisions that are shown one by one."""


def ladder(events: Iterable[Event]) -> dict[str, Any]:
    """Count the decisions of a stream by model, and list the moves."""
    tally, moves, notices = RungTally(), list[EscalationEvent](), list[NoticeEvent]()
    spans: list[tuple[str, int, int]] = []
    for event in events:
        tally.take(event)
        match event:
            case EscalationEvent():
                moves.append(event)
            case NoticeEvent() if len(notices) < MAX_STEPS:
                notices.append(event)
            case ModelRequestEvent():
                _extend(spans, event.rung or "the model", event.turn)
            case ModelResponseEvent(rule=rule) if rule:
                _extend(spans, "a rule", event.turn)
    return {"rows": tally.rows, "moves": moves, "notices": notices, "spans": spans}


def _extend(spans: list[tuple[str, int, int]], name: str, turn: int) -> None:
    """Add a decision to the last span, or begin another one."""
    if spans and spans[-1][0] == name:
        spans[-1] = (name, spans[-1][1], turn)
    elif len(spans) < MAX_STEPS:
        spans.append((name, turn, turn))
