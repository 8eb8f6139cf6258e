"""Spans are read in the conventions that programs use: OpenTelemetry, OpenLLMetry, OpenInference, Pydantic AI."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from remora.analysis.logs import AssistantTurn, Conversation, LogFile, LogProblem, UserMessage, read_log

Span = dict[str, Any]


def value(given: Any) -> Any:
    """An attribute's value as OTLP writes it."""
    if isinstance(given, bool):
        return {"boolValue": given}
    return {"intValue": str(given)} if isinstance(given, int) else {"stringValue": given}


def span(own: str, parent: str, start: int, given: dict[str, Any], trace: str = "t", **more: Any) -> Span:
    pairs = [{"key": key, "value": value(each)} for key, each in given.items()]
    ids = {"traceId": trace, "spanId": own, "parentSpanId": parent, "startTimeUnixNano": str(start)}
    return {**ids, "name": own, "attributes": pairs, **more}


def read(*spans: Span) -> list[Conversation | LogProblem]:
    document = {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
    return list(read_log(LogFile("spans.json", io.BytesIO(json.dumps(document).encode()))))


def only(found: list[Conversation | LogProblem]) -> Conversation:
    (conversation,) = found
    assert isinstance(conversation, Conversation), conversation
    return conversation


def turns(conversation: Conversation) -> list[AssistantTurn]:
    return [step for step in conversation.steps() if isinstance(step, AssistantTurn)]


def parts(role: str, *given: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(given)}


ASKED = parts("user", {"type": "text", "content": "What is the weather in Portland?"})
CALLED = parts("assistant", {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {"location": "P"}})
RESULT = parts("tool", {"type": "tool_call_response", "id": "c1", "response": "stormy"})
SAID = parts("assistant", {"type": "text", "content": "Stormy."})


def chat(own: str, start: int, sent: list[Any], answered: list[Any], **more: Any) -> Span:
    given = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    messages = {"gen_ai.input.messages": json.dumps(sent), "gen_ai.output.messages": json.dumps(answered)}
    return span(own, "agent", start, given | messages | more)


def test_a_request_that_holds_only_the_end_of_the_conversation_loses_no_result() -> None:
    agent = span("agent", "", 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"})
    usage = {"gen_ai.usage.input_tokens": 631, "gen_ai.usage.output_tokens": 35}
    found = only(read(agent, chat("b", 2, [CALLED, RESULT], [SAID], **usage), chat("a", 1, [ASKED], [CALLED])))
    first, last = turns(found)
    assert (found.goal, found.unknown) == ("What is the weather in Portland?", {})
    assert found.title == ""  # lists show the task: many runs have an agent of the same name
    assert (first.calls[0].args, first.results) == ({"location": "P"}, {0: "stormy"})
    assert (last.text, dict(last.usage)) == ("Stormy.", {"prompt_tokens": 631, "completion_tokens": 35})


def test_a_request_that_repeats_everything_adds_only_what_is_new() -> None:
    again = parts("user", {"type": "text", "content": "What is the weather in Portland?"})
    spans = [
        chat("a", 1, [ASKED], [CALLED]),
        chat("b", 2, [ASKED, CALLED, RESULT], [SAID]),
        chat("c", 3, [ASKED, CALLED, RESULT, SAID, again], [SAID]),
    ]
    found = only(read(*spans))
    assert [(turn.text, turn.results) for turn in turns(found)] == [
        ("", {0: "stormy"}),
        ("Stormy.", {}),
        ("Stormy.", {}),
    ]
    assert [step.text for step in found.steps() if isinstance(step, UserMessage)] == [
        "What is the weather in Portland?"
    ]


@pytest.mark.parametrize("role", ["tool", "user"])  # Pydantic AI sends results as parts of a user's message
def test_a_tools_own_span_gives_the_result_once_also_without_the_id_of_its_call(role: str) -> None:
    result = RESULT | {"role": role}
    tool = span("tool", "agent", 2, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": "stormy"})
    found = only(read(chat("a", 1, [ASKED], [CALLED]), tool, chat("b", 3, [ASKED, CALLED, result], [SAID])))
    assert turns(found)[0].results == {0: "stormy"}
    assert not found.unknown


def test_traces_of_one_conversation_are_one_stream_and_a_sub_agent_stays_its_own() -> None:
    same = {"gen_ai.conversation.id": "conversation-1"}
    question = parts("user", {"type": "text", "content": "And in Oslo?"})
    spans = [
        chat("a", 1, [ASKED], [SAID], **same) | {"traceId": "one"},
        chat("b", 5, [ASKED, SAID, question], [SAID], **same) | {"traceId": "two"},
        span("sub", "agent", 6, {"gen_ai.operation.name": "invoke_agent"}, trace="two"),
        chat("c", 7, [question], [SAID], **same) | {"traceId": "two", "parentSpanId": "sub"},
        span("agent", "", 4, {"gen_ai.operation.name": "invoke_agent"}, trace="two"),
    ]
    whole, sub = [each for each in read(*spans) if isinstance(each, Conversation)]
    assert [turn.text for turn in turns(whole)] == ["Stormy.", "Stormy."]
    assert (len(turns(sub)), sub.goal) == (1, "And in Oslo?")


def test_an_agents_own_span_is_read_where_no_model_call_was_recorded() -> None:
    given = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": json.dumps([ASKED])}
    found = only(read(span("agent", "", 1, given | {"gen_ai.output.messages": json.dumps([CALLED, RESULT, SAID])})))
    assert [(turn.text, turn.results) for turn in turns(found)] == [("", {0: "stormy"}), ("Stormy.", {})]


FLAT = {
    "llm.request.type": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": "You help.",
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": "What is the weather?",
    "gen_ai.usage.prompt_tokens": 15,
}


def test_openllmetry_has_an_attribute_for_every_field_of_a_message() -> None:
    call = {"id": "c1", "name": "get_weather", "arguments": '{"location": "P"}'}
    first = FLAT | {f"gen_ai.completion.0.tool_calls.0.{key}": each for key, each in call.items()}
    second = FLAT | {f"gen_ai.prompt.2.tool_calls.0.{key}": each for key, each in call.items()}
    second |= {
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.3.role": "tool",
        "gen_ai.prompt.3.tool_call_id": "c1",
    }
    second |= {"gen_ai.prompt.3.content": "stormy", "gen_ai.completion.0.content": "Stormy."}
    functions = {"llm.request.functions.0.name": "get_weather", "llm.request.functions.0.parameters": "{}"}
    found = only(read(span("a", "", 1, first | functions), span("b", "", 2, second)))
    called, said = turns(found)
    assert (found.system, found.goal, found.model) == ("You help.", "What is the weather?", "gpt-4o")
    assert [tool.name for tool in found.tools] == ["get_weather"]
    assert (called.calls[0].args, called.results, dict(called.usage)) == (
        {"location": "P"},
        {0: "stormy"},
        {"prompt_tokens": 15},
    )
    assert said.text == "Stormy."


def test_openinference_names_messages_and_calls_its_own_way() -> None:
    asked = {"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.input_messages.0.message.role": "user"}
    asked |= {"llm.input_messages.0.message.contents.0.message_content.type": "text"}
    asked |= {"llm.input_messages.0.message.contents.0.message_content.text": "What is the weather?"}
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    asked |= {f"{call}.id": "c1", f"{call}.function.name": "get_weather", f"{call}.function.arguments": "{}"}
    tool = {"openinference.span.kind": "TOOL", "tool.name": "get_weather", "output.value": "stormy"}
    said = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.content": "Stormy."}
    said |= {"llm.output_messages.0.message.role": "assistant", "llm.token_count.completion": 3}
    found = only(read(span("a", "", 1, asked), span("b", "", 2, tool), span("c", "", 3, said)))
    first, last = turns(found)
    assert (found.goal, first.calls[0].tool, first.results, first.model) == (
        "What is the weather?",
        "get_weather",
        {0: "stormy"},
        "m",
    )
    assert (last.text, dict(last.usage)) == ("Stormy.", {"completion_tokens": 3})


def test_messages_may_be_a_list_of_events_in_an_attribute() -> None:
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "What is the weather?"},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Stormy."}},
    ]
    found = only(read(span("a", "", 1, {"gen_ai.operation.name": "chat", "events": json.dumps(events)})))
    assert (found.goal, [turn.text for turn in turns(found)]) == ("What is the weather?", ["Stormy."])


def test_spans_of_an_sdk_stand_on_lines_of_their_own() -> None:
    line = {
        "name": "chat",
        "context": {"trace_id": "0x1", "span_id": "0x2", "trace_state": "[]"},
        "parent_id": None,
        "start_time": "2026-11-17T10:00:00.000000Z",
        "status": {"status_code": "UNSET"},
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps([ASKED]),
            "gen_ai.output.messages": json.dumps([SAID]),
        },
    }
    found = list(read_log(LogFile("spans.jsonl", io.BytesIO(json.dumps(line).encode()))))
    assert [turn.text for turn in turns(only(found))] == ["Stormy."]


