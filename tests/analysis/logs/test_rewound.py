"""A rewound session of Claude Code is the branch that was last live; the others are conversations of their own."""

from __future__ import annotations

import io
import json
from typing import Any

from remora.analysis.logs import AssistantTurn, Conversation, LogFile, UserMessage, read_log

Record = dict[str, Any]


def record(kind: str, own: str, above: str | None, content: Any, **more: Any) -> Record:
    message = {"role": kind, "content": content, "id": f"msg-{own}"}
    return {"type": kind, "sessionId": "s", "uuid": own, "parentUuid": above, "message": message, **more}


def said(own: str, above: str | None, text: str, **more: Any) -> Record:
    return record("user", own, above, text, **more)


def replied(own: str, above: str, text: str) -> Record:
    return record("assistant", own, above, [{"type": "text", "text": text}])


def used(own: str, above: str, call: str, message: str) -> Record:
    made = record("assistant", own, above, [{"type": "tool_use", "id": call, "name": "Read", "input": {}}])
    made["message"]["id"] = message
    return made


def gave(own: str, above: str, call: str) -> Record:
    return record("user", own, above, [{"type": "tool_result", "tool_use_id": call, "content": f"of {call}"}])


def read(*records: Record) -> list[Conversation]:
    data = "\n".join(map(json.dumps, records)).encode()
    return [each for each in read_log(LogFile("s.jsonl", io.BytesIO(data))) if isinstance(each, Conversation)]


def told(conversation: Conversation) -> list[str]:
    """The task, then everything that was said."""
    steps = [step for step in conversation.steps() if isinstance(step, UserMessage | AssistantTurn)]
    return [conversation.goal, *(step.text for step in steps)]


BEGIN = [said("1", None, "Fix it"), replied("2", "1", "Which?")]


def test_the_live_branch_is_the_session_and_the_other_names_it() -> None:
    left = [said("3", "2", "The red one"), replied("4", "3", "Red."), said("5", "4", "No"), replied("6", "5", "Sorry.")]
    live = [said("7", "2", "The blue one"), replied("8", "7", "Blue.")]
    session, branch = read(*BEGIN, *left, *live)
    assert told(session) == ["Fix it", "Which?", "The blue one", "Blue."]
    assert told(branch) == ["The red one", "Red.", "No", "Sorry."]
    assert (branch.source, branch.session, branch.parent and branch.parent.session) == (
        "s.jsonl#rewound-1",
        "s/rewound-1",
        "s",
    )
    assert session.notices == (
        ("rewound", "The session was rewound, and 1 branch was left. Each with a reply is a stream of its own"),
    )


def test_a_session_that_was_rewound_to_its_beginning_and_twice() -> None:
    left = [said("3", "2", "The red one"), replied("4", "3", "Red.")]
    again = [said("5", "2", "The blue one"), replied("6", "5", "Blue.")]
    anew = [said("7", None, "Fix all"), replied("8", "7", "All.")]
    session, branch = read(*BEGIN, *left, *again, *anew)
    assert told(session) == ["Fix all", "All."]
    assert told(branch) == ["Fix it", "Which?", "The red one", "Red.", "The blue one", "Blue."]


def test_a_prompt_that_was_written_anew_before_a_reply_is_no_conversation() -> None:
    (session,) = read(*BEGIN, said("3", "2", "The rde one"), said("4", "2", "The red one"), replied("5", "4", "Red."))
    assert told(session) == ["Fix it", "Which?", "The red one", "Red."]
    assert session.notices


def test_results_of_parallel_calls_open_no_branch() -> None:
    calls = [used("3", "1", "a", "m"), used("4", "3", "b", "m"), gave("5", "3", "a"), gave("6", "4", "b")]
    (session,) = read(BEGIN[0], *calls, replied("7", "6", "Done."), said("8", "7", "Thanks"), replied("9", "8", "Yes."))
    first = next(step for step in session.steps() if isinstance(step, AssistantTurn))
    assert (first.results, session.notices, session.turns) == ({0: "of a", 1: "of b"}, (), 3)


def test_records_between_that_hold_no_message_keep_the_branch_together() -> None:
    between = {"type": "system", "uuid": "3", "parentUuid": "2", "sessionId": "s", "content": "hook"}
    session, branch = read(
        *BEGIN,
        between,
        said("4", "3", "The red one"),
        replied("5", "4", "Red."),
        said("6", "2", "Stop"),
        replied("7", "6", "Ok."),
    )
    assert (told(session), told(branch)) == (["Fix it", "Which?", "Stop", "Ok."], ["The red one", "Red."])


def test_a_compacted_session_and_one_without_links_go_on() -> None:
    boundary = {"type": "system", "uuid": "3", "parentUuid": None, "logicalParentUuid": "2", "sessionId": "s"}
    summary = said("4", "3", "What was done", isCompactSummary=True)
    (session,) = read(*BEGIN, boundary, summary, said("5", "4", "Go on"), replied("6", "5", "Yes."))
    assert (session.turns, session.notices) == (2, ())
    unlinked = [said("u", None, "One"), replied("u", "x", "1"), said("u", None, "Two"), replied("u", "y", "2")]
    (session,) = read(*unlinked)
    assert told(session) == ["One", "1", "Two", "2"]
    (session,) = read(*BEGIN, said("5", "lost", "Go on"), replied("6", "5", "Yes."))
    assert told(session) == ["Fix it", "Which?", "Go on", "Yes."]


def test_a_session_that_wrote_its_past_again_is_read_once() -> None:
    past = [*BEGIN, said("3", "2", "The red one"), replied("4", "3", "Red.")]
    summary = said("5", None, "This session is being continued from a previous conversation that ran out of context.")
    (session,) = read(*past, *past, summary, replied("6", "5", "Going on."), *past)
    assert told(session)[:4] == ["Fix it", "Which?", "The red one", "Red."]
    assert told(session)[-1] == "Going on."
    assert session.turns == 3


def test_an_empty_message_of_an_older_version_says_nothing() -> None:
    (session,) = read(*BEGIN, said("3", "2", "(no content)"), replied("4", "3", "Red."))
    assert told(session) == ["Fix it", "Which?", "Red."]
