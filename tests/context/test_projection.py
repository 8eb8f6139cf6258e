from __future__ import annotations

import pytest
from hypothesis import given

from remora.context.models import MAX_EXCERPTS, MAX_RECENT_ACTIONS, DecisionPacket
from remora.context.projection import EMPTY, MAX_DIAGNOSTICS, apply, project
from remora.errors import ProjectionStopped
from remora.events import (
    ActionDelta,
    AgentStartEvent,
    CandidateAction,
    ErrorDelta,
    Event,
    Excerpt,
    HubDelta,
    KnowledgeDelta,
    NoticeEvent,
    PacketDelta,
    PacketUpdateEvent,
    ToolResultEvent,
    canonical,
    decode,
    encode,
)
from strategies import streams


def update(seq: int = 0, turn: int = 1, ts: str = "", **delta: object) -> PacketUpdateEvent:
    return PacketUpdateEvent(seq=seq, turn=turn, ts=ts, delta=PacketDelta.model_validate(delta))


def action(summary: str) -> ActionDelta:
    return ActionDelta(tool="run_linter", summary=summary, outcome="success")


@given(streams, streams)
def test_folding_in_two_parts_equals_folding_at_once(first: list[Event], rest: list[Event]) -> None:
    assert project(rest, start=project(first)) == project(first + rest)


@given(streams)
def test_the_packet_keeps_its_bounds_whatever_happens(events: list[Event]) -> None:
    packet = project(events)
    assert len(packet.recent_actions) <= MAX_RECENT_ACTIONS
    assert len(packet.diagnostics) <= MAX_DIAGNOSTICS
    assert len(packet.excerpts) <= MAX_EXCERPTS
    for line in [
        packet.goal,
        packet.last_error or "",
        *packet.diagnostics,
        *(a.summary for a in packet.recent_actions),
    ]:
        assert "\n" not in line
        assert len(line) <= 200


@given(streams)
def test_a_stream_read_back_from_its_lines_gives_the_same_packet(events: list[Event]) -> None:
    read_back = [decode(encode(event)) for event in events]
    assert canonical(project(read_back)) == canonical(project(events))


@given(streams)
def test_folding_changes_neither_the_events_nor_the_packet_it_starts_from(events: list[Event]) -> None:
    start = EMPTY.model_copy(deep=True)
    before = [event.model_dump() for event in events]
    project(events, start=start)
    assert start == EMPTY
    assert [event.model_dump() for event in events] == before


def test_a_start_begins_a_fresh_packet() -> None:
    start = AgentStartEvent(
        agent_id="a1",
        goal="Fix\nit",
        operation="lint",
        node_id="a.py:f",
        node={"summary": "function f"},
        constraints={"max_turns": 5, "safety": ["no network"]},
    )
    packet = project([update(knowledge={"old": {"value": 1}}), start])
    assert packet == DecisionPacket(
        agent_id="a1",
        goal="Fix it",
        operation="lint",
        node_id="a.py:f",
        node_summary="function f",
        constraints={"max_turns": 5, "safety": ["no network"]},
    )


def test_only_the_last_ten_actions_stay() -> None:
    packet = project([update(action=action(f"did {n}")) for n in range(15)])
    assert [item.summary for item in packet.recent_actions] == [f"did {n}" for n in range(5, 15)]


def test_knowledge_keeps_where_it_came_from() -> None:
    packet = project([update(seq=7, turn=3, knowledge={"errors": KnowledgeDelta(value=2)})])
    assert (packet.knowledge["errors"].source_turn, packet.knowledge["errors"].seq) == (3, 7)


def test_superseding_removes_the_older_key() -> None:
    packet = project(
        [
            update(knowledge={"guess": KnowledgeDelta(value=1)}),
            update(knowledge={"fact": KnowledgeDelta(value=2, supersedes="guess")}),
        ]
    )
    assert list(packet.knowledge) == ["fact"]


def test_an_error_is_shown_until_cleared_and_counted_for_good() -> None:
    packet = project([update(error=ErrorDelta(set="one")), update(error=ErrorDelta(set="two"))])
    assert (packet.last_error, packet.error_count) == ("two", 2)
    packet = project([update(error=ErrorDelta(clear=True))], start=packet)
    assert (packet.last_error, packet.error_count) == (None, 2)


def test_candidates_are_gone_after_the_next_action() -> None:
    offered = update(candidate_actions=[CandidateAction(tool="apply_fix")])
    assert project([offered]).candidate_actions
    assert project([offered, update(action=action("did it"))]).candidate_actions == []


def test_a_diagnostic_is_not_repeated() -> None:
    packet = project([update(diagnostics=["a", "b"]), update(diagnostics=["a"])])
    assert packet.diagnostics == ["a", "b"]


def test_an_excerpt_replaces_the_one_with_its_label() -> None:
    packet = project([update(excerpts=[Excerpt(label="f", text="old"), Excerpt(label="f", text="new")])])
    assert [excerpt.text for excerpt in packet.excerpts] == ["new"]


def test_hub_facts_are_as_fresh_as_their_event() -> None:
    packet = project([update(ts="2026-11-15T18:20:45.000001Z", hub=HubDelta(set={"a.py:f": {"lines": 3}}))])
    assert packet.hub_context == {"a.py:f": {"lines": 3}}
    assert packet.hub_freshness is not None
    assert packet.hub_freshness.microsecond == 1
    assert project([update(hub=HubDelta(remove=("a.py:f",)))], start=packet).hub_context is None


def test_an_event_without_a_delta_changes_nothing() -> None:
    assert apply(EMPTY, NoticeEvent(code="x", message="y")) is EMPTY


def test_a_bad_delta_becomes_a_diagnostic() -> None:
    line = b'{"v":1,"seq":4,"type":"notice","data":{"delta":{"action":{"tool":1}}}}'
    packet = project([decode(line)])
    assert len(packet.diagnostics) == 1
    assert "seq 4: unreadable delta, action.tool" in packet.diagnostics[0]


def test_a_delta_from_the_future_stops_the_projection_and_says_where() -> None:
    line = b'{"v":1,"seq":9,"type":"packet_update","data":{"delta":{"v":4}}}'
    with pytest.raises(ProjectionStopped, match=r"beyond seq 9.*version 4"):
        project([decode(line)])


def test_a_tool_result_is_folded_by_its_delta_alone() -> None:
    event = ToolResultEvent(call_id="c", tool="t", outcome="error", raw={"summary": "never shown"}, delta=PacketDelta())
    assert apply(EMPTY, event) == EMPTY
