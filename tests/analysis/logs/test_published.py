"""Shapes of records that were seen in published logs, in the fewest records that show them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from remora.analysis.logs import AssistantTurn, Conversation, LogFile, UserMessage, read_log


def read(*records: Any, name: str = "log.jsonl") -> Conversation:
    data = "\n".join(map(json.dumps, records))
    (found,) = read_log(LogFile(name, io.BytesIO(data.encode())))
    assert isinstance(found, Conversation), found
    return found


def turns(conversation: Conversation) -> list[AssistantTurn]:
    return [step for step in conversation.steps() if isinstance(step, AssistantTurn)]


META = {"type": "session_meta", "payload": {"id": "s1", "timestamp": "t", "cwd": "/w", "originator": "codex_cli_rs"}}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": kind, **fields}}


def said(role: str, text: str) -> dict[str, Any]:
    return item("message", role=role, content=[{"type": "output_text", "text": text}])


def counted(total: int, last: int) -> dict[str, Any]:
    return event("token_count", info={"total_token_usage": {"input_tokens": total}, "last_token_usage": {"n": last}})


CALL = item("function_call", name="shell", arguments="{}", call_id="c1")
OUTPUT = item("function_call_output", call_id="c1", output="ok")


@pytest.mark.parametrize(
    "lines",
    [
        [{"messages": [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "Done."}]}] * 2,
        [META, said("user", "Go"), said("assistant", "Done.")],
        [
            {"type": kind, "sessionId": "s", "message": {"role": kind, "content": text}}
            for kind, text in (("user", "Go"), ("assistant", "Done."))
        ],
    ],
    ids=["chat", "Codex", "Claude Code"],
)
def test_a_mark_before_the_first_line_loses_no_record(lines: list[Any]) -> None:
    data = b"\xef\xbb\xbf" + "\n".join(map(json.dumps, lines)).encode()
    for found in read_log(LogFile("log.jsonl", io.BytesIO(data))):
        assert isinstance(found, Conversation), found
        assert (found.goal, [turn.text for turn in turns(found)], found.unknown) == ("Go", ["Done."], {})


@pytest.mark.parametrize(
    "records",
    [
        [counted(10, 10), CALL, OUTPUT, counted(10, 10), counted(30, 20), said("assistant", "Done.")],
        [CALL, counted(10, 10), OUTPUT, said("assistant", "Done."), counted(30, 20)],
        [CALL, OUTPUT, counted(10, 10), said("assistant", "Done."), counted(30, 20)],
    ],
    ids=["before its items", "after the call", "after the result"],
)
def test_codex_replies_have_the_tokens_that_were_counted_for_them(records: list[Any]) -> None:
    session = read(META, said("user", "Go"), event("token_count", info=None), *records)
    assert [turn.usage for turn in turns(session)] == [{"n": 10}, {"n": 20}]


def test_a_codex_session_whose_words_are_only_in_events_for_the_screen_keeps_them() -> None:
    session = read(META, event("user_message", message="Go"), CALL, OUTPUT, event("agent_message", message="Done."))
    assert session.goal == "Go"
    assert [(turn.text, turn.results) for turn in turns(session)] == [("", {0: "ok"}), ("Done.", {})]


def test_codex_events_that_repeat_items_are_not_read_twice() -> None:
    session = read(
        META, event("user_message", message="Go"), said("user", "Go"), event("agent_message", message="Done."),
        said("assistant", "Done."), event("error", message="usage limit reached"),
    )  # fmt: skip
    assert (len(list(session.steps())), session.unknown) == (1, {"failed request": 1})


@pytest.mark.parametrize(
    "told",
    [
        [item("function_call_output", call_id="c9", output='{"agent_id":"s2","nickname":"Boole"}')],
        [event("collab_agent_spawn_end", call_id="c9", new_thread_id="s2")],
    ],
    ids=["by its result", "by an event"],
)
def test_codex_names_the_call_that_started_a_sub_agent(told: list[Any]) -> None:
    spawn = item("function_call", name="spawn_agent", arguments="{}", call_id="c9")
    assert read(META, said("user", "Go"), spawn, *told).launches == {"s2": "c9"}


def test_an_old_codex_session_is_known_by_its_id_and_time_alone() -> None:
    session = read(
        {"id": "s", "timestamp": "t"}, *(each["payload"] for each in (said("user", "Hi"), said("assistant", "Yes")))
    )
    assert (session.format, session.session, session.unknown) == ("Codex", "s", {})


def step(source: str, message: str, **more: Any) -> dict[str, Any]:
    return {"source": source, "message": message, **more}


def trajectory(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"schema_version": "ATIF-v1.5", "session_id": "p", "agent": {"name": "terminus-2"}, "steps": steps, **more}


def test_what_the_system_notes_in_the_middle_of_an_atif_trajectory_is_no_system_text() -> None:
    reference = {"subagent_trajectory_ref": [{"session_id": "p-summary"}, {"session_id": "p-answers"}]}
    run = read(
        trajectory(
            step("system", "You use a shell."),
            step("user", "Create hello.txt"),
            step("agent", "First.", tool_calls=[{"tool_call_id": "c", "function_name": "bash", "arguments": {}}]),
            step("system", "Summarized.", observation={"results": [reference]}),
            step("user", "You are picking up work."),
            step("agent", "Done."),
        ),
        name="a.trajectory.json",
    )
    assert (run.system, run.goal) == ("You use a shell.", "Create hello.txt")
    assert [each.text for each in run.steps() if isinstance(each, UserMessage)] == [
        "Summarized.",
        "You are picking up work.",
    ]
    assert run.launches == {"p-summary": "", "p-answers": ""}


def test_an_atif_trajectory_in_a_file_of_its_own_names_the_session_above_it() -> None:
    child = trajectory(step("user", "Summarize"), step("agent", "Done."))
    child["agent"] |= {"extra": {"parent_session_id": "above"}}
    assert read(child, name="a.trajectory.json").parent is not None
    assert getattr(read(child, name="a.trajectory.json").parent, "session", "") == "above"


def test_a_trajectory_of_mini_swe_agent_2_has_its_calls_and_results_as_messages() -> None:
    call = {
        "index": 0,
        "id": "call_00",
        "type": "function",
        "function": {"name": "bash", "arguments": '{"command":"ls"}'},
    }
    response = {"model": "deepseek-v4-flash", "usage": {"prompt_tokens": 1689, "prompt_tokens_details": {"n": 1}}}
    extra = {"actions": [{"command": "ls", "tool_call_id": "call_00"}], "response": response}
    run = read(
        {
            "info": {"mini_version": "2.3.0", "exit_status": "Submitted", "model_stats": {}},
            "messages": [
                {"role": "system", "content": "You use a shell."},
                {"role": "user", "content": "Fix it"},
                {"role": "assistant", "content": "", "tool_calls": [call], "function_call": None, "extra": extra},
                {
                    "role": "tool",
                    "tool_call_id": "call_00",
                    "content": "<returncode>1</returncode>\n<output>\n</output>",
                },
                {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}},
            ],
        },
        name="a.traj.json",
    )
    (turn,) = turns(run)
    assert (run.format, run.goal, turn.model) == ("mini-swe-agent", "Fix it", "deepseek-v4-flash")
    assert (turn.failed, turn.usage) == ({0}, {"prompt_tokens": 1689})
    assert len(turn.calls) == 1


def test_calls_of_agentdojo_keep_their_arguments() -> None:
    call = {"function": "send_money", "args": {"amount": 100}, "id": "c1", "placeholder_args": None}
    messages = [
        {"role": "user", "content": "Pay the bill"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "sent", "tool_call": call, "tool_call_id": "c1", "error": None},
        {"role": "assistant", "content": "Paid."},
    ]
    first, last = turns(read({"suite_name": "banking", "messages": messages}, name="none.json"))
    assert (first.calls[0].tool, first.calls[0].args, first.results) == ("send_money", {"amount": 100}, {0: "sent"})
    assert last.text == "Paid."


def test_calls_that_smolagents_writes_into_a_text_get_their_observation() -> None:
    called = "Calling tools:\n[{'id': 'call_1', 'type': 'function', 'function': {'name': 'python_interpreter', "
    messages = [
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": "<code>count()</code>"},
        {"role": "tool-call", "content": called + "'arguments': 'count()'}}]"},
        {"role": "tool-response", "content": "Observation: 7"},
        {"role": "tool-call", "content": "Calling tools: none"},
        {"role": "assistant", "content": "7"},
    ]
    log = read({"messages": messages}, name="log.json")
    first, last = turns(log)
    assert [call.tool for call in first.calls] == ["python_interpreter"]
    assert first.results == {0: "Observation: 7"}
    assert (last.text, log.unknown) == ("7", {"calls in a text": 1})


def test_a_message_of_thoughts_alone_belongs_to_the_reply_after_it() -> None:
    messages = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [{"type": "reasoning", "text": "Hm."}]},
        {"role": "assistant", "content": "Because."},
    ]
    (turn,) = turns(read({"messages": messages}, name="log.json"))
    assert (turn.thinking, turn.text) == ("Hm.", "Because.")


def test_what_claude_prints_as_stream_json_is_read_with_its_sub_agents() -> None:
    def record(kind: str, content: Any, above: str | None = None, **more: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content, **more}
        return {
            "type": kind,
            "message": message,
            "parent_tool_use_id": above,
            "session_id": "s",
            "uuid": f"{above}{content}",
        }

    task = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Look"}}
    records = [
        {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Task"], "model": "claude-a"},
        record("assistant", [task], id="m1", model="claude-a"),
        record("user", "Look", above="t1"),
        record("assistant", [{"type": "text", "text": "Seen."}], above="t1", id="n1"),
        record("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "Seen."}]),
        record("assistant", [{"type": "text", "text": "Done."}], id="m2"),
        {"type": "result", "subtype": "success", "session_id": "s", "result": "Done."},
    ]
    data = "\n".join(map(json.dumps, records)).encode()
    session, agent = read_log(LogFile("out.jsonl", io.BytesIO(data)))
    assert isinstance(session, Conversation)
    assert isinstance(agent, Conversation)
    assert [(turn.text, turn.results) for turn in turns(session)] == [("", {0: "Seen."}), ("Done.", {})]
    assert (agent.goal, [turn.text for turn in turns(agent)]) == ("Look", ["Seen."])
    assert agent.parent is not None
    assert (agent.parent.session, agent.parent.call_id, session.launches) == ("s", "t1", {"s/t1": "t1"})
    assert session.unknown == {}
