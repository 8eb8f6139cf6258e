"""A conversation is read whole or not at all, and every problem has its place."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.analysis import AssistantTurn, Chat, ChatProblem, UserMessage, read_chats
from strategies import json_values

USER = {"role": "user", "content": "Why is it slow?"}
DONE = {"role": "assistant", "content": "It is fixed."}


def calling(name: str = "grep", arguments: Any = '{"text": "loop"}', call_id: str = "c1") -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def returned(content: Any = "3 matches", call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def read(document: Any, name: str = "log.json") -> list[Chat | ChatProblem]:
    return list(read_chats(name, document if isinstance(document, bytes) else orjson.dumps(document)))


def chat(document: Any) -> Chat:
    (found,) = read(document)
    assert isinstance(found, Chat), found
    return found


def problem(document: Any, name: str = "log.json") -> str:
    (found,) = read(document, name)
    assert isinstance(found, ChatProblem)
    return str(found)


def test_a_conversation_is_its_task_and_then_its_turns() -> None:
    system = {"role": "system", "content": "You find bugs."}
    found = chat([system, USER, calling(), returned(), {"role": "user", "content": "Go on"}, DONE])
    assert (found.system, found.goal, found.source) == ("You find bugs.", "Why is it slow?", "log.json")
    first, said, last = found.steps
    assert isinstance(first, AssistantTurn)
    assert [(call.tool, call.args) for call in first.calls] == [("grep", {"text": "loop"})]
    assert first.results == {0: "3 matches"}
    assert said == UserMessage("Go on")
    assert isinstance(last, AssistantTurn)
    assert (last.text, last.calls) == ("It is fixed.", ())


@pytest.mark.parametrize(
    "document",
    [
        [USER, DONE],
        {"messages": [USER, DONE]},
        {"history": [USER, DONE]},
        [[USER, DONE]],
        [{"messages": [USER, DONE]}],
        orjson.dumps([USER, DONE]) + b"\n",
        orjson.dumps({"messages": [USER, DONE]}, option=orjson.OPT_INDENT_2),
    ],
)
def test_one_conversation_is_found_in_every_wrapping(document: Any) -> None:
    assert chat(document).goal == "Why is it slow?"


def test_lines_are_conversations_of_their_own_and_a_bad_one_does_not_hide_the_rest() -> None:
    lines = [orjson.dumps([USER, DONE]), b"{oops", b"", orjson.dumps({"messages": [USER, DONE]})]
    found = read(b"\n".join(lines), "log.jsonl")
    assert [item.source if isinstance(item, Chat) else str(item)[:20] for item in found] == [
        "log.jsonl:1",
        "log.jsonl:2: not JSO",
        "log.jsonl:4",
    ]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "log.json: the file is empty"),
        (b"hello", "log.json: not JSON"),
        (b'{\n "messages": [\n', "log.json: not JSON"),
        (5, "log.json: no conversation: expected a list of messages"),
        ({"rows": []}, "log.json: no conversation: expected a list of messages"),
        (USER, "log.json: a single message"),
        ([USER], "log.json: `messages` holds no message of an assistant"),
        ([USER, 5], "log.json: messages[1]: expected an object with `role`"),
        ({"history": [USER, {"role": "robot"}]}, "log.json: history[1]: `role` is `robot`"),
        ([USER, {"role": "assistant", "content": 5}], "log.json: messages[1].content: expected text"),
        ([USER, DONE | {"tool_calls": [{"id": "x"}]}], "log.json: messages[1].tool_calls[0]: expected a `function`"),
        ([USER, DONE | {"tool_calls": 7}], "log.json: messages[1].tool_calls: expected a list"),
        ([USER, calling(), returned(call_id="c9")], "log.json: messages[2]: a result for call `c9`"),
        ([USER, DONE, returned()], "log.json: messages[2]: a result for call `c1`"),
        ([[USER, 5]], "log.json[0]: messages[1]: expected an object"),
    ],
)
def test_a_mistake_in_a_log_is_told_with_its_place(document: Any, words: str) -> None:
    assert words in problem(document)


def test_arguments_that_are_no_object_are_kept_as_the_model_wrote_them() -> None:
    written = ['{"a": ', "[1]", "", {"a": 1}, None]
    steps = chat([USER, *(calling(arguments=text) for text in written)]).steps
    args = [call.args for step in steps if isinstance(step, AssistantTurn) for call in step.calls]
    assert args == [{"_arguments": '{"a": '}, {"_arguments": "[1]"}, {}, {"a": 1}, {}]


def test_results_find_their_calls_by_id_and_a_repeated_id_finds_the_newest() -> None:
    two = calling()
    two["tool_calls"] += calling("read", call_id="c2")["tool_calls"]
    found = chat([USER, two, returned("second", "c2"), returned("first"), calling(), returned("again")])
    assert [step.results for step in found.steps if isinstance(step, AssistantTurn)] == [
        {0: "first", 1: "second"},
        {0: "again"},
    ]


def test_a_result_is_its_object_its_text_or_its_parts() -> None:
    text, image = {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}
    contents = ['{"summary": "3 left"}', "{not json", "[1]", [text, text], [text, image], None]
    messages = [part for content in contents for part in (calling(), returned(content))]
    results = [step.results[0] for step in chat([USER, *messages]).steps if isinstance(step, AssistantTurn)]
    assert results == [{"summary": "3 left"}, "{not json", "[1]", "a\na", [text, image], ""]


def test_the_older_function_calls_are_read() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "grep", "arguments": "{}"}}
    (step,) = chat([USER, old, {"role": "function", "name": "grep", "content": "none"}]).steps
    assert isinstance(step, AssistantTurn)
    assert (step.calls[0].tool, step.results) == ("grep", {0: "none"})


def test_tools_that_the_log_offers_are_kept_and_no_others_are_made_up() -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "grep", "parameters": schema}}, {"function": {}}, 5]
    found = chat({"messages": [USER, calling("other"), returned()], "tools": tools, "model": "qwen3:4b"})
    assert [(tool.name, tool.parameters) for tool in found.tools] == [("grep", schema)]
    assert found.model == "qwen3:4b"


def acting(action: str) -> dict[str, Any]:
    return {"role": "assistant", "content": f"Try it.\n```\n{action}\n```", "thought": "Try it.", "action": action}


def test_a_trajectory_by_text_actions_pairs_each_with_what_was_observed() -> None:
    demo = {"role": "user", "content": "A demonstration", "is_demo": True}
    seen = {"role": "user", "content": "a.py b.py"}
    history = [
        demo,
        USER,
        acting("ls -a"),
        seen,
        acting("./run"),
        {"role": "user", "content": "boom"},
        acting("submit"),
    ]
    steps = [{"action": "ls -a", "observation": "…"}, {"action": "./run"}, {"action": "submit", "observation": "sent"}]
    found = chat({"history": history, "trajectory": steps, "info": {}})
    assert (found.system, found.goal) == ("A demonstration", "Why is it slow?")
    assert [(step.calls[0].tool, step.results[0]) for step in found.steps if isinstance(step, AssistantTurn)] == [
        ("ls", "a.py b.py"),
        ("shell", "boom"),
        ("submit", "sent"),
    ]


def test_a_trajectory_without_messages_is_read_from_its_steps() -> None:
    steps = [{"action": "ls", "observation": "a.py", "response": "Look"}, {"action": "", "thought": "Hm"}]
    found = chat({"trajectory": steps})
    assert [(step.text, step.results) for step in found.steps if isinstance(step, AssistantTurn)] == [
        ("Look", {0: "a.py"}),
        ("Hm", {}),
    ]


def test_a_call_without_an_answer_is_left_open() -> None:
    (step, _) = chat([USER, calling(), DONE]).steps
    assert isinstance(step, AssistantTurn)
    assert step.results == {}


words = st.sampled_from(["messages", "history", "trajectory", "role", "content", "tool_calls", "function", "action"])
roles = st.sampled_from(["system", "user", "assistant", "tool", "function", "x"])
shapes = st.recursive(
    json_values | roles,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner | roles, max_size=4),
    max_leaves=12,
)


@given(shapes)
def test_any_json_gives_conversations_or_problems_and_nothing_else(document: Any) -> None:
    for found in read(document):
        assert isinstance(found, Chat) or str(found).startswith("log.json")


@given(st.binary(max_size=60))
def test_any_bytes_give_conversations_or_problems_and_nothing_else(data: bytes) -> None:
    assert all(isinstance(found, Chat | ChatProblem) for found in read(data, "log.jsonl"))
