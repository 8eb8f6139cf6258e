"""Newer rollouts of Codex: prompts that were taken back, histories that sub-agents were given, talk between agents."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from remora.analysis.logs import AssistantTurn, Conversation, LogFile, read_log

Record = dict[str, Any]


def meta(own: str = "s", **fields: Any) -> Record:
    return {"type": "session_meta", "payload": {"id": own, "timestamp": "t", "cwd": "/w", **fields}}


def item(kind: str, /, **fields: Any) -> Record:
    return {"type": "response_item", "payload": {"type": kind, **fields}}


def event(kind: str, /, **fields: Any) -> Record:
    return {"type": "event_msg", "payload": {"type": kind, **fields}}


def said(role: str, text: str) -> Record:
    return item("message", role=role, content=[{"type": "input_text", "text": text}])


def between(text: str, author: str, recipient: str) -> Record:
    return item("agent_message", author=author, recipient=recipient, content=[{"type": "input_text", "text": text}])


def asked(prompt: str, reply: str) -> list[Record]:
    return [said("user", prompt), event("user_message", message=prompt), said("assistant", reply)]


def on_screen(prompt: str, reply: str) -> list[Record]:
    return [event("user_message", message=prompt), event("agent_message", message=reply)]


def numbered(*records: Record) -> list[Record]:
    return [{"ordinal": at, **record} for at, record in enumerate(records)]


def read(*records: Record) -> list[Conversation]:
    data = "\n".join(map(json.dumps, records)).encode()
    return [each for each in read_log(LogFile("r.jsonl", io.BytesIO(data))) if isinstance(each, Conversation)]


def told(conversation: Conversation) -> list[str]:
    """The task, then everything that was said."""
    return [conversation.goal, *(step.text for step in conversation.steps())]


@pytest.mark.parametrize("wrote", [asked, on_screen], ids=["items", "events"])
def test_prompts_that_were_taken_back_are_a_branch_of_their_own(wrote: Any) -> None:
    left = [*wrote("two", "Two."), *wrote("three", "Three.")]
    session, branch = read(
        meta(), *wrote("one", "One."), *left, event("thread_rolled_back", num_turns=2), *wrote("four", "Four.")
    )
    assert told(session) == ["one", "One.", "four", "Four."]
    assert told(branch) == ["two", "Two.", "three", "Three."]
    assert (branch.session, branch.parent and branch.parent.session) == ("s/rewound-1", "s")
    assert [code for code, _ in session.notices] == ["rewound"]


def test_texts_that_codex_writes_are_no_prompts_to_take_back() -> None:
    around = [said("user", "<environment_context>w</environment_context>")]
    session, *_ = read(
        meta(),
        *around,
        *asked("one", "One."),
        *around,
        *asked("two", "Two."),
        event("thread_rolled_back", num_turns=1),
        *asked("three", "Three."),
    )
    assert [text for text in told(session) if not text.startswith("<")] == ["one", "One.", "three", "Three."]


@pytest.mark.parametrize("count", [5, "1", -1, None, 1.5], ids=str)
def test_a_count_that_cannot_be_loses_at_most_all_prompts(count: Any) -> None:
    found = read(meta(), *asked("one", "One."), event("thread_rolled_back", num_turns=count), *asked("two", "Two."))
    assert told(found[0]) == (["two", "Two."] if count == 5 else ["one", "One.", "two", "Two."])


def test_a_sub_agent_begins_behind_the_history_that_it_was_given() -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "top", "agent_path": "/root/child"}}}
    own = meta("sub", source=spawned, subagent_history_start_ordinal=4)
    (session,) = read(
        *numbered(
            own, meta("top"), *asked("Do all", "I ask another.")[::2], said("user", "Read it"), said("assistant", "OK")
        )
    )
    assert told(session) == ["Read it", "OK"]
    assert (session.session, session.parent and session.parent.session) == ("sub", "top")
    assert session.notices == (("inherited", "2 records of its parent at the beginning left out"),)


def test_a_reviewer_names_its_parent_beside_its_source() -> None:
    (session,) = read(meta("sub", source={"subagent": "review"}, parent_thread_id="top"), *asked("Review", "Fine."))
    assert session.parent is not None
    assert session.parent.session == "top"


def test_an_event_names_the_call_that_started_an_agent() -> None:
    call = item("function_call", name="spawn_agent", namespace="collaboration", arguments="{}", call_id="c1")
    began = event("sub_agent_activity", event_id="c1", agent_thread_id="sub", agent_path="/root/a", kind="started")
    again = event("sub_agent_activity", event_id="c9", agent_thread_id="sub", agent_path="/root/a", kind="interacted")
    (session,) = read(
        meta(), said("user", "Go"), call, began, item("function_call_output", call_id="c1", output="{}"), again
    )
    assert (dict(session.launches), dict(session.unknown)) == ({"sub": "c1"}, {})


def test_what_agents_say_to_each_other_is_read_once_and_by_its_recipient() -> None:
    task = "Message Type: NEW_TASK\nTask name: /root/a\nSender: /root\nPayload:\nRead it"
    record = {
        "type": "inter_agent_communication",
        "payload": {"author": "/root", "recipient": "/root/a", "content": task},
    }
    own = meta("sub", parent_thread_id="top", agent_path="/root/a")
    (child,) = read(
        own,
        said("user", "<environment_context>w</environment_context>"),
        record,
        between(task, "/root", "/root/a"),
        said("assistant", "OK"),
    )
    assert child.goal == task
    assert [text for text in told(child)[1:] if text == task] == []
    (top,) = read(
        meta(),
        said("user", "Go"),
        record,
        said("assistant", "Asked."),
        between("Message Type: FINAL_ANSWER\nOK", "/root/a", "/root"),
    )
    assert told(top) == ["Go", "Asked.", "Message Type: FINAL_ANSWER\nOK"]
    assert (dict(child.unknown), dict(top.unknown)) == ({}, {})


def test_a_message_that_is_encrypted_is_counted() -> None:
    record = {"type": "inter_agent_communication", "payload": {"author": "/root/a", "encrypted_content": "gAAA"}}
    (session,) = read(meta(), said("user", "Go"), record, said("assistant", "OK"))
    assert dict(session.unknown) == {"message of an agent without text": 1}


def counts(tokens: int) -> Record:
    return {"type": "token_usage_record", "payload": {"response_id": "r", "usage": {"input_tokens": tokens}}}


def also(total: int, last: int) -> Record:
    used = {"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": last}}
    return event("token_count", info=used)


@pytest.mark.parametrize("both", [False, True], ids=["alone", "beside the event"])
def test_records_of_tokens_are_of_the_reply_before_them(both: bool) -> None:
    call = item("function_call", name="shell", arguments="{}", call_id="c1")
    first = [
        call,
        counts(10),
        *([also(10, 10)] if both else []),
        item("function_call_output", call_id="c1", output="x"),
    ]
    last = [said("assistant", "Done."), counts(20), *([also(30, 20)] if both else [])]
    (session,) = read(meta(), said("user", "Go"), *first, *last)
    turns = [step for step in session.steps() if isinstance(step, AssistantTurn)]
    assert [turn.usage for turn in turns] == [{"input_tokens": 10}, {"input_tokens": 20}]
    assert dict(session.unknown) == {}
