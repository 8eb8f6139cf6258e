from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from remora.context import ContextManager, DecisionPacket
from remora.context.contracts import make_error_result, make_partial_result, make_success_result
from remora.context.projection import project
from remora.context.summarizers import LinterSummarizer, Summarizer
from remora.errors import TraceError
from remora.events import (
    AgentStartEvent,
    Event,
    HubUpdateEvent,
    NoticeEvent,
    PacketDelta,
    PacketUpdateEvent,
    decode,
    encode,
)

START = {
    "agent_id": "01A",
    "goal": "Fix the cart",
    "operation": "lint",
    "node_id": "cart.py:load",
    "node_summary": "function 'load' in cart.py",
}


class Stream:
    """A recorder that keeps the bytes."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    async def record(self, drafts: Sequence[Event]) -> Sequence[Event]:
        events = [draft.model_copy(update={"seq": len(self.lines) + place}) for place, draft in enumerate(drafts)]
        self.lines += map(encode, events)
        return events

    @property
    def events(self) -> list[Event]:
        return [decode(line) for line in self.lines]


class Facts:
    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[list[str]] = []

    async def get_context(self, node_ids: list[str]) -> Any:
        self.asked.append(node_ids)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def manager(summarizers: dict[str, Summarizer] | None = None, **settings: Any) -> ContextManager:
    return ContextManager(START, summarizers, **settings)


def after(*results: Any, tool: str = "run_linter", **summarizers: Summarizer) -> DecisionPacket:
    ctx = manager(summarizers)
    for result in results:
        ctx.apply_event({"type": "tool_result", "tool_name": tool, "data": result})
    return ctx.packet


def test_a_packet_begins_with_what_it_is_about_and_nothing_else() -> None:
    packet = manager().packet
    assert (packet.agent_id, packet.goal, packet.operation, packet.node_id) == tuple(START.values())[:4]
    assert packet == DecisionPacket(**START)
    assert "node_summary" not in ContextManager({**START, "node_summary": ""}).packet.model_dump(exclude_defaults=True)


@pytest.mark.parametrize("missing", ["agent_id", "goal", "operation", "node_id"])
def test_no_packet_begins_without_what_it_is_about(missing: str) -> None:
    with pytest.raises(KeyError, match=missing):
        ContextManager({key: value for key, value in START.items() if key != missing})


def test_the_kind_of_event_may_be_called_type_or_event_and_the_tool_tool_or_tool_name() -> None:
    ctx = manager()
    ctx.apply_event({"event": "tool_result", "tool": "a", "data": {"summary": "one"}})
    ctx.apply_event({"type": "tool_result", "data": {"summary": "two"}})
    assert [(action.tool, action.summary) for action in ctx.packet.recent_actions] == [("a", "one"), ("unknown", "two")]


@pytest.mark.parametrize("kind", ["model_request", "model_response", "tool_call", "whatever", ""])
def test_other_events_change_nothing(kind: str) -> None:
    ctx = manager()
    ctx.apply_event({"type": kind, "turn": 9, "data": {"summary": "no", "knowledge_delta": {"k": 1}}})
    assert ctx.packet == manager().packet


def test_a_turn_is_counted_or_said() -> None:
    ctx = manager()
    ctx.increment_turn()
    ctx.apply_event({"type": "turn_start", "turn": 7})
    ctx.apply_event({"type": "turn_start", "turn": "eight"})
    ctx.increment_turn()
    assert ctx.packet.turn == 8


def test_an_error_stands_until_a_tool_succeeds_and_stays_counted() -> None:
    failed = after(make_error_result("no such file"))
    assert (failed.last_error, failed.error_count, failed.recent_actions[0].outcome) == ("no such file", 1, "error")
    partly = after(make_error_result("no such file"), make_partial_result({}, "half done"))
    assert (partly.last_error, partly.error_count) == (None, 1)


def test_an_error_without_text_is_told_by_its_summary() -> None:
    assert after({"outcome": "error", "summary": "could not write"}).last_error == "could not write"


def test_an_error_of_none_is_no_failure() -> None:
    assert after({"result": 3, "error": None}).recent_actions[0].summary == "Executed run_linter"


def test_knowledge_is_extracted_where_a_tool_gives_none() -> None:
    packet = after({"result": {"errors": [1, 2], "fixed": 1}}, run_linter=LinterSummarizer())
    assert {key: entry.value for key, entry in packet.knowledge.items()} == {
        "lint_errors_remaining": 2,
        "lint_errors_fixed": 1,
    }
    assert packet.recent_actions[0].summary == "Fixed 1 lint errors, 2 remaining"


def test_knowledge_that_supersedes_takes_the_older_key_away() -> None:
    packet = after(
        make_success_result(None, "s", {"errors": 3}),
        make_success_result(None, "s", {"errors_left": {"value": 1, "supersedes": "errors"}}),
    )
    assert list(packet.knowledge) == ["errors_left"]
    assert packet.knowledge["errors_left"].supersedes == "errors"


def test_a_summarizer_registered_later_is_used() -> None:
    ctx = manager()
    ctx.register_summarizer("run_linter", LinterSummarizer())
    ctx.apply_event({"type": "tool_result", "tool_name": "run_linter", "data": {"errors": []}})
    assert ctx.packet.recent_history == ["No lint errors found"]


def test_a_prompt_template_gets_plain_values() -> None:
    ctx = manager()
    ctx.packet.turn = 2
    ctx.packet.add_action("t", "did it", "success")
    ctx.packet.update_knowledge("k", 3)
    shown = ctx.get_prompt_context()
    assert (shown["turn"], shown["knowledge"]) == (2, {"k": 3})
    assert shown["recent_actions"] == [{"tool": "t", "summary": "did it", "outcome": "success"}]


async def test_fresh_facts_take_the_place_of_those_before() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    ctx = manager(clock=lambda: moment)
    ctx.set_hub_client(hub := Facts({"a": 1, "b": 2}, {"b": 3}))
    await ctx.pull_hub_context()
    await ctx.pull_hub_context()
    assert hub.asked == [["cart.py:load"]] * 2
    assert (ctx.packet.hub_context, ctx.packet.hub_freshness) == ({"b": 3}, moment)
    ctx.apply_event({"type": "hub_update", "context": {"c": 4}})
    assert ctx.packet.hub_context == {"c": 4}


@pytest.mark.parametrize("answer", [{}, None, RuntimeError("down")])
async def test_a_hub_that_fails_or_knows_nothing_changes_nothing(answer: Any) -> None:
    ctx = manager()
    await ctx.pull_hub_context()
    ctx.set_hub_client(Facts(answer))
    await ctx.pull_hub_context()
    assert ctx.packet == manager().packet


async def test_every_change_of_a_recorded_packet_is_in_the_stream_that_folds_to_it() -> None:
    stream = Stream()
    ctx = manager(record=stream.record)
    await ctx.record(AgentStartEvent(**START, node={"summary": START["node_summary"]}))
    await ctx.next_turn()
    ctx.set_hub_client(Facts({"a": 1}))
    await ctx.pull_hub_context()
    await ctx.middleware([lambda packet: packet.update_knowledge("k", "v")])
    assert [event.type for event in stream.events] == ["agent_start", "turn_start", "hub_update", "packet_update"]
    assert isinstance(stream.events[2], HubUpdateEvent)
    assert project(stream.events) == ctx.packet
    assert (ctx.packet.knowledge["k"].seq, ctx.packet.turn) == (3, 1)


def test_a_recorded_packet_cannot_be_changed_behind_the_stream() -> None:
    ctx = manager(record=Stream().record)
    with pytest.raises(TraceError, match="without being recorded") as refused:
        ctx.increment_turn()
    assert refused.value.hint == "Use `await manager.next_turn()`"
    with pytest.raises(TraceError):
        ctx.run_middleware([])
    assert ctx.packet == manager().packet


async def test_a_typed_event_is_folded_as_it_is() -> None:
    ctx = manager()
    ctx.apply_event(NoticeEvent(delta=PacketDelta(state_summary="half way")))
    ctx.apply_event(PacketUpdateEvent(source="me", delta=PacketDelta(diagnostics=("look",))))
    assert (ctx.packet.state_summary, ctx.packet.diagnostics) == ("half way", ["look"])
