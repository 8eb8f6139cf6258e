"""Loops that run their own tools, and what they may do wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import remora
from remora.errors import BudgetError, ToolArgumentsInvalid, UsageError
from remora.events import (
    AgentEndEvent,
    AgentStartEvent,
    Call,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from remora.testing import MemoryTwoTrack
from remora.trace import read_events, verify

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
COUNT = {"type": "function", "function": {"name": "count", "description": "Count words.", "parameters": SCHEMA}}
ADD = {"name": "add", "description": "Add.", "input_schema": SCHEMA}


def of_type(events: Any, kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def test_an_intent_is_durable_when_called_returns(tmp_path: Path) -> None:
    async with remora.TwoTrack("g", state_dir=tmp_path) as tt:
        await tt.request()
        call = await tt.called({"id": "c1", "name": "count", "arguments": '{"text": "a b"}'})
        assert call == Call(call_id="c1", tool="count", args={"text": "a b"})
        assert list(read_events(tt.path))[-1].type == "tool_call"
        event = await tt.returned("c1", {"words": 2})
    assert (event.outcome, event.raw) == ("success", {"words": 2})
    assert tt.last_result == event


async def test_calls_may_return_in_another_order() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        for call_id in ("a", "b"):
            await tt.called(Call(call_id=call_id, tool=f"tool_{call_id}"))
        await tt.returned("b", "second")
        await tt.returned("a", error=ValueError("no"))
    assert [(event.tool, event.outcome) for event in of_type(tt.events, ToolResultEvent)] == [
        ("tool_b", "success"),
        ("tool_a", "error"),
    ]
    assert tt.packet.last_error == "ValueError: no"


@pytest.mark.parametrize("outcome", ["success", "error", "partial", "unknown"])
async def test_the_outcome_that_a_loop_states_is_the_recorded_one(outcome: Any) -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        await tt.called(Call(call_id="a", tool="t"))
        assert (await tt.returned("a", "3 rows", outcome=outcome)).outcome == outcome
        prompt = await tt.request()
    assert ("failed" in prompt.text) == (outcome == "error")
    assert bool(tt.packet.last_error) == (outcome == "error")


async def test_a_stated_success_clears_what_the_value_looked_like() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        await tt.called(Call(call_id="a", tool="t"))
        await tt.returned("a", "Traceback (most recent call last)\nKeyError: 1", outcome="success")
    assert tt.packet.last_error is None
    assert tt.packet.recent_actions[-1].outcome == "success"


async def test_call_returns_the_value_and_raises_on_request() -> None:
    async with MemoryTwoTrack(tools=[COUNT]) as tt:
        await tt.request()
        assert await tt.call({"tool": "count", "args": {"text": "a"}}, lambda text: [text]) == ["a"]
        failed = await tt.call({"tool": "count"}, lambda: 1 / 0)
        assert failed["error"] == "ZeroDivisionError: division by zero"
        with pytest.raises(ZeroDivisionError):
            await tt.call({"tool": "count"}, lambda: 1 / 0, raises=True)
        with pytest.raises(ToolArgumentsInvalid):
            await tt.call({"name": "count", "arguments": "{nonsense"}, lambda: None, raises=True)
    assert [event.outcome for event in of_type(tt.events, ToolResultEvent)] == ["success", "error", "error", "error"]


async def test_tools_and_system_text_may_change_in_every_turn_and_the_stream_has_them(tmp_path: Path) -> None:
    async with remora.TwoTrack("g", state_dir=tmp_path) as tt:
        first = await tt.request(tools=[COUNT], system="Be brief.")
        again = await tt.request(tools=[COUNT])
        second = await tt.request(tools=[COUNT, ADD], system="Be exact.")
    assert [tool["function"]["name"] for tool in first.openai_tools()] == ["count"]
    assert (first.system, again.system, second.system) == ("Be brief.", "Be brief.", "Be exact.")
    assert first.text == first.messages[-1]["content"]
    receipts = of_type(read_events(tt.path), ModelRequestEvent)
    named = [[tool["name"] for tool in receipt.tools] for receipt in receipts]
    assert named == [["count", "recall"], [], ["count", "add", "recall"]]
    assert receipts[2].limit > receipts[0].limit, "the packet keeps its 3,000 tokens beside larger tools"


async def test_tool_schemas_that_are_large_are_kept_in_a_blob(tmp_path: Path) -> None:
    large = [{"name": f"tool{n}", "description": "x" * 2000} for n in range(20)]
    async with remora.TwoTrack("g", state_dir=tmp_path) as tt:
        await tt.request(tools=large)
    (receipt,) = of_type(read_events(tt.path), ModelRequestEvent)
    assert receipt.tools == ()
    assert receipt.tools_ref is not None
    assert verify(tt.path).status == "sealed"


async def test_tools_that_do_not_fit_the_budget_are_refused_and_change_nothing() -> None:
    async with MemoryTwoTrack(tools=[COUNT], budget=800) as tt:
        with pytest.raises(BudgetError, match="limit of 800") as refused:
            await tt.request(tools=[{"name": "long", "description": "word " * 2000}])
        assert "Raise `budget` to" in str(refused.value.hint)
        prompt = await tt.request()
    assert [tool.name for tool in prompt.tools] == ["count"]
    assert prompt.turn == 1


REPLIES: dict[str, Any] = {
    "openai chat": {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": "hm",
                    "tool_calls": [{"id": "c1", "function": {"name": "count", "arguments": '{"text": "a"}'}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 7},
    },
    "openai responses": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hm"}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "count", "arguments": '{"text": "a"}'},
        ],
        "status": "completed",
        "usage": {"input_tokens": 7},
    },
    "anthropic": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "secret"},
            {"type": "text", "text": "hm"},
            {"type": "tool_use", "id": "c1", "name": "count", "input": {"text": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 4},
    },
}


def as_object(value: Any) -> Any:
    if isinstance(value, dict) and "text" not in value:
        return SimpleNamespace(**{key: as_object(item) for key, item in value.items()})
    return [as_object(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("shape", REPLIES)
@pytest.mark.parametrize("convert", [lambda reply: reply, as_object], ids=["dict", "object"])
async def test_a_reply_of_any_api_is_read_alike(shape: str, convert: Any) -> None:
    async with MemoryTwoTrack(tools=[COUNT]) as tt:
        await tt.request()
        calls = await tt.response(convert(REPLIES[shape]))
    assert calls == (Call(call_id="c1", tool="count", args={"text": "a"}),)
    (recorded,) = of_type(tt.events, ModelResponseEvent)
    assert recorded.text == "hm"
    assert recorded.finish in ("tool_calls", "completed", "tool_use")
    notices = [event.message for event in of_type(tt.events, NoticeEvent)]
    assert all("The server read 7 of" in message for message in notices)
    assert len(notices) == 1


async def test_plain_text_is_a_reply_with_the_calls_that_a_program_found_in_it() -> None:
    async with MemoryTwoTrack(tools=[COUNT]) as tt:
        await tt.request()
        calls = await tt.response("I count. <count>a</count>", calls=[{"tool": "count", "args": {"text": "a"}}])
        await tt.request()
        assert await tt.response("One word.") == ()
    assert [call.args for call in calls] == [{"text": "a"}]
    assert [event.text for event in of_type(tt.events, ModelResponseEvent)] == [
        "I count. <count>a</count>",
        "One word.",
    ]


async def test_a_failure_outside_tools_is_shown_in_the_next_prompt() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.error("The answer is no valid `Order`: total is missing")
        prompt = await tt.request()
    assert "Last error: The answer is no valid `Order`: total is missing" in prompt.text


async def test_open_and_close_do_what_the_block_does(tmp_path: Path) -> None:
    tt = remora.TwoTrack("g", name="nightly", state_dir=tmp_path)
    await tt.open()
    await tt.close("the queue is gone")
    await tt.close()
    events = list(read_events(tt.path))
    assert events[0].name == "nightly"
    assert [event.type for event in events] == ["agent_start", "agent_error", "agent_end"]
    assert (events[-1].outcome, events[-1].reason) == ("error", "error")


async def test_a_cancelled_block_is_sealed_as_cancelled() -> None:
    tt = MemoryTwoTrack()

    async def work() -> None:
        async with tt:
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)  # it has begun
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert of_type(tt.events, AgentEndEvent)[0].outcome == "cancelled"


async def test_a_call_that_never_returned_is_reported_at_the_end() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.called(Call(call_id="a", tool="slow"))
    assert [event.code for event in of_type(tt.events, NoticeEvent)] == ["no_result"]
    assert tt.events[-1].type == "agent_end"


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda tt: tt.call({"args": {}}, print), "names no tool"),
        (lambda tt: tt.called({"id": "c", "function": {"arguments": "{}"}}), "names no tool"),
        (lambda tt: tt.returned("c", 1), "Call `c` is not open"),
        (lambda tt: tt.response("hello"), "no request that waits"),
        (lambda tt: tt.open(), "was opened before"),
    ],
)
async def test_a_mistake_of_the_loop_is_told_and_records_nothing(mistake: Any, told: str) -> None:
    async with MemoryTwoTrack(tools=[COUNT]) as tt:
        with pytest.raises(UsageError, match=told):
            await mistake(tt)
        await tt.request()
        await tt.response("still works")
    assert not of_type(tt.events, ToolCallEvent)


async def test_a_second_reply_to_one_request_is_told() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        await tt.response("one")
        with pytest.raises(UsageError, match="no request that waits"):
            await tt.response("two")


async def test_two_turns_at_once_are_told(tmp_path: Path) -> None:
    async with remora.TwoTrack("g", state_dir=tmp_path) as tt:
        done = await asyncio.gather(tt.request(), tt.request(), return_exceptions=True)
        assert [type(each).__name__ for each in done] == ["Prompt", "UsageError"]
        assert "one turn at a time" in str(done[1])


async def test_calls_are_valid_if_nobody_said_which_tools_there_are() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        assert [call.tool for call in await tt.response("", calls=[{"tool": "anything"}])] == ["anything"]


async def test_a_call_with_an_open_id_is_told() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.called(Call(call_id="a", tool="t"))
        with pytest.raises(UsageError, match="has no result yet"):
            await tt.called(Call(call_id="a", tool="t"))


async def test_a_track_that_is_not_open_says_so() -> None:
    with pytest.raises(UsageError, match="not open"):
        await MemoryTwoTrack().request()


async def test_a_call_without_a_name_in_a_reply_is_told_to_the_model() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        assert await tt.response({"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}) == ()
    assert tt.packet.last_error == "A call names no tool"


def test_a_small_budget_names_the_parameter_of_its_reader() -> None:
    with pytest.raises(BudgetError) as refused:
        remora.TwoTrack("g", budget=100)
    assert "`budget`" in str(refused.value.hint)


async def test_a_run_has_the_name_that_was_given() -> None:
    async with MemoryTwoTrack() as tt:
        pass
    assert of_type(tt.events, AgentStartEvent)[0].name == ""
