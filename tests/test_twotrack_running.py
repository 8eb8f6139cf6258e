"""Calls that a loop runs itself: in a block, without ids, with values and reports of any type."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from remora import sync
from remora.context.recall import RECALL
from remora.events import NoticeEvent, SubmitResultEvent, ToolCallEvent, ToolResultEvent
from remora.testing import MemoryTwoTrack


class Flight(BaseModel):
    number: str
    day: date


@dataclass
class Seat:
    row: int


def of_type(events: Any, kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def test_a_block_records_the_value_that_it_sets_and_the_intent_before_it() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        async with tt.running({"id": "c1", "tool": "look", "args": {"id": 7}}) as run:
            assert tt.events[-1].type == "tool_call"
            run.value, run.outcome = {"found": run.call.args["id"]}, "partial"
    (result,) = of_type(tt.events, ToolResultEvent)
    assert (result.call_id, result.raw, result.outcome) == ("c1", {"found": 7}, "partial")


async def test_an_exception_in_a_block_is_recorded_and_goes_on() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        with pytest.raises(ValueError, match="no such"):
            async with tt.running({"tool": "look"}):
                raise ValueError("no such order")
    assert of_type(tt.events, ToolResultEvent)[0].outcome == "error"
    assert tt.packet.last_error == "ValueError: no such order"


async def test_a_cancelled_block_leaves_its_call_without_a_result() -> None:
    tt = MemoryTwoTrack()
    with pytest.raises(asyncio.CancelledError):
        async with tt, tt.running({"tool": "wait"}):
            raise asyncio.CancelledError
    assert not of_type(tt.events, ToolResultEvent)
    assert [notice.code for notice in of_type(tt.events, NoticeEvent)] == ["no_result"]


def test_a_block_without_async_does_the_same(tmp_path: Path) -> None:
    with sync.TwoTrack("g", state_dir=tmp_path) as tt:
        tt.request()
        with tt.running({"tool": "look"}) as run:
            run.value = "found"
        assert tt.last_result and tt.last_result.raw == "found"
        with pytest.raises(OSError, match="gone"), tt.running({"tool": "look"}):
            raise OSError("gone")
        assert tt.last_result.outcome == "error"


async def test_a_call_without_an_id_is_the_equal_call_of_the_newest_reply() -> None:
    asked = [{"id": f"x{city}", "tool": "look", "args": {"city": city}} for city in ("Rome", "Oslo", "Rome")]
    async with MemoryTwoTrack() as tt:
        await tt.request()
        await tt.response("", calls=[each | {"id": f"{number}"} for number, each in enumerate(asked)])
        for city in ("Oslo", "Rome", "Rome", "Rome"):
            async with tt.running({"tool": "look", "args": {"city": city}}) as run:
                run.value = city
    assert [event.call_id for event in of_type(tt.events, ToolCallEvent)] == ["1", "0", "2", "call-1"]


async def test_calls_without_ids_that_run_at_once_have_ids_of_their_own() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        made = [await tt.called({"tool": "look"}) for _ in range(3)]
        for call in made:
            await tt.returned(call.call_id, 1)
    assert len({call.call_id for call in made}) == 3


async def test_an_exception_as_the_value_is_the_error() -> None:
    async def fail() -> None:
        raise KeyError("x")

    async with MemoryTwoTrack() as tt:
        await tt.request()
        call = await tt.called({"tool": "look"})
        (value,) = await asyncio.gather(fail(), return_exceptions=True)
        event = await tt.returned(call.call_id, value)
    assert event.outcome == "error"


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (Flight(number="AH7", day=date(2026, 12, 1)), {"number": "AH7", "day": "2026-12-01"}),
        ([Flight(number="AH7", day=date(2026, 12, 1))], [{"number": "AH7", "day": "2026-12-01"}]),
        ({"seats": [Seat(3)]}, {"seats": [{"row": 3}]}),
    ],
)
async def test_models_and_dataclasses_are_recorded_as_the_data_that_they_hold(value: Any, raw: Any) -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        assert await tt.call({"tool": "look"}, lambda: value) is value
        await tt.submit(value)
    assert of_type(tt.events, ToolResultEvent)[0].raw == raw
    assert not tt.packet.diagnostics
    report = of_type(tt.events, SubmitResultEvent)[0].result
    assert report == (raw if isinstance(value, dict) else {"result": raw})


async def test_a_frameworks_copy_of_recall_is_recall_itself() -> None:
    own = {"name": "recall", "description": "Of ours.", "parameters": {}}
    async with MemoryTwoTrack() as tt:
        await tt.request(tools=[{"name": "look"}, RECALL.openai()])
        assert tt.tools[-1] is RECALL and len(tt.tools) == 2
        prompt = await tt.request(tools=[own])
        assert prompt.offers("recall") and RECALL not in tt.tools


async def test_the_tools_of_a_prompt_have_the_shapes_of_both_other_apis() -> None:
    async with MemoryTwoTrack() as tt:
        prompt = await tt.request(tools=[{"name": "look", "description": "Look.", "parameters": {"type": "object"}}])
    assert prompt.anthropic_tools() == [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]
    (tool,) = prompt.responses_tools()
    assert (tool["type"], tool["name"], tool["parameters"]) == ("function", "look", {"type": "object"})
