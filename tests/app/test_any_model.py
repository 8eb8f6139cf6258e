"""Any model behind a plain server: what it does wrong is mended or told, and every run ends with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import remora
from inference.fakes import FakeServer, Reply, Wire, answer, by_path, chooses, says
from projects import leave_out_plugins
from remora.events import Event, ModelRequestEvent, ModelResponseEvent, NoticeEvent
from remora.ports import AgentResult
from remora.trace import read_events

UNUSED = "import os\n"
GOOD = '''def top_sellers(sales, count):
    """Name the products that sold most, best first, without those that were returned."""
    kept = [each for each in sales if not each.returned]
    kept.sort(key=lambda each: each.sold, reverse=True)
    return [each.name for each in kept[:count]]
'''
FIXES = chooses("apply_fix", code="F401", node_id="a.py:f", turn=1)
SUBMITS = chooses("submit_result", summary="Done")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "'off'")
    (tmp_path / ".git").mkdir()
    leave_out_plugins(tmp_path)
    (tmp_path / "a.py").write_text(UNUSED)
    return tmp_path


def in_turn(*replies: Reply) -> FakeServer:
    """A server that knows nothing but chat, and plays these replies, the last one for ever."""
    left = list(replies)

    def complete(wire: Wire) -> None:
        if not wire.request.body.get("stream"):  # it is asked what it can do
            return answer({"choices": [{"message": {"content": "ready"}}]})(wire)
        return (left[0] if len(left) == 1 else left.pop(0))(wire)

    return FakeServer(by_path(v1__models=answer({"data": [{"id": "m"}]}), v1__chat__completions=complete))


async def run(
    root: Path, server: FakeServer, operation: str = "lint", **settings: Any
) -> tuple[AgentResult, list[Event]]:
    given = {key.replace("__", "."): value for key, value in settings.items()}
    project = remora.open_project(root, {"server.server": server.url, "runner.by_rule": False, **given})
    (result,) = await project.runs.analyze([root / "a.py"], [operation])
    return result, list(read_events(project.library.find(result.agent_id)))


def asked(server: FakeServer) -> list[dict[str, Any]]:
    return [request.body for request in server.asked if request.body and request.body.get("stream")]


async def test_a_call_with_an_argument_too_many_is_mended_and_the_agent_ends_well(root: Path) -> None:
    with in_turn(FIXES, SUBMITS) as server:
        result, events = await run(root, server)
    assert (result.outcome, result.reason, result.verdict) == ("success", "submitted", "clean")
    (notice,) = [event for event in events if isinstance(event, NoticeEvent) and event.code == "extra_arguments"]
    assert "`apply_fix` has no argument `node_id`, `turn`" in notice.message


async def test_a_model_that_repeats_itself_is_stopped_with_a_reason_and_a_verdict(root: Path) -> None:
    with in_turn(chooses("read_file", line=1)) as server:
        result, events = await run(root, server)
        shown = [json.dumps(body["messages"]) for body in asked(server)]
    assert (result.outcome, result.reason, result.verdict) == ("partial", "repeat_limit", "unchanged"), result
    assert "5 equal calls with equal results in a row" in result.summary
    assert result.check["why"]
    assert len(shown) == 5
    assert "Same call, same result, 4 times" in shown[-1]
    assert events[-1].type == "agent_end"
    assert (root / "a.py").read_text() == UNUSED


async def test_a_call_of_a_tool_that_is_no_longer_offered_is_not_taken_for_an_answer(root: Path) -> None:
    with in_turn(chooses("run_linter")) as server:
        result, events = await run(root, server, server__mode="tools")
        last = json.loads(asked(server)[-1]["messages"][-1]["content"])["last_error"]
    assert (result.outcome, result.reason, result.verdict) == ("error", "reply_invalid", "unchanged")
    assert "Tool `run_linter` is not offered: expected one of `apply_fix`" in last
    assert result.check["why"]
    offered = ["run_linter" in event.offered for event in events if isinstance(event, ModelRequestEvent)]
    assert offered == [True, True, True, False, False, False]


async def test_the_agents_check_may_be_called_again_when_a_file_has_changed(root: Path) -> None:
    with in_turn(chooses("run_linter"), FIXES, chooses("run_linter"), SUBMITS) as server:
        result, events = await run(root, server, server__mode="json")
    offered = ["run_linter" in event.offered for event in events if isinstance(event, ModelRequestEvent)]
    assert (result.outcome, result.reason, result.verdict) == ("success", "submitted", "clean")
    assert offered == [True, False, True, False]  # to look again before that tells nothing new


WORSE = "One sentence: the function `top_sellers` in a.py, lines 1-5 returns a list."


@pytest.mark.parametrize("by_rule", [True, False])
async def test_a_docstring_that_is_good_is_not_made_worse(root: Path, by_rule: bool) -> None:
    (root / "a.py").write_text(GOOD)
    with in_turn(chooses("write_docstring", summary=WORSE), SUBMITS) as server:
        result, _ = await run(root, server, "docstring", runner__by_rule=by_rule)
    assert result.files == ()
    assert (result.outcome, result.reason, result.verdict) == ("success", "submitted", "unchanged")
    complete = "The docstring is complete, decided by rule"
    assert result.check["why"] in (complete, "The docstring of `top_sellers` is as it was")
    assert bool(asked(server)) != by_rule


def lists(number: int) -> str:
    """The beginning of a call that lists so many different things."""
    return '{"tool": "submit_result", "args": {"summary": "' + ", ".join(f"thing {n}" for n in range(number))


async def test_a_reply_that_was_cut_is_asked_for_again_with_more_room(root: Path) -> None:
    with in_turn(says(lists(40), "length"), FIXES, SUBMITS) as server:
        result, events = await run(root, server)
        bodies = asked(server)
    assert (result.outcome, result.verdict) == ("success", "clean")
    assert [body["max_tokens"] for body in bodies] == [256, 512, 256]
    told = "The reply was cut at 256 tokens, before the call was complete: the next may have 512"
    assert json.loads(bodies[1]["messages"][-1]["content"])["last_error"] == told
    (cut,) = [event for event in events if isinstance(event, ModelResponseEvent) and event.error]
    assert (cut.error, cut.finish) == ("reply_invalid", "length")
    assert cut.delta is not None
    assert told in cut.delta.diagnostics


async def test_a_reply_that_was_cut_twice_is_told_to_be_shorter(root: Path) -> None:
    with in_turn(says(lists(40), "length")) as server:
        result, _ = await run(root, server)
        bodies = asked(server)
    assert (result.outcome, result.reason) == ("error", "reply_invalid")
    assert "cut at 512 tokens" in result.summary
    assert [body["max_tokens"] for body in bodies] == [256, 512, 512]
    texts = [body["messages"][-1]["content"] for body in bodies]
    assert "write a shorter call" in texts[2]
    assert len(set(texts)) == 3


async def test_a_reply_that_went_round_in_circles_is_told_what_it_repeated_and_gets_no_more_room(root: Path) -> None:
    circles = '{"tool": "submit_result", "args": {"summary": "' + "2, 'a' -> 4; " * 50
    with in_turn(says(circles, "length"), FIXES, SUBMITS) as server:
        result, _ = await run(root, server)
        bodies = asked(server)
    assert result.verdict == "clean"
    assert [body["max_tokens"] for body in bodies] == [256, 256, 256]
    told = json.loads(bodies[1]["messages"][-1]["content"])["last_error"]
    assert told == "The reply repeated `; 2, 'a' -> 4` until it was cut at 256 tokens: write it once and end the call"


async def test_a_model_may_be_asked_to_say_why_before_it_calls(root: Path) -> None:
    said = json.dumps({"why": "The import is not used.", "tool": "apply_fix", "args": {"code": "F401"}})
    with in_turn(says(said), SUBMITS) as server:
        result, events = await run(root, server, server__reasons=True, server__mode="json")
        first = asked(server)[0]
    assert result.verdict == "clean"
    assert '{"why": ONE SHORT SENTENCE, "tool": NAME, "args": {…}}' in first["messages"][0]["content"]
    (choice, *_) = first["response_format"]["json_schema"]["schema"]["anyOf"]
    assert list(choice["properties"]) == choice["required"] == ["why", "tool", "args"]
    reply = next(event for event in events if isinstance(event, ModelResponseEvent))
    assert (reply.text, reply.calls[0].args) == (said, {"code": "F401"})


async def test_without_the_setting_nothing_is_said_before_a_call(root: Path) -> None:
    with in_turn(FIXES, SUBMITS) as server:
        await run(root, server, server__mode="json")
        first = asked(server)[0]
    assert "why" not in json.dumps(first["response_format"]) + first["messages"][0]["content"]