def test_spans_without_messages_say_what_to_switch_on() -> None:
    (problem,) = read(span("a", "", 1, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}))
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in str(problem)


@pytest.mark.parametrize("given", [None, [], "text", {"role": 7}])
def test_a_message_that_is_none_is_counted_and_the_others_are_read(given: Any) -> None:
    found = only(read(chat("a", 1, [given, ASKED], [SAID])))
    assert (found.goal, found.unknown) == ("What is the weather in Portland?", {"message of a span": 1})


def test_a_tool_that_no_model_asked_for_is_a_turn_of_its_own() -> None:
    given = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "check", "gen_ai.tool.call.id": "rule-1"}
    given |= {"gen_ai.tool.call.arguments": '{"file": "a.py"}', "gen_ai.tool.call.result": "2 errors"}
    found = only(read(span("tool", "agent", 0, given), chat("a", 1, [ASKED], [CALLED]), chat("b", 3, [RESULT], [SAID])))
    first, second, _ = turns(found)
    assert (first.calls[0].tool, first.calls[0].args, first.results) == ("check", {"file": "a.py"}, {0: "2 errors"})
    assert second.results == {0: "stormy"}


def test_agents_that_worked_side_by_side_in_one_trace_stay_apart() -> None:
    same = {"gen_ai.conversation.id": "run-1"}
    agents = [span(name, "", 0, {"gen_ai.operation.name": "invoke_agent", **same}) for name in ("one", "two")]
    chats = [chat(f"{name}-chat", 1, [ASKED], [SAID], **same) | {"parentSpanId": name} for name in ("one", "two")]
    assert [len(turns(each)) for each in read(*agents, *chats) if isinstance(each, Conversation)] == [1, 1]


