"""Requests with their replies become conversations: of OpenAI's chats and Responses and of Anthropic's messages."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from remora.analysis.logs import AssistantTurn, Conversation, LogFile, LogProblem, UserMessage, read_log

Json = dict[str, Any]


def found(*records: Any, name: str = "log.jsonl") -> list[Conversation | LogProblem]:
    return list(read_log(LogFile(name, io.BytesIO("\n".join(map(json.dumps, records)).encode()))))


def only(*records: Any, name: str = "log.jsonl") -> Conversation:
    (conversation,) = found(*records, name=name)
    assert isinstance(conversation, Conversation), conversation
    return conversation


def turns(conversation: Conversation) -> list[AssistantTurn]:
    return [step for step in conversation.steps() if isinstance(step, AssistantTurn)]


def said(conversation: Conversation) -> list[str]:
    return [step.text for step in conversation.steps() if isinstance(step, UserMessage)]


ASKED = {"role": "user", "content": [{"type": "text", "text": "Create a person"}]}
TOOL = {"name": "create", "description": "Creates", "input_schema": {"type": "object", "properties": {}}}
REQUEST = {"model": "claude-a", "system": [{"type": "text", "text": "Be kind."}], "messages": [ASKED], "tools": [TOOL]}
THOUGHT = {"type": "thinking", "thinking": "A name is needed.", "signature": "Ev4"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "create", "input": {"age": 31}}
CALLED = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-a-20250514",
    "content": [THOUGHT, {"type": "text", "text": "I create one."}, USE],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 443, "output_tokens": 241, "cache_read_input_tokens": 0, "service_tier": "standard"},
}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "made"}]}
LATER = REQUEST | {"messages": [ASKED, {"role": "assistant", "content": [USE]}, RESULT]}
DONE = CALLED | {"id": "msg_2", "content": [{"type": "text", "text": "Done."}], "usage": {"input_tokens": 500}}


def copied(reply: Json) -> Json:
    """A reply as the next request repeats it, without what was thought."""
    return {"role": "assistant", "content": [part for part in reply["content"] if part["type"] != "thinking"]}


def http(request: Json, reply: Json) -> Json:
    around = {"headers": {"content-type": "application/json"}, "timestamp": 1759917674.2}
    return {"request": {**around, "method": "POST", "body": request}, "response": {**around, "body": reply}}


def plain(request: Json, reply: Json) -> Json:
    return {"request": request, "response": reply}


def beside(request: Json, reply: Json) -> Json:
    return {**request, "response": reply}


@pytest.mark.parametrize("log", [plain, http, beside])
def test_exchanges_with_a_growing_history_are_one_conversation(log: Any) -> None:
    later = REQUEST | {"messages": [ASKED, copied(CALLED), RESULT]}
    chat = only(log(REQUEST, CALLED), log(later, DONE))
    first, last = turns(chat)
    assert (chat.format, chat.goal, chat.system, said(chat)) == ("Anthropic", "Create a person", "Be kind.", [])
    assert (first.thinking, first.text, first.results) == ("A name is needed.", "I create one.", {0: "made"})
    assert (first.model, first.usage["output_tokens"], "service_tier" in first.usage) == (
        "claude-a-20250514",
        241,
        False,
    )
    assert (last.text, last.usage) == ("Done.", {"input_tokens": 500})
    assert ([tool.name for tool in chat.tools], chat.unknown) == (["create"], {})


def test_exchanges_of_several_conversations_in_turn_are_told_apart() -> None:
    other = REQUEST | {"messages": [{"role": "user", "content": "Name a fruit"}]}
    fruit = CALLED | {"id": "msg_9", "content": [{"type": "text", "text": "Apple"}]}
    later = REQUEST | {"messages": [ASKED, copied(CALLED), RESULT]}
    read = found(plain(REQUEST, CALLED), plain(other, fruit), plain(later, DONE))
    chats = [each for each in read if isinstance(each, Conversation)]
    assert [(chat.source, chat.goal, len(turns(chat))) for chat in chats] == [
        ("log.jsonl#1", "Create a person", 2),
        ("log.jsonl#2", "Name a fruit", 1),
    ]


def item(kind: str, **fields: Any) -> Json:
    return {"type": kind, "id": f"{kind}_1", "status": "completed", **fields}


def response(number: int, *output: Json, **more: Any) -> Json:
    around = {"object": "response", "id": f"resp_{number}", "model": "gpt-4.1-2025-04-14", "output": list(output)}
    return around | {"usage": {"input_tokens": 57, "output_tokens_details": {"reasoning_tokens": 0}}} | more


QUESTION = {"role": "user", "content": "Reply with the code."}
FUNCTION = {"type": "function", "name": "get_code", "description": None, "parameters": {"properties": {}}}
CALL = item("function_call", call_id="call_1", name="get_code", arguments="{}")
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "CODE-5222"}
ANSWER = item("message", role="assistant", content=[{"type": "output_text", "text": "CODE-5222", "annotations": []}])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"conversation": "conv_1"}, {"conversation": "conv_1", "input": [OUTPUT]}),
        ({}, {"previous_response_id": "resp_1", "input": [OUTPUT]}),
        ({}, {"input": [QUESTION, item("reasoning", summary=[]), CALL, OUTPUT]}),
    ],
    ids=["by conversation", "by the reply before", "by what it repeats"],
)
def test_responses_continue_each_other(first: Json, second: Json) -> None:
    asked = {"model": "gpt-4.1", "instructions": "Use the tool.", "tools": [FUNCTION], "input": [QUESTION]}
    chat = only(plain(asked | first, response(1, CALL)), plain(asked | second, response(2, ANSWER)))
    called, told = turns(chat)
    assert (chat.format, chat.system, chat.goal) == ("Responses", "Use the tool.", "Reply with the code.")
    assert (called.calls[0].tool, called.results, called.usage) == ("get_code", {0: "CODE-5222"}, {"input_tokens": 57})
    assert (told.text, told.model, chat.unknown) == ("CODE-5222", "gpt-4.1-2025-04-14", {})


def test_items_about_a_server_are_no_part_of_the_conversation_and_unknown_ones_are_counted() -> None:
    listed = item("mcp_list_tools", server_label="games", tools=[{"name": "get_games"}])
    called = item("mcp_call", name="get_games", arguments="{}", output='["Sekiro"]', error=None)
    chat = only(plain({"input": "What games?"}, response(1, listed, called, item("new_thing"), ANSWER)), name="a.json")
    (turn,) = turns(chat)
    assert (chat.goal, turn.calls[0].tool, turn.results, turn.text) == (
        "What games?",
        "get_games",
        {0: '["Sekiro"]'},
        "CODE-5222",
    )
    assert chat.unknown == {"new_thing": 1}


def test_replies_alone_are_turns_without_a_task() -> None:
    chat = only(response(1, CALL), response(2, ANSWER, previous_response_id="resp_1"))
    assert [turn.text for turn in turns(chat)] == ["", "CODE-5222"]


def events(*given: Json) -> str:
    return "".join(f"event: {each.get('type', 'x')}\ndata: {json.dumps(each)}\n\n" for each in given) + "data: [DONE]\n"


def test_a_streamed_message_of_anthropic_is_put_together() -> None:
    def delta(index: int, kind: str, **fields: Any) -> Json:
        return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}

    stream = events(
        {"type": "message_start", "message": {"role": "assistant", "model": "m", "usage": {"input_tokens": 4}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        delta(0, "text_delta", text="I look"),
        delta(0, "text_delta", text="."),
        {"type": "content_block_start", "index": 1, "content_block": USE | {"input": {}}},
        delta(1, "input_json_delta", partial_json='{"age":'),
        delta(1, "input_json_delta", partial_json=" 31}"),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    )
    around = {"headers": {}, "status_code": 200}
    chat = only(
        {"request": {"headers": {}, "body": REQUEST}, "response": {**around, "body_raw": stream}}, name="a.json"
    )
    (turn,) = turns(chat)
    assert (turn.text, turn.calls[0].args, turn.usage) == (
        "I look.",
        {"age": 31},
        {"input_tokens": 4, "output_tokens": 9},
    )


def test_a_streamed_chat_and_a_streamed_response_are_put_together() -> None:
    def chunk(**delta: Any) -> Json:
        return {"model": "m", "choices": [{"delta": delta}]}

    call = {"index": 0, "id": "c1", "function": {"name": "create", "arguments": ""}}
    rest = {"index": 0, "function": {"arguments": '{"age": 31}'}}
    streamed = events(chunk(content="I "), chunk(content="look"), chunk(tool_calls=[call]), chunk(tool_calls=[rest]))
    sides = {
        "request": {"headers": {}, "body": {"messages": [ASKED]}},
        "response": {"headers": {}, "body_raw": streamed},
    }
    (turn,) = turns(only(sides, name="a.json"))
    assert (turn.text, turn.calls[0].call_id, turn.calls[0].args) == ("I look", "c1", {"age": 31})
    whole = events({"type": "response.completed", "response": response(1, ANSWER)})
    sides = {"request": {"headers": {}, "body": {"input": "Hi"}}, "response": {"headers": {}, "body_raw": whole}}
    assert [turn.text for turn in turns(only(sides, name="a.json"))] == ["CODE-5222"]


def test_requests_that_failed_or_have_no_messages_are_counted() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    counted = {"request": {"model": "m"}, "response": {"input_tokens": 9}}
    chat = only(plain(REQUEST, error), plain(REQUEST, CALLED), counted)
    assert chat.unknown == {"request without a reply": 1, "record without messages": 1}
    assert len(turns(chat)) == 1


def vcr(request: Json, reply: Json) -> Json:
    around = {"headers": {"content-type": ["application/json"]}}
    return {
        "request": {**around, "body": json.dumps(request)},
        "response": {**around, "body": {"string": json.dumps(reply)}},
    }


def har(request: Json, reply: Json) -> Json:
    around = {"headers": []}
    sent = {**around, "method": "POST", "postData": {"mimeType": "application/json", "text": json.dumps(request)}}
    return {"request": sent, "response": {**around, "content": {"size": 9, "text": json.dumps(reply)}}}


@pytest.mark.parametrize("log", [vcr, har])
def test_bodies_that_are_kept_as_text_are_read(log: Any) -> None:
    later = REQUEST | {"messages": [ASKED, copied(CALLED), RESULT]}
    chat = only(log(REQUEST, CALLED), log(later, DONE))
    assert [turn.text for turn in turns(chat)] == ["I create one.", "Done."]
    assert turns(chat)[0].results == {0: "made"}


def test_a_copy_of_a_reply_without_its_text_continues_the_conversation() -> None:
    chat = only(plain(REQUEST, CALLED), plain(LATER, DONE))
    assert [turn.text for turn in turns(chat)] == ["I create one.", "Done."]


def test_a_request_that_failed_is_no_turn_and_a_refusal_is_one() -> None:
    (problem,) = found(plain({"messages": [ASKED]}, {"error": {"message": "no such model"}}), name="one.json")
    assert isinstance(problem, LogProblem)
    refused = {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "I cannot do that."}}]}
    assert [turn.text for turn in turns(only(plain({"messages": [ASKED]}, refused)))] == ["I cannot do that."]
