"""The rules of the ladder: pure functions of an agent's events.

    undecided     replies in a row without a valid call
    repeats       equal calls with equal results in a row
    errors        failed calls in a row
    no_progress   turns in which the agent's check did not get better, or it submits and it never did
    ask           the model called `escalate`

A move up resets all counts. The stuck step is done when the larger model made a call that succeeded and gave a new
result; after `no_progress`, when the check got better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from remora.config import EscalationRules
from remora.context.text import number
from remora.events import (
    CandidateAction,
    EscalationEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolResultEvent,
    TurnStartEvent,
    is_check,
)


@dataclass(frozen=True)
class LadderState:
    """Where an agent stands on its ladder, and the counts that the rules test."""

    place: int = 0
    """The rung that decides: 0 is the first."""
    rule: str = ""
    """The rule of the last move up."""
    moves: int = 0
    """Number of moves up."""
    decisions: int = 0
    """Number of prompts for rungs above the first."""
    undecided: int = 0
    errors: int = 0
    turns: int = 0
    """Turns since the check got better, or since the last move."""
    best: int | None = None
    """The lowest count of the agent's check; None if it is unknown."""
    better: bool = False
    """Whether the check got better on this rung."""
    ever_better: bool = False
    """Whether the check ever got better in this run."""
    unchecked: bool = False
    """Whether files changed since the last check."""
    worked: bool = False
    """Whether the last call of this turn succeeded."""


@dataclass(frozen=True)
class Move:
    """A move that a rule demands."""

    direction: Literal["up", "down"]
    rule: str
    reason: str
    candidates: tuple[CandidateAction, ...] | None = None
    """The candidates that the larger model gets; None to leave them as they are."""


def advance(state: LadderState, event: Event, names: Sequence[str]) -> LadderState:
    """The state after `event`. `names` are the rungs, first to last."""
    match event:
        case EscalationEvent(target=target, direction=direction, rule=rule):
            up = direction == "up"
            kept = LadderState(moves=state.moves + up, decisions=state.decisions, best=state.best)
            return replace(
                kept,
                ever_better=state.ever_better,
                place=names.index(target) if target in names else 0,
                rule=rule if up else "",
                unchecked=state.unchecked,
            )
        case TurnStartEvent():
            return replace(state, turns=state.turns + 1, worked=False)
        case ModelRequestEvent() if state.place:
            return replace(state, decisions=state.decisions + 1)
        case ModelResponseEvent(rule=rule) if rule:  # says nothing about the model
            return replace(state, turns=max(0, state.turns - 1))
        case ModelResponseEvent(error=error):
            return replace(state, undecided=state.undecided + 1 if error else 0)
        case ToolResultEvent() if is_check(event):
            return _checked(state, event.check.get("count"))
        case ToolResultEvent(files=files) if not event.turn:  # a tool that ran before the first turn
            return replace(state, unchecked=state.unchecked or bool(files))
        case ToolResultEvent(outcome=outcome, files=files):
            failed = outcome in ("error", "unknown")
            return replace(
                state,
                errors=state.errors + 1 if failed else 0,
                worked=not failed,
                unchecked=state.unchecked or bool(files),
            )
        case _:
            return state


def _checked(state: LadderState, count: object) -> LadderState:
    state = replace(state, unchecked=False)
    if not isinstance(count, int):
        return state
    if state.best is None:
        return replace(state, best=count)
    return replace(state, best=count, better=True, ever_better=True, turns=0) if count < state.best else state


def next_move(state: LadderState, rules: EscalationRules, repeats: int, *, has_check: bool) -> Move | None:
    """The move that the rules demand after a turn. `repeats` counts equal calls with equal results in a row."""
    if is_done(state, repeats):
        return Move("down", "done", f"the step is done: the rule `{state.rule}` no longer holds")
    if rules.undecided and state.undecided >= rules.undecided:
        return Move("up", "undecided", f"{number(state.undecided, 'decision')} in a row without a valid call")
    if rules.repeats and repeats >= rules.repeats:
        return Move("up", "repeats", f"{repeats} equal calls with equal results in a row")
    if rules.errors and state.errors >= rules.errors:
        return Move("up", "errors", f"{number(state.errors, 'failed call')} in a row")
    if has_check and rules.no_progress and state.turns >= rules.no_progress:
        return Move("up", "no_progress", f"the check did not get better in {number(state.turns, 'turn')}")
    return None


def is_done(state: LadderState, repeats: int) -> bool:
    """Whether the step that moved the agent up is done."""
    if not state.place:
        return False
    return state.better if state.rule == "no_progress" else state.worked and repeats <= 1


def needs_check(state: LadderState, rules: EscalationRules) -> bool:
    """Whether the check must run before `next_move`: files changed, and a rule asks whether it got better."""
    due = bool(rules.no_progress) and state.turns >= rules.no_progress
    return state.unchecked and (due or (state.place > 0 and state.rule == "no_progress"))
