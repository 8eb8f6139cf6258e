"""`fold`: a growing history in, a bounded prompt out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.events import Event, ModelResponseEvent, NoticeEvent, ToolCallEvent, ToolResultEvent, UserInputEvent
from remora.testing import MemoryTwoTrack
from remora.twotrack._history import Seen, read_history

CALL = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"text": "a b"}'}}
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Count the words"},
    {"role": "assistant", "content": "Counting.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "2 words"},
    {"role": "assistant", "content": "Two."},
    {"role": "user", "content": "Sure?"},
]
ANTHROPIC = [
    {"role": "user", "content": "Count the words"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Counting."},
            {"type": "tool_use", "id": "c1", "name": "count", "input": {"text": "a b"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "2 words"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Two."}]},
    {"role": "user", "content": [{"type": "text", "text": "Sure?"}]},
]
RESPONSES = [
    {"role": "user", "content": "Count the words"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Counting."}]},
    {"type": "function_call", "call_id": "c1", "name": "count", "arguments": '{"text": "a b"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "2 words"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two."}]},
    {"role": "user", "content": "Sure?"},
]
COUNT = {"name": "count", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}


def of_type(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("history", [CHAT, ANTHROPIC, RESPONSES], ids=["chat", "anthropic", "responses"])
async def test_each_turn_records_only_what_is_new(history: list[Any]) -> None:
    tt = MemoryTwoTrack("")
    for end in range(1, len(history) + 1):
        newest = history[end - 1]
        if newest.get("role") not in ("system", "assistant") and newest.get("type") != "function_call":
            prompt = await tt.fold(history[:end], tools=[COUNT])
    await tt.close()
    assert tt.goal == "Count the words"
    assert [event.text for event in of_type(tt.events, ModelResponseEvent)] == ["Counting.", "Two."]
    (result,) = of_type(tt.events, ToolResultEvent)
    assert (result.tool, result.raw) == ("count", "2 words")
    assert [event.text for event in of_type(tt.events, UserInputEvent)] == ["Sure?"]
    assert [event.code for event in of_type(tt.events, NoticeEvent)] == ["recorded_late"]
    assert "count(text=a b): 2 words" in prompt.text
    assert "user: Sure?" in prompt.text
    assert len(prompt.messages) == 2


async def test_the_system_text_of_the_history_is_the_system_text() -> None:
    tt = MemoryTwoTrack("")
    assert (await tt.fold(CHAT[:2])).system == "Be brief."
    assert (await tt.fold(CHAT[:2], system="Mine.")).system == "Mine."


async def test_what_a_loop_records_itself_is_not_recorded_again() -> None:
    tt = MemoryTwoTrack("")
    await tt.fold(CHAT[:2], tools=[COUNT])
    (call,) = await tt.response(CHAT[2])
    await tt.called(call)
    await tt.returned(call.call_id, "2 words")
    await tt.fold(CHAT[:4], tools=[COUNT])
    await tt.response(CHAT[4])
    await tt.fold(CHAT, tools=[COUNT])
    await tt.close()
    assert len(of_type(tt.events, ModelResponseEvent)) == 2
    assert len(of_type(tt.events, ToolResultEvent)) == 1
    assert of_type(tt.events, NoticeEvent) == []


async def test_a_call_that_the_framework_answers_by_itself_keeps_its_arguments() -> None:
    tt = MemoryTwoTrack("")
    await tt.fold(CHAT[:2], tools=[COUNT])
    await tt.response(CHAT[2])
    prompt = await tt.fold(CHAT[:4], tools=[COUNT])
    await tt.close()
    (made,) = of_type(tt.events, ToolCallEvent)
    assert made.args == {"text": "a b"}
    assert "count(text=a b): 2 words" in prompt.text


async def test_a_conversation_from_before_is_recorded_without_receipts() -> None:
    tt = MemoryTwoTrack("")
    prompt = await tt.fold(CHAT, tools=[COUNT])
    assert prompt.turn == 3
    assert [event.type for event in tt.events].count("model_request") == 1
    assert "count(text=a b): 2 words" in prompt.text


async def test_a_history_that_was_cut_loses_nothing_and_says_so() -> None:
    tt = MemoryTwoTrack("")
    await tt.fold(CHAT, tools=[COUNT])
    before = len(tt.events)
    prompt = await tt.fold([*CHAT[4:], {"role": "user", "content": "Really?"}], tools=[COUNT])
    new = tt.events[before:]
    assert [event.type for event in new] == ["notice", "user_input", "turn_start", "model_request"]
    assert "2 words" in prompt.text


async def test_a_failed_result_is_an_error() -> None:
    tt = MemoryTwoTrack("")
    failed = {"type": "tool_result", "tool_use_id": "c1", "content": "no such file", "is_error": True}
    await tt.fold([*ANTHROPIC[:2], {"role": "user", "content": [failed]}])
    assert of_type(tt.events, ToolResultEvent)[0].outcome == "error"
    assert tt.packet.last_error is not None


ITEMS = st.lists(
    st.one_of(
        st.builds(lambda text: {"role": "user", "content": text}, st.sampled_from(["a", "b", "c"])),
        st.builds(lambda text: {"role": "assistant", "content": text}, st.sampled_from(["x", "y"])),
    ),
    max_size=12,
)


@given(ITEMS, st.data())
def test_whatever_grows_is_seen_once(history: list[Any], data: st.DataObject) -> None:
    seen, found = Seen(), []
    at = 0
    while at < len(history):
        at = data.draw(st.integers(at + 1, len(history)))
        _, items = read_history(history[:at])
        # A reply may still grow while it is the last: a history is read when it is the model's turn.
        news, changed = seen.news([item for item in items if type(item).__name__ == "Said"])
        assert not changed
        found += news
    assert [item.text for item in found] == [each["content"] for each in history if each["role"] == "user"]