def test_a_result_that_is_a_json_object_is_kept_as_one() -> None:
    events = [
        {"event.name": "gen_ai.user.message", "content": "What is the weather?"},
        {
            "event.name": "gen_ai.assistant.message",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"event.name": "gen_ai.tool.message", "id": "c1", "content": '{"sky": "grey"}'},
        {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": "Grey."}},
    ]
    found = only(read(span("a", "", 1, {"gen_ai.operation.name": "chat", "events": json.dumps(events)})))
    first, last = turns(found)
    assert (first.results, last.text, found.unknown) == ({0: {"sky": "grey"}}, "Grey.", {})


def test_a_result_that_is_an_empty_list_is_kept_as_its_text() -> None:
    tool = {"gen_ai.tool.name": "get_weather", "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "[]"}
    asked = {"gen_ai.operation.name": "execute_tool", **tool}
    (turn,) = turns(only(read(chat("a", 1, [ASKED], [CALLED]), span("t", "agent", 2, asked))))
    assert turn.results == {0: "[]"}


def flat(own: str, parent: str | None, start: int, given: dict[str, Any], **more: Any) -> Span:
    """A span as evaluation tools store it: with plain attributes, and its ids beside them."""
    ids = {"trace_id": "t", "span_id": own, "parent_span_id": parent, "start_time": start}
    return {**ids, "name": own, "attributes": given, "status": {"code": "OK"}, "span_events": [], **more}


def listed(document: Any) -> list[Conversation | LogProblem]:
    return list(read_log(LogFile("spans.json", io.BytesIO(json.dumps(document, indent=1).encode()))))


def flat_chat(own: str, start: int, sent: list[Any], answered: list[Any]) -> Span:
    given = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": sent, "gen_ai.output.messages": answered}
    return flat(own, None, start, given)


@pytest.mark.parametrize("around", [lambda spans: spans, lambda spans: {"session_id": "s", "spans": spans}])
def test_a_list_of_spans_is_read(around: Any) -> None:
    spans = [
        flat_chat("b", 1786051890133570663, [ASKED, CALLED, RESULT], [SAID]),
        flat_chat("a", 17, [ASKED], [CALLED]),
    ]
    first, last = turns(only(listed(around(spans))))
    assert (first.calls[0].tool, first.results, last.text) == ("get_weather", {0: "stormy"}, "Stormy.")


def test_messages_in_an_event_of_a_flat_span_are_read() -> None:
    details = {"gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [SAID]}
    event = {"event_name": "gen_ai.client.inference.operation.details", "attributes": details}
    asked = flat("a", None, 1, {"gen_ai.operation.name": "chat"}, span_events=[event])
    assert [turn.text for turn in turns(only(listed([asked])))] == ["Stormy."]


def test_a_copy_of_a_call_with_another_id_is_the_same_call() -> None:
    copy = parts(
        "assistant", {"type": "tool_call", "id": "fc_9", "name": "get_weather", "arguments": {"location": "P"}}
    )
    spans = [flat_chat("a", 1, [ASKED], [CALLED]), flat_chat("b", 2, [ASKED, copy, RESULT], [SAID])]
    assert [len(turn.calls) for turn in turns(only(listed(spans)))] == [1, 0]


def test_an_edited_reply_is_a_turn_of_its_own() -> None:
    edited = parts("assistant", {"type": "text", "content": "Sunny."})
    spans = [flat_chat("a", 1, [ASKED], [SAID]), flat_chat("b", 2, [ASKED, edited, RESULT], [SAID])]
    assert [turn.text for turn in turns(only(listed(spans)))] == ["Stormy.", "Sunny.", "Stormy."]


def test_two_calls_that_come_back_as_two_messages_are_the_same_turn() -> None:
    second = {"type": "tool_call", "id": "c2", "name": "get_time", "arguments": {}}
    both = parts("assistant", CALLED["parts"][0], second)
    again = [ASKED, CALLED, parts("assistant", second), RESULT]
    assert [
        len(t.calls)
        for t in turns(only(listed([flat_chat("a", 1, [ASKED], [both]), flat_chat("b", 2, again, [SAID])])))
    ] == [2, 0]


def test_results_without_an_id_go_to_the_call_of_their_tool() -> None:
    second = {"type": "tool_call", "id": "c2", "name": "get_time", "arguments": {}}
    called = flat_chat("a", 1, [ASKED], [parts("assistant", CALLED["parts"][0], second)])
    time = {"openinference.span.kind": "TOOL", "tool.name": "get_time", "output.value": "noon"}
    weather = {"openinference.span.kind": "TOOL", "tool.name": "get_weather", "output.value": "stormy"}
    (turn,) = turns(only(listed([called, flat("x", None, 2, time), flat("y", None, 3, weather)])))
    assert turn.results == {0: "stormy", 1: "noon"}


ADK_REQUEST = {
    "model": "gemini",
    "config": {
        "system_instruction": "You calculate.",
        "tools": [{"function_declarations": [{"name": "calculator", "description": "Calculates"}]}],
    },
    "contents": [{"role": "user", "parts": [{"text": "15 * 37?"}]}],
}
ADK_CALL = {"role": "model", "parts": [{"function_call": {"id": "f1", "name": "calculator", "args": {"a": 15}}}]}
ADK_RESULT = {"role": "user", "parts": [{"function_response": {"id": "f1", "response": {"result": "555"}}}]}


def adk(own: str, start: int, contents: list[Any], reply: Any) -> Span:
    asked = {**ADK_REQUEST, "contents": contents}
    given = {"gcp.vertex.agent.llm_request": json.dumps(asked)}
    return flat(own, None, start, given | {"gcp.vertex.agent.llm_response": json.dumps({"content": reply})})


def test_model_calls_of_googles_kit_are_read() -> None:
    question = ADK_REQUEST["contents"]
    answer = {"role": "model", "parts": [{"text": "Easy.", "thought": True}, {"text": "555."}]}
    chat = only(listed([adk("a", 1, question, ADK_CALL), adk("b", 2, [*question, ADK_CALL, ADK_RESULT], answer)]))
    first, last = turns(chat)
    assert (chat.goal, chat.system, [tool.name for tool in chat.tools]) == (
        "15 * 37?",
        "You calculate.",
        ["calculator"],
    )
    assert (first.calls[0].tool, first.calls[0].args, first.results) == (
        "calculator",
        {"a": 15},
        {0: {"result": "555"}},
    )
    assert (last.text, last.thinking) == ("555.", "Easy.")


def test_an_agents_span_with_a_question_and_its_answer_is_a_conversation() -> None:
    agent = {"openinference.span.kind": "AGENT", "input.value": "What is 6 * 7?", "output.value": "It is 42."}
    tool = {"openinference.span.kind": "TOOL", "tool.name": "Bash", "tool.id": "t1", "output.value": "42"}
    tool |= {"tool.parameters": '{"command": "echo 42"}'}
    chat = only(listed([flat("agent", None, 1, agent), flat("bash", "agent", 2, tool)]))
    assert chat.goal == "What is 6 * 7?"
    used, said = turns(chat)
    assert (used.calls[0].args, used.results, said.text) == ({"command": "echo 42"}, {0: "42"}, "It is 42.")


def test_the_span_of_a_workflow_around_an_agent_is_no_conversation_that_failed() -> None:
    around = flat("flow", None, 1, {"gen_ai.operation.name": "invoke_agent"})
    agent = flat("agent", "flow", 2, {"gen_ai.operation.name": "invoke_agent"})
    asked = flat_chat("chat", 3, [ASKED], [SAID]) | {"parent_span_id": "agent"}
    assert [turn.text for turn in turns(only(listed([around, agent, asked])))] == ["Stormy."]
