from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context import ContextManager, DecisionPacket
from remora.context.middleware import difference
from remora.context.projection import apply
from remora.errors import TraceError
from remora.events import CandidateAction, Event, Excerpt, NoticeEvent, PacketUpdateEvent

START = {"agent_id": "01A", "goal": "g", "operation": "lint", "node_id": "n"}


class Recorder:
    def __init__(self) -> None:
        self.events: list[Event] = []

    async def __call__(self, drafts: Sequence[Event]) -> Sequence[Event]:
        self.events += drafts
        return drafts


def folded(before: DecisionPacket, after: DecisionPacket) -> DecisionPacket:
    delta = difference(before, after)
    return apply(before, NoticeEvent(turn=before.turn, delta=delta)) if delta else before


def enrich(packet: DecisionPacket) -> None:
    packet.update_knowledge("callers", 3)
    packet.record_error("stale cache")
    packet.diagnostics.append("hub is old")
    packet.candidate_actions = [CandidateAction(tool="t")]
    packet.state_summary = "half way"
    packet.excerpts.append(Excerpt(label="a.py", text="x"))
    packet.hub_context = {"n": {"callers": 3}}
    packet.extensions["depth"] = 2
    packet.add_action("hub", "looked", "success")


def test_all_that_a_hook_may_change_arrives() -> None:
    before = DecisionPacket(**START, knowledge={}, turn=4)
    after = before.model_copy(deep=True)
    enrich(after)
    assert folded(before, after) == after


def test_facts_and_errors_can_be_taken_away() -> None:
    before = DecisionPacket(**START, last_error="bad", error_count=2, hub_context={"a": 1, "b": 2})
    after = before.model_copy(deep=True)
    after.clear_error()
    after.hub_context = {"b": 2}
    result = folded(before, after)
    assert (result.last_error, result.error_count, result.hub_context) == (None, 2, {"b": 2})


@pytest.mark.parametrize(
    ("field", "value"), [("goal", "another"), ("turn", 9), ("node_id", "x"), ("constraints", {"max_turns": 1})]
)
def test_what_only_the_stream_may_say_stays_and_is_told(field: str, value: Any) -> None:
    before = DecisionPacket(**START)
    after = before.model_copy(update={field: value})
    result = folded(before, after)
    assert getattr(result, field) == getattr(before, field)
    assert result.diagnostics == [f"Middleware may not change {field}: it stays as it was"]


def test_knowledge_is_not_forgotten_without_a_successor() -> None:
    before = DecisionPacket(**START)
    before.update_knowledge("k", 1)
    result = folded(before, before.model_copy(update={"knowledge": {}}))
    assert list(result.knowledge) == ["k"]
    assert "Middleware may not change knowledge k" in result.diagnostics[0]


def test_a_value_that_no_stream_can_hold_is_refused() -> None:
    before = DecisionPacket(**START)
    after = before.model_copy(deep=True)
    after.update_knowledge("k", object())
    with pytest.raises(TraceError, match="JSON cannot hold"):
        difference(before, after)


@given(st.dictionaries(st.text(max_size=4), st.integers(-5, 5) | st.text(max_size=4) | st.booleans()), st.booleans())
def test_whatever_knowledge_a_hook_adds_is_known_afterwards(news: dict[str, Any], failed: bool) -> None:
    before = DecisionPacket(**START)
    after = before.model_copy(deep=True)
    for key, value in news.items():
        after.update_knowledge(key, value)
    if failed:
        after.record_error("e")
    assert folded(before, after) == after


async def test_each_change_is_recorded_under_the_hooks_name() -> None:
    async def fetch(packet: DecisionPacket) -> None:
        await asyncio.sleep(0)
        packet.update_knowledge("fetched", packet.knowledge["callers"].value)

    recorder = Recorder()
    ctx = ContextManager(START, record=recorder)
    await ctx.middleware([enrich, lambda packet: None, fetch])
    sources = [event.source for event in recorder.events if isinstance(event, PacketUpdateEvent)]
    assert [source.rpartition(".")[2] for source in sources] == ["enrich", "fetch"]
    assert ctx.packet.knowledge["fetched"].value == 3


async def test_a_hook_that_raises_changes_nothing() -> None:
    def broken(packet: DecisionPacket) -> None:
        packet.update_knowledge("half", 1)
        raise RuntimeError("no")

    ctx = ContextManager(START)
    with pytest.raises(RuntimeError):
        await ctx.middleware([broken])
    with pytest.raises(RuntimeError):
        ctx.run_middleware([broken])
    assert ctx.packet == ContextManager(START).packet


async def test_what_happens_while_a_hook_waits_is_kept() -> None:
    async def slow(packet: DecisionPacket) -> None:
        ctx.apply_event({"type": "tool_result", "tool": "t", "data": {"summary": "meanwhile"}})
        packet.update_knowledge("k", 1)

    ctx = ContextManager(START)
    await ctx.middleware([slow])
    assert (ctx.packet.recent_history, list(ctx.packet.knowledge)) == (["meanwhile"], ["k"])


def test_without_a_recorder_the_same_is_only_folded() -> None:
    ctx = ContextManager(START)
    ctx.run_middleware([enrich])
    assert ctx.packet.knowledge["callers"].value == 3
    assert ctx.packet.hub_freshness is not None
