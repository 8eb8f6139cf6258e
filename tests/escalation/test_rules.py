"""The fold behind the rules: defined for any stream, and the same for a stream read in two parts."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from remora.config import EscalationConfig
from remora.escalation import LadderState, Meter, Price, advance, next_move
from remora.events import EscalationEvent, Event, ModelRequestEvent, ModelResponseEvent
from strategies import events as any_event

NAMES = ("small", "large", "largest")
moves = st.builds(
    EscalationEvent,
    direction=st.sampled_from(["up", "down"]),
    target=st.sampled_from([*NAMES, "unknown"]),
    rule=st.sampled_from(["repeats", "no_progress", "ask"]),
)
asked = st.builds(ModelRequestEvent, rung=st.sampled_from(NAMES))
replies = st.builds(ModelResponseEvent, error=st.sampled_from(["", "reply_invalid"]))
streams = st.lists(any_event | moves | asked | replies, max_size=40)


def fold(events: list[Event], start: LadderState = LadderState()) -> LadderState:  # noqa: B008 - frozen
    return reduce(lambda state, event: advance(state, event, NAMES), events, start)


@given(streams)
def test_any_stream_leaves_the_agent_on_a_rung_with_counts_that_only_grow(events: list[Event]) -> None:
    state = LadderState()
    for event in events:
        after = advance(state, event, NAMES)
        assert 0 <= after.place < len(NAMES)
        assert after.moves >= state.moves
        assert after.decisions >= state.decisions
        assert min(after.undecided, after.errors, after.turns) >= 0
        state = after


@given(streams, st.integers(0, 40))
def test_a_stream_read_in_two_parts_gives_the_same_state(events: list[Event], cut: int) -> None:
    assert fold(events[cut:], fold(events[:cut])) == fold(events)


@given(streams, st.integers(0, 9))
def test_nothing_moves_down_from_the_first_rung(events: list[Event], repeats: int) -> None:
    state = fold(events)
    move = next_move(state, EscalationConfig(), repeats, has_check=True)
    if move is not None and move.direction == "down":
        assert state.place > 0


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), max_size=30), st.floats(0.0, 5.0))
def test_no_order_of_decisions_costs_more_than_the_limit(sizes: list[tuple[int, int]], most: float) -> None:
    meter, price, spent = Meter(max_price=most), Price(prompt=100.0, reply=300.0), 0.0
    for prompt, reply in sizes:
        highest = price.of(10_000, 10_000)
        if meter.problem(highest) is None:
            meter.reserve(highest)
            meter.settle(highest, price.of(prompt, reply))
            spent += price.of(prompt, reply)
    assert spent <= most + 1e-6
