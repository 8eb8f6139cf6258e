"""Where an interrupted run stood: read from its stream alone, so that it can go on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from remora.context.projection import EMPTY, apply
from remora.events import (
    AgentEndEvent,
    AgentErrorEvent,
    Call,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
)
from remora.ports import Prompt


@dataclass(frozen=True)
class Standing:
    """What an interrupted run had done of its last turn, and what it had still to do."""

    turn_begun: bool = False
    """A turn began, and no decision of it is recorded."""
    asked: ModelRequestEvent | None = None
    """The prompt of that turn, where it was recorded."""
    open_call: ToolCallEvent | None = None
    """A call that was begun, and whose end nobody recorded."""
    calls: tuple[Call, ...] = ()
    """Calls that were decided and not begun."""
    answer: ModelResponseEvent | None = None
    """A reply without any call: the run's result."""
    submitted: SubmitResultEvent | None = None
    failed: AgentErrorEvent | None = None
    ended: AgentEndEvent | None = None
    failures: int = 0
    """Failed calls in a row."""
    undecided: int = 0
    """Turns in a row without a decision."""


def standing(events: Iterable[Event]) -> Standing:
    """Where the run of these events stood after the last of them."""
    now = Standing()
    for event in events:
        now = _after(now, event)
    return now


def _after(now: Standing, event: Event) -> Standing:
    match event:
        case TurnStartEvent():
            return replace(now, turn_begun=True, asked=None, calls=(), answer=None)
        case ModelRequestEvent():
            return replace(now, asked=event)
        case ModelResponseEvent(error=error) if error:
            return replace(now, turn_begun=False, asked=None, undecided=now.undecided + 1)
        case ModelResponseEvent(calls=calls):
            answer = None if calls else event
            return replace(now, turn_begun=False, asked=None, calls=calls, answer=answer, undecided=0)
        case ToolCallEvent():
            return replace(now, open_call=event, calls=_without(now.calls, event.call_id))
        case ToolResultEvent(outcome=outcome):
            failures = now.failures + 1 if outcome in ("error", "unknown") else 0
            return replace(now, open_call=None, failures=failures)
        case SubmitResultEvent():
            return replace(now, submitted=event, calls=())
        case AgentErrorEvent():
            return replace(now, failed=event)
        case AgentEndEvent():
            return replace(now, ended=event)
    return now


def _without(calls: tuple[Call, ...], call_id: str) -> tuple[Call, ...]:
    """The calls after the one that has begun."""
    ids = [call.call_id for call in calls]
    return calls[ids.index(call_id) + 1 :] if call_id in ids else calls


def past_prompts(events: Iterable[Event]) -> Iterator[Prompt]:
    """What a policy without a model was asked in every turn that it answered: by it, such a policy catches up."""
    packet, asked = EMPTY, None
    for event in events:
        packet = apply(packet, event)
        if isinstance(event, ModelRequestEvent):
            asked = Prompt((), (), tuple(packet.candidate_actions), event.turn)
        elif isinstance(event, ModelResponseEvent) and asked is not None:
            yield asked
