"""Forks: which events a new stream inherits from another, up to the end of a turn."""

from __future__ import annotations

from collections.abc import Sequence

from remora.errors import ConfigError
from remora.events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentStartEvent,
    Event,
    RunStartEvent,
    SubmitResultEvent,
    is_check,
    short_id,
)

FORK = "fork"
"""The relation of a fork to its parent."""
CONTINUE = "continue"
"""The relation of an agent that goes on after the end of its parent."""


def inherited_seq(start: AgentStartEvent) -> int:
    """The seq of the last event that was copied from the parent; -1 for a stream without copies."""
    parent = start.parent or {}
    relation = parent.get("relation")
    # `TwoTrack` continues and forks streams without copies, and records no turn of the parent.
    seq = parent.get("seq") if relation in (FORK, CONTINUE) and "turn" in parent else None
    return seq if isinstance(seq, int) else -1


def continued_turns(events: Sequence[Event]) -> int:
    """The turns that an agent had before it was continued: its limit counts those after them."""
    start = events[0] if events else None
    parent = (start.parent if isinstance(start, AgentStartEvent) else None) or {}
    turn = parent.get("turn") if parent.get("relation") == CONTINUE else None
    return turn if isinstance(turn, int) and turn > 0 else 0


def inherited_events(events: Sequence[Event], at: int) -> list[Event]:
    """The events up to the end of turn `at`, without what ended the run. Raises `ConfigError` for an unknown turn."""
    start = events[0] if events else None
    if not isinstance(start, AgentStartEvent):
        raise _not_an_agent(start)
    last = max(event.turn for event in events)
    if not 0 <= at <= last:
        turns = f"it has turns 1 to {last}" if last > 1 else "it has only turn 1" if last else "it has no turn"
        raise ConfigError(
            f"Agent {short_id(start.agent_id)} cannot be forked at turn {at}: {turns}",
            hint="`--at 0` forks it before its first turn",
        )
    kept: list[Event] = []
    for event in events:
        ends = isinstance(event, SubmitResultEvent | AgentErrorEvent | AgentEndEvent)
        if event.turn > at or ends or (is_check(event) and event.turn):
            break
        kept.append(event)
    return kept


def _not_an_agent(start: Event | None) -> ConfigError:
    """Why a stream cannot be forked or continued that does not begin with `agent_start`."""
    if not isinstance(start, RunStartEvent):
        return ConfigError("The stream does not begin with `agent_start`: expected one of an agent")
    short = short_id(start.run_id)
    hint = f"`remora trace show {short}` lists its agents"
    return ConfigError(f"`{short}` is a run, which cannot be forked or continued: expected an agent", hint=hint)
