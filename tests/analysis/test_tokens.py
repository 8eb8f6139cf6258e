from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import remora
from remora.analysis import chat_tokens, token_report
from remora.analysis._tokens import tools_beside
from remora.context.contracts import ToolSpec
from remora.context.recall import RECALL
from remora.context.render import system_text
from remora.events import (
    AgentStartEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UserInputEvent,
)
from remora.inference import EstimatedCounter
from remora.trace import read_events

SPEC = ToolSpec(name="look")


class Words:
    """A token a word."""

    name = "words"
    exact = True
    digest = ""

    def count(self, text: str) -> int:
        return len(text.split())


def request(turn: int, text: str, **left_out: int) -> ModelRequestEvent:
    messages = ({"role": "system", "content_ref": {}}, {"role": "user", "content": text})
    return ModelRequestEvent(turn=turn, messages=messages, limit=100, left_out=left_out, counter={"name": "other"})


STREAM: list[Event] = [
    AgentStartEvent(agent_id="01A", goal="find it"),
    TurnStartEvent(turn=1),
    request(1, "packet one"),
    ModelResponseEvent(turn=1, text="I will look now"),
    ToolCallEvent(turn=1, call_id="c", tool="look", args={}),
    ToolResultEvent(turn=1, call_id="c", tool="look", outcome="success", raw="a b c d e"),
    UserInputEvent(turn=1, text="go on"),
    TurnStartEvent(turn=2),
    request(2, "packet two now", knowledge=3),
]


def test_history_holds_all_that_was_said_called_and_returned_and_the_packet_only_itself() -> None:
    report = token_report(STREAM, "be brief", lambda event: str(event.raw), Words())
    assert [(row.turn, row.history) for row in report.rows] == [(1, 4), (2, 4 + 4 + 2 + 5 + 2)]
    assert [row.packet for row in report.rows] == [2 + 2 + 16, 2 + 3 + 16]
    assert (report.largest_packet, report.largest_history) == (21, 17)
    assert (report.sent, report.history_sent) == (41, 21)
    assert (report.counter, report.exact, report.kept_by) == ("words", True, "other")


def test_what_was_left_out_is_told_by_turn_and_by_how_many_turns() -> None:
    report = token_report([*STREAM, request(3, "x", knowledge=9, excerpts=1)], "", lambda event: "", Words())
    assert [row.left_out for row in report.rows] == [{}, {"knowledge": 3}, {"knowledge": 9, "excerpts": 1}]
    assert report.left_out == {"knowledge": 2, "excerpts": 1}


def test_tools_sent_beside_the_messages_count_and_tools_in_the_text_do_not_count_twice() -> None:
    start = AgentStartEvent(tools=(SPEC.model_dump(),))
    assert tools_beside([start], system_text("Go.", [SPEC])) == ""
    assert orjson.loads(tools_beside([start], "Go.")) == [SPEC.openai()]
    foreign = {"function": {"name": "theirs"}}
    assert orjson.loads(tools_beside([AgentStartEvent(tools=(foreign,))], "Go.")) == [foreign]


@pytest.mark.parametrize("calling", ["native", "text"])
async def test_the_packet_counted_again_is_what_its_receipt_says(tmp_path: Path, calling: Any) -> None:
    asked = {"tools": [SPEC], "system_prompt": "Go.", "calling": calling}
    async with remora.TwoTrack(goal="g", state_dir=tmp_path, **asked) as track:
        await track.request()
        await track.request()
    events = list(read_events(track.path))
    receipts = [event.tokens["total"] for event in events if isinstance(event, ModelRequestEvent)]
    system = system_text("Go.", [SPEC, RECALL], calling)
    report = token_report(events, system, lambda event: "", EstimatedCounter())
    assert [row.packet for row in report.rows] == receipts
    assert chat_tokens(events, system, lambda event: "", EstimatedCounter())[1] == report.rows[0].history


def test_a_stream_without_prompts_gives_an_empty_report() -> None:
    report = token_report([], "", lambda event: "", Words())
    assert (report.rows, report.largest_packet, report.sent) == ((), 0, 0)
