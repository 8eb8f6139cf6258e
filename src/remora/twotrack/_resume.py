"""The state of an interrupted run, read from its stream alone, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from remora.context.projection import EMPTY, apply
from remora.events import (
    AgentEndEvent,
    AgentErrorEvent,
    Call,
    EscalationEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UserInputEvent,
    is_check,
)
from remora.ports import Prompt


@dataclass(frozen=True)
class ResumeState:
    """How far an interrupted run got in its last turn, and what is left to do."""

    turn_begun: bool = False
    """The last turn has started and has no recorded decision."""
    asked: ModelRequestEvent | None = None
    """The recorded prompt of that turn."""
    open_call: ToolCallEvent | None = None
    """A call with a recorded intent and no recorded result."""
    open_check: ToolCallEvent | None = None
    """As `open_call`, for the agent's check."""
    calls: tuple[Call, ...] = ()
    """Calls of the last reply that have not started."""
    are_drafts: bool = False
    """Those calls are alternatives: they are made until one succeeds."""
    answer: ModelResponseEvent | None = None
    """A reply without any call, which is the run's result."""
    submitted: SubmitResultEvent | None = None
    failed: AgentErrorEvent | None = None
    ended: AgentEndEvent | None = None
    failures: int = 0
    """Failed calls in a row."""
    undecided: int = 0
    """Turns in a row without a decision."""


def resume_state(events: Iterable[Event]) -> ResumeState:
    """The state after the last of these events."""
    now = ResumeState()
    for event in events:
        if is_check(event):
            now = replace(now, open_check=event if isinstance(event, ToolCallEvent) else None)
        else:
            now = _advance(now, event)
    return now


def _advance(now: ResumeState, event: Event) -> ResumeState:
    match event:
        case TurnStartEvent():
            return replace(now, turn_begun=True, asked=None, calls=(), answer=None)
        case ModelRequestEvent():
            return replace(now, asked=event)
        case ModelResponseEvent(error=error) if error:
            return replace(now, turn_begun=False, asked=None, undecided=now.undecided + 1)
        case ModelResponseEvent(calls=calls):
            answer = None if calls else event
            drafts = bool(event.drafts)
            return replace(
                now, turn_begun=False, asked=None, calls=calls, are_drafts=drafts, answer=answer, undecided=0
            )
        case ToolCallEvent():
            return replace(now, open_call=event, calls=_calls_after(now.calls, event.call_id))
        case ToolResultEvent():
            return _after_result(now, event)
        case UserInputEvent():  # a person asks for more: what ended the run, or nearly did, no longer counts
            return replace(now, calls=(), answer=None, submitted=None, failures=0, undecided=0)
        case SubmitResultEvent():
            return replace(now, submitted=event, calls=())
        case AgentErrorEvent():
            return replace(now, failed=event)
        case EscalationEvent():
            return replace(now, failures=0, undecided=0, calls=())
        case AgentEndEvent():
            return replace(now, ended=event)
    return now


def has_failed(result: ToolResultEvent) -> bool:
    """Whether a call counts as failed."""
    return result.outcome in ("error", "unknown")


def _after_result(now: ResumeState, result: ToolResultEvent) -> ResumeState:
    """The state after a result. A failed draft does not count while another one is left to try."""
    if has_failed(result):
        is_last = not (now.are_drafts and now.calls)
        return replace(now, open_call=None, failures=now.failures + is_last)
    return replace(now, open_call=None, failures=0, calls=() if now.are_drafts else now.calls)


def _calls_after(calls: tuple[Call, ...], call_id: str) -> tuple[Call, ...]:
    """The calls after the one with this id."""
    ids = [call.call_id for call in calls]
    return calls[ids.index(call_id) + 1 :] if call_id in ids else calls


def past_prompts(events: Iterable[Event], rung: str = "") -> Iterator[Prompt]:
    """The prompts that a rung's policy has already answered. A policy without a model replays them."""
    packet, asked = EMPTY, None
    for event in events:
        packet = apply(packet, event)
        if isinstance(event, ModelRequestEvent):
            asked = None if event.rung != rung else Prompt((), (), tuple(packet.candidate_actions), event.turn)
        elif isinstance(event, ModelResponseEvent) and asked is not None:
            yield asked
            asked = None  # a turn that was decided by rule has a reply and no prompt
