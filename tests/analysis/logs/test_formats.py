"""Logs are known by their shape; results find their calls, sub-agents their parents, and the rest is counted."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from remora.analysis.logs import (
    FORMATS,
    AssistantTurn,
    Conversation,
    Link,
    LogFile,
    LogProblem,
    UserMessage,
    read_log,
)

SESSION = "5f0c3a52-0000-4000-8000-000000000001"


def found(*records: Any, name: str = "log.jsonl", wanted: str = "") -> list[Conversation | LogProblem]:
    data = "\n".join(json.dumps(record) if not isinstance(record, str) else record for record in records)
    return list(read_log(LogFile(name, io.BytesIO(data.encode())), wanted))


def conversations(*records: Any, name: str = "log.jsonl") -> list[Conversation]:
    read = found(*records, name=name)
    assert not [problem for problem in read if isinstance(problem, LogProblem)], read
    return [each for each in read if isinstance(each, Conversation)]


def turns(conversation: Conversation) -> list[AssistantTurn]:
    return [step for step in conversation.steps() if isinstance(step, AssistantTurn)]


def claude(kind: str, content: Any, *, side: str = "", **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | ({"id": more.pop("id")} if "id" in more else {})
    around = {"type": kind, "sessionId": SESSION, "isSidechain": bool(side), "parentUuid": None, "uuid": "u"}
    return around | ({"agentId": side} if side else {}) | {"message": message} | more


def use(call_id: str, name: str = "Read", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def gave(call_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def test_blocks_of_one_claude_message_are_one_turn_even_with_results_between_them() -> None:
    (session,) = conversations(
        claude("user", "Fix it"),
        claude("assistant", [{"type": "thinking", "thinking": "Look."}], id="m1"),
        claude("assistant", [use("a", file_path="x.py")], id="m1"),
        claude("user", [gave("a", "1 line")]),
        claude("assistant", [use("b", file_path="y.py")], id="m1"),
        claude("user", [gave("b", "no such file", is_error=True)]),
        claude("assistant", [{"type": "text", "text": "Done."}], id="m2"),
    )
    first, last = turns(session)
    assert (session.format, session.goal, session.session) == ("Claude Code", "Fix it", SESSION)
    assert ([call.tool for call in first.calls], first.results) == (["Read", "Read"], {0: "1 line", 1: "no such file"})
    assert (first.thinking, first.failed, last.text) == ("Look.", {1}, "Done.")


def test_what_a_program_wrote_into_a_claude_session_is_not_its_task() -> None:
    (session,) = conversations(
        {"type": "summary", "summary": "A title", "leafUuid": "x"},
        claude("user", "Caveat: the messages below were generated", isMeta=True),
        claude("user", "<command-name>/clear</command-name>"),
        claude("user", "Fix the test"),
        claude("assistant", "Done.", id="m1"),
    )
    assert (session.goal, session.title) == ("Fix the test", "A title")
    assert [step.text for step in session.steps() if isinstance(step, UserMessage)][1] == (
        "<command-name>/clear</command-name>"
    )


def test_what_an_editor_puts_beside_a_request_is_not_its_task() -> None:
    opened = {"type": "text", "text": "<ide_opened_file>The user opened a.py</ide_opened_file>"}
    (session,) = conversations(
        claude("user", [opened, {"type": "text", "text": "Fix the test"}]), claude("assistant", "Done.", id="m1")
    )
    assert session.goal == "Fix the test"
    assert [step.text for step in session.steps() if isinstance(step, UserMessage)] == [opened["text"]]


def test_words_that_waited_for_a_working_agent_are_a_persons_and_a_failed_request_is_no_reply() -> None:
    queued = {"type": "queued_command", "prompt": "Also the docs"}
    (session,) = conversations(
        claude("user", "Fix the test"),
        claude("assistant", [use("a")], id="m1"),
        claude("user", [gave("a")]),
        {"type": "attachment", "sessionId": SESSION, "isSidechain": False, "uuid": "q", "attachment": queued},
        claude("assistant", "API Error: 529", id="x", isApiErrorMessage=True),
        claude("assistant", "Both are done.", id="m2"),
    )
    assert [step.text for step in session.steps()] == ["", "Also the docs", "Both are done."]
    assert session.unknown == {"failed request": 1}


def test_a_session_without_a_message_holds_no_conversation() -> None:
    (problem,) = found({"type": "summary", "summary": "A title", "leafUuid": "x"})
    assert isinstance(problem, LogProblem)
    assert "no conversation:" in str(problem)


def test_sidechains_in_one_file_are_conversations_of_their_own_that_name_their_call() -> None:
    main, first, second = conversations(
        claude("user", "Survey"),
        claude(
            "assistant", [use("t1", "Task", prompt="Look at web"), use("t2", "Task", prompt="Look at jobs")], id="m1"
        ),
        claude("user", "Look at web", side="web"),
        claude("user", "Look at jobs", side="jobs"),
        claude("assistant", [use("g", "Grep", pattern="x")], side="web", id="n1"),
        claude("assistant", "jobs: three", side="jobs", id="o1"),
        claude("user", [gave("g", "2 hits")], side="web"),
        claude("assistant", "web: columns", side="web", id="n2"),
        claude("user", [gave("t1", "web: columns")], toolUseResult={"agentId": "web"}),
        claude("user", [gave("t2", "jobs: three")]),
        claude("assistant", "Both are surveyed.", id="m2"),
    )
    assert [len(turns(each)) for each in (main, first, second)] == [2, 2, 1]
    assert (first.parent, second.parent) == (Link(SESSION, "t1"), Link(SESSION, "t2"))
    assert main.launches == {f"{SESSION}/web": "t1", f"{SESSION}/jobs": "t2"}
    assert turns(first)[0].results == {0: "2 hits"}


def test_sidechains_without_an_agent_id_are_told_apart_by_their_parents() -> None:
    def side(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        return claude(kind, content, **more) | {"isSidechain": True, "uuid": uuid, "parentUuid": parent}

    main, one, two = conversations(
        claude("user", "Survey"),
        claude("assistant", [use("t1", "Task", prompt="One"), use("t2", "Task", prompt="Two")], id="m1"),
        side("1", None, "user", "One"),
        side("2", None, "user", "Two"),
        side("3", "1", "assistant", "one", id="n1"),
        side("4", "2", "assistant", "two", id="n2"),
        claude("user", [gave("t1"), gave("t2")]),
        claude("assistant", "Done.", id="m2"),
    )
    assert [each.goal for each in (main, one, two)] == ["Survey", "One", "Two"]
    assert [turns(each)[0].text for each in (one, two)] == ["one", "two"]
    assert [each.parent.call_id for each in (one, two) if each.parent] == ["t1", "t2"]


def test_kinds_that_are_not_understood_are_counted_and_nothing_else_is_lost() -> None:
    (session,) = conversations(
        claude("user", "Fix it"),
        {"type": "brand-new", "sessionId": SESSION},
        {"type": "brand-new", "sessionId": SESSION},
        {"type": "file-history-snapshot", "snapshot": {}},
        claude("user", [gave("never-called")]),
        '{"type": "user", "mess',
        claude("assistant", [{"type": "text", "text": "Done."}, {"type": "hologram"}], id="m1"),
    )
    assert session.unknown == {
        "brand-new": 2,
        "result without its call": 1,
        "line that is not JSON": 1,
        "hologram in a reply": 1,
    }
    assert [turn.text for turn in turns(session)] == ["Done."]


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-02T03:04:05Z", "type": "response_item", "payload": {"type": kind, **fields}}


def said(role: str, text: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": part, "text": text}])


def test_a_codex_rollout_is_read_by_its_items() -> None:
    (session,) = conversations(
        {
            "timestamp": "t",
            "type": "session_meta",
            "payload": {"id": "s1", "timestamp": "t", "instructions": "Be brief."},
        },
        said("user", "<environment_context>\n</environment_context>"),
        said("user", "List the files"),
        {"timestamp": "t", "type": "event_msg", "payload": {"type": "user_message", "message": "List the files"}},
        {"timestamp": "t", "type": "turn_context", "payload": {"model": "gpt-x"}},
        item("reasoning", summary=[{"type": "summary_text", "text": "Look."}], encrypted_content="…"),
        item("function_call", name="shell", arguments='{"command": ["ls"]}', call_id="c1"),
        item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
        item("function_call_output", call_id="c1", output="a.txt"),
        item("custom_tool_call_output", call_id="c2", output={"content": "denied", "success": False}),
        said("assistant", "There is a.txt."),
        {"timestamp": "t", "type": "future", "payload": {}},
    )
    first, last = turns(session)
    assert (session.format, session.goal, session.system, session.model) == (
        "Codex",
        "List the files",
        "Be brief.",
        "gpt-x",
    )
    assert [call.args for call in first.calls] == [{"command": ["ls"]}, {"input": "*** Begin Patch"}]
    assert (first.thinking, first.results, first.failed) == ("Look.", {0: "a.txt", 1: "denied"}, {1})
    assert (last.text, session.unknown) == ("There is a.txt.", {"future": 1})


@pytest.mark.parametrize(
    ("output", "result", "failed"),
    [
        ('{"output":"a.md\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}', "a.md\n", False),
        ('{"output":"no","metadata":{"exit_code":2,"duration_seconds":0.1}}', "no", True),
        ("Chunk ID: 8be4\nProcess exited with code 1\nOutput:\nno", ..., True),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nfine", ..., False),
        ('{"output":"a","metadata":7,"more":1}', {"output": "a", "metadata": 7, "more": 1}, False),
        ("the docs say: Process exited with code 1", ..., False),
    ],
)
def test_a_command_of_codex_failed_if_its_exit_code_says_so(output: str, result: Any, failed: bool) -> None:
    (session,) = conversations(
        {"timestamp": "t", "type": "session_meta", "payload": {"id": "s1", "timestamp": "t"}},
        said("user", "List the files"),
        item("function_call", name="shell", arguments="{}", call_id="c1"),
        item("function_call_output", call_id="c1", output=output),
    )
    (turn,) = turns(session)
    assert turn.results == {0: output if result is ... else result}
    assert (0 in turn.failed) == failed


def test_the_oldest_rollouts_and_bare_items_are_read_too() -> None:
    items = [each["payload"] for each in (said("user", "Hi"), said("assistant", "Hello."))]
    (old,) = conversations({"id": "s", "timestamp": "t", "instructions": None}, {"record_type": "state"}, *items)
    (bare,) = conversations(*items)
    assert (old.format, bare.format) == ("Codex", "Responses")
    assert [turns(each)[0].text for each in (old, bare)] == ["Hello.", "Hello."]


def test_anthropic_messages_hold_calls_and_results_in_their_parts() -> None:
    tools = [{"name": "grep", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}]
    (chat,) = conversations(
        {
            "model": "claude-x",
            "system": [{"type": "text", "text": "You find bugs."}],
            "tools": tools,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Hm."}, use("a", "grep", text="x")]},
                {
                    "role": "user",
                    "content": [gave("a", [{"type": "text", "text": "none"}]), {"type": "text", "text": "?"}],
                },
                {"role": "assistant", "content": "No idea."},
            ],
        }
    )
    assert (chat.system, chat.goal, chat.model) == ("You find bugs.", "Why?", "claude-x")
    assert chat.tools[0].parameters["properties"] == {"text": {"type": "string"}}
    assert [(turn.text, turn.results) for turn in turns(chat)] == [("Hm.", {0: "none"}), ("No idea.", {})]


Q, A = {"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}
ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A"}]}
WRAPPINGS = {
    "request and response": {"request": {"messages": [Q]}, "response": {"choices": [{"message": A}]}},
    "chat completion": {"messages": [Q], "choices": [{"message": A}]},
    "responses text": {"input": "Q", "output": [ITEM]},
    "responses items": {"input": [Q], "output": [ITEM]},
    "tau-bench": [{"task_id": 3, "reward": 1.0, "traj": [Q, A]}],
    "tau2": {"simulations": [{"messages": [Q, A]}], "tasks": []},
    "inspect": {"eval": {}, "samples": [{"messages": [Q, A], "scores": {}, "target": "A"}]},
}


@pytest.mark.parametrize("document", WRAPPINGS.values(), ids=WRAPPINGS.keys())
def test_one_question_and_answer_is_found_in_every_wrapping(document: Any) -> None:
    (chat,) = conversations(document, name="log.json")
    assert (chat.goal, [turn.text for turn in turns(chat)]) == ("Q", ["A"])


def test_a_message_on_every_line_is_one_conversation() -> None:
    (chat,) = conversations({"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"})
    assert (chat.goal, turns(chat)[0].text) == ("Q", "A")


def test_a_mini_swe_agent_trajectory_has_its_actions_beside_the_text() -> None:
    reply = {"role": "assistant", "content": "Look.\n```bash\nls\n```"}
    old = {
        "info": {"mini_version": "1.0"},
        "messages": [{"role": "user", "content": "Do"}, reply, {"role": "user", "content": "a.py"}],
    }
    new = json.loads(json.dumps(old))
    new["messages"][1]["extra"] = {"actions": [{"command": "ls -a"}]}
    new["messages"].append({"role": "exit", "content": "", "extra": {"submission": "diff"}})
    (first,), (second,) = (conversations(each, name="x.traj.json") for each in (old, new))
    assert first.format == "mini-swe-agent"
    assert [turn.calls[0].args for turn in (*turns(first), *turns(second))] == [{"command": "ls"}, {"command": "ls -a"}]
    assert [turn.results for turn in (*turns(first), *turns(second))] == [{0: "a.py"}, {0: "a.py"}]


def test_a_mini_swe_agent_trajectory_keeps_exit_codes_and_what_the_api_counted() -> None:
    reply = {
        "role": "assistant",
        "content": "Look.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}],
        "extra": {"actions": [{"command": "ls"}], "response": {"model": "m-1", "usage": {"prompt_tokens": 9, "x": {}}}},
    }
    tool = {"role": "tool", "tool_call_id": "c1", "content": "<returncode>2</returncode>\n<output>\nno\n</output>"}
    document = {
        "info": {"mini_version": "2.3.0"},
        "messages": [{"role": "user", "content": "Do"}, reply, tool],
        "trajectory_format": "mini-swe-agent-1.1",
    }
    (found_,) = conversations(document, name="x.traj.json")
    (turn,) = turns(found_)
    assert (turn.failed, turn.model, turn.usage) == ({0}, "m-1", {"prompt_tokens": 9})


@pytest.mark.parametrize(
    "around",
    [
        {"model": "m-1"},
        {"info": {"mini_version": "2.4.6", "config": {"model": {"model_name": "m-1"}}}},
        {"environment": "swe_main", "replay_config": {"agent": {"model": {"name": "m-1"}}}},
        {"environment": "swe_main", "replay_config": '{"agent": {"model": {"name": "m-1"}}}'},
        {"scores": {}, "target": "", "output": {"model": "m-1"}},
    ],
)
def test_the_model_is_known_from_where_each_program_writes_it(around: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]
    (found_,) = conversations(around | {"messages": messages}, name="x.json")
    assert found_.model == "m-1"


@pytest.mark.parametrize("around", [{"replay_config": "{"}, {"info": {"config": []}}, {"output": []}, {"model": 3}])
def test_a_document_that_names_no_model_is_read_without_one(around: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]
    (found_,) = conversations(around | {"messages": messages}, name="x.json")
    assert found_.model == ""


def test_an_inspect_sample_that_ended_with_an_error_says_why() -> None:
    messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]
    sample = {"id": 1, "epoch": 1, "target": "", "scores": {}, "messages": messages}
    (failed,) = conversations(sample | {"error": {"message": "ValueError('x is\ntoo large')"}}, name="x.json")
    assert failed.notices == (("ended_with_error", "The sample ended with an error: ValueError('x is too large')"),)
    (whole,) = conversations(sample | {"error": None}, name="x.json")
    assert whole.notices == ()


def test_a_fenced_command_in_an_ordinary_chat_is_no_call() -> None:
    (chat,) = conversations([{"role": "user", "content": "How?"}, {"role": "assistant", "content": "```bash\nls\n```"}])
    assert turns(chat)[0].calls == ()


def test_an_atif_trajectory_brings_its_sub_agents() -> None:
    inner = {
        "schema_version": "ATIF-v1.7",
        "trajectory_id": "child",
        "agent": {"name": "searcher"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Search"},
            {"step_id": 2, "source": "agent", "message": "Found."},
        ],
    }
    call = {"tool_call_id": "c1", "function_name": "delegate", "arguments": {"to": "searcher"}}
    result = {"source_call_id": "c1", "content": "Found.", "subagent_trajectory_ref": [{"trajectory_id": "child"}]}
    outer = {
        "schema_version": "ATIF-v1.7",
        "session_id": "top",
        "agent": {"name": "lead", "version": "1", "model_name": "m"},
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be brief."},
            {"step_id": 2, "source": "user", "message": "Go"},
            {"source": "agent", "reasoning_content": "Hm", "tool_calls": [call], "observation": {"results": [result]}},
            {"step_id": 4, "source": "ghost", "message": "?"},
        ],
        "subagent_trajectories": [inner],
    }
    lead, child = conversations(outer, name="t.json")
    assert (lead.format, lead.system, lead.goal, lead.unknown) == (
        "ATIF",
        "Be brief.",
        "Go",
        {"step of source ghost": 1},
    )
    assert (turns(lead)[0].results, turns(lead)[0].thinking) == ({0: "Found."}, "Hm")
    assert child.parent == Link("top", "c1")
    assert (lead.title, child.title) == ("", "")  # lists show the task: many runs have an agent of the same name


def attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def span(span_id: str, parent: str, start: int, operation: str, **given: Any) -> dict[str, Any]:
    pairs = [attribute("gen_ai.operation.name", operation)]
    pairs += [attribute(f"gen_ai.{key.replace('__', '.')}", value) for key, value in given.items()]
    times = {"startTimeUnixNano": str(start)}
    return {"traceId": "t", "spanId": span_id, "parentSpanId": parent, "name": operation, "attributes": pairs, **times}


def exported(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def test_spans_in_any_order_become_the_turns_of_their_agents() -> None:
    asked = {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}
    called = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c", "name": "look", "arguments": {"at": "Bonn"}}],
    }
    answered = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "rain"}]}
    final = {"role": "assistant", "parts": [{"type": "text", "content": "It rains."}]}
    inner = span("c3", "agent2", 3, "chat", input__messages=[asked], output__messages=[final])
    (outer, child) = conversations(
        exported(
            span("c2", "agent1", 4, "chat", input__messages=[asked, called, answered], output__messages=[final]),
            span("agent1", "", 0, "invoke_agent"),
            inner,
        ),
        exported(
            span("agent2", "tool", 2, "invoke_agent"),
            span("tool", "agent1", 2, "execute_tool", tool__call__id="c", tool__call__result="rain"),
            span("c1", "agent1", 1, "chat", input__messages=[asked], output__messages=[called], request__model="m"),
        ),
    )
    assert (outer.format, outer.goal, outer.model) == ("OpenTelemetry", "Weather?", "m")
    assert [(turn.text, turn.results) for turn in turns(outer)] == [("", {0: "rain"}), ("It rains.", {})]
    assert child.parent is not None
    assert child.parent.session == outer.session


def test_older_spans_have_their_messages_as_events() -> None:
    events = [
        {"name": "gen_ai.user.message", "attributes": [attribute("content", "Q")]},
        {"name": "gen_ai.choice", "attributes": [attribute("message", {"content": "A"})]},
    ]
    (chat,) = conversations(exported(span("a", "", 1, "chat") | {"events": events}), name="spans.json")
    assert (chat.goal, turns(chat)[0].text) == ("Q", "A")


def test_a_format_that_is_asked_for_is_taken_instead_of_looked_for() -> None:
    (problem,) = found([{"role": "user", "content": "Q"}], wanted="claude-code")
    assert "holds no message" in str(problem)


@pytest.mark.parametrize("wanted", ["", *FORMATS])
@pytest.mark.parametrize("odd", [[], {}, 7, None, True], ids=repr)
def test_a_type_that_is_no_word_is_told_or_counted(wanted: str, odd: Any) -> None:
    around = {"sessionId": "s", "parentUuid": None, "payload": {"type": odd}, "message": {"role": odd, "content": odd}}
    records = [{"type": odd, **around}, {"type": "response_item", **around}, claude("assistant", odd), {"type": odd}]
    assert all(isinstance(each, Conversation | LogProblem) for each in found(*records, wanted=wanted))
