"""Exports of recorded streams, read back by what reads them elsewhere."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from remora.analysis import (
    COLUMNS,
    AssistantTurn,
    Chat,
    CompleteStream,
    atif,
    chat,
    csv_text,
    otlp,
    read_chats,
    turn_rows,
)
from remora.analysis.exporting.complete import json_text
from remora.analysis.exporting.otlp import nanoseconds
from remora.events import (
    AgentStartEvent,
    Call,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    UserInputEvent,
)
from remora.otlp_protobuf import encode
from remora.trace import read_events

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("format-1*.jsonl"))


def golden() -> list[CompleteStream]:
    streams = [list(read_events(path)) for path in GOLDEN]
    return [
        CompleteStream(
            events, "You fix errors.", {e.seq: f"result {e.seq}" for e in events if isinstance(e, ToolResultEvent)}
        )
        for events in streams
        if isinstance(events[0], AgentStartEvent)
    ]


def test_every_golden_stream_can_be_exported_to_every_format() -> None:
    streams = golden()
    assert len(streams) >= 3
    for stream in streams:
        assert len(atif(stream)["steps"]) > 2
        assert chat(stream)["messages"][0] == {"role": "system", "content": "You fix errors."}
        assert otlp([stream], content=True)["resourceSpans"][0]["scopeSpans"][0]["spans"]
        assert list(turn_rows(stream))


def test_a_chat_that_was_exported_is_imported_with_the_same_calls_and_results() -> None:
    for stream in golden():
        (read,) = read_chats("chat.jsonl", json_text(chat(stream)).encode())
        assert isinstance(read, Chat), read
        made = [event for event in stream.events if isinstance(event, ModelResponseEvent) and not event.error]
        turns = [step for step in read.steps if isinstance(step, AssistantTurn)]
        assert [[(c.tool, c.args) for c in turn.calls] for turn in turns] == [
            [(c.tool, c.args) for c in event.calls] for event in made
        ]
        assert read.goal == stream.start.goal


def test_every_call_of_a_chat_has_exactly_one_result() -> None:
    for stream in golden():
        messages = chat(stream)["messages"]
        calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
        results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert sorted(calls) == sorted(results)


def test_a_trajectory_numbers_its_steps_and_every_result_names_a_call_of_its_step() -> None:
    for stream in golden():
        steps = atif(stream)["steps"]
        assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
        for step in steps:
            calls = {call["tool_call_id"] for call in step.get("tool_calls", ())}
            named = {
                r["source_call_id"]
                for r in step.get("observation", {"results": []})["results"]
                if "source_call_id" in r
            }
            assert named <= calls
            assert step["source"] == "agent" or not {"tool_calls", "metrics", "model_name"} & step.keys()
            assert step.get("llm_call_count") != 0 or "metrics" not in step


def test_no_export_names_the_folders_of_a_weights_file() -> None:
    path = "/home/mo/secret project/Qwen.Q4.GGUF"
    asked = ModelRequestEvent(turn=1, seq=1, ts="2026-11-15T18:20:01.000001Z", tokens={"total": 10})
    reply = ModelResponseEvent(turn=1, seq=2, ts="2026-11-15T18:20:02.000001Z", text="done", model=path)
    start = AgentStartEvent(agent_id="A", ts="2026-11-15T18:20:00.000001Z", model={"model": path, "gguf": path})
    stream = CompleteStream([start, asked, reply])
    for text in (
        json_text(atif(stream)),
        json_text(chat(stream)),
        json_text(otlp([stream], content=True)),
        csv_text(turn_rows(stream)),
    ):
        assert "Qwen.Q4.GGUF" in text
        assert "secret project" not in text


def fork() -> CompleteStream:
    start = AgentStartEvent(
        agent_id="F",
        run_id="R",
        operation="lint",
        parent={"relation": "fork", "agent_id": "P", "run_id": "Q", "seq": 4, "turn": 1},
    )
    events: list[Event] = [start]
    for turn in (1, 2):
        call = Call(call_id=f"c{turn}", tool="look", args={"at": turn})
        events += [
            ModelRequestEvent(turn=turn, tokens={"total": 10}, messages=({"role": "user", "content": "packet"},)),
            ModelResponseEvent(
                turn=turn, calls=(call,), model="m", usage={"prompt_tokens": 11, "completion_tokens": 2}
            ),
            ToolCallEvent(turn=turn, call_id=call.call_id, tool="look", args=call.args),
            ToolResultEvent(turn=turn, call_id=call.call_id, tool="look", outcome="error", raw="x"),
        ]
    events += [UserInputEvent(turn=2, text="more"), SubmitResultEvent(turn=2, result={"summary": "done"})]
    stamped = [e.model_copy(update={"seq": n, "ts": f"2026-11-15T18:20:{n:02d}.000001Z"}) for n, e in enumerate(events)]
    return CompleteStream(stamped, "", {4: "x", 8: "x"})


def test_what_a_fork_inherited_is_copied_context_in_a_trajectory_and_no_span_of_its_own() -> None:
    steps = atif(fork())["steps"]
    assert [bool(step.get("is_copied_context")) for step in steps if step["source"] == "agent"] == [True, False]
    spans = otlp([fork()])["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [span["name"] for span in spans] == ["invoke_agent lint", "chat m", "execute_tool look"]
    agent, request, tool = spans
    assert request["parentSpanId"] == tool["parentSpanId"] == agent["spanId"]
    assert agent["links"][0]["traceId"] != agent["traceId"]
    assert tool["status"]["code"] == 2


def test_spans_hold_content_only_if_asked_for() -> None:
    def keys(content: bool) -> set[str]:
        spans = otlp([fork()], content=content)["resourceSpans"][0]["scopeSpans"][0]["spans"]
        return {item["key"] for span in spans for item in span["attributes"]}

    added = keys(content=True) - keys(content=False)
    assert added == {
        "gen_ai.system_instructions",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    }


def test_a_second_export_gives_the_same_ids() -> None:
    assert otlp([fork()]) == otlp([fork()])
    assert nanoseconds("2026-11-15T18:20:45.123456Z") % 1_000_000_000 == 123_456_000
    assert nanoseconds("never") == 0


def test_a_table_has_a_row_for_each_call_and_no_cell_that_a_spreadsheet_runs() -> None:
    rows = list(csv.reader(io.StringIO(csv_text([COLUMNS, *turn_rows(fork())]))))
    assert [row[COLUMNS.index("tool")] for row in rows[1:]] == ["look", "look"]
    assert rows[1][COLUMNS.index("prompt_tokens")] == "11"
    for text in ('=HYPERLINK("x")', "+1", "-1", "@a", "\tx"):
        ((cell,),) = csv.reader(io.StringIO(csv_text([[text]])))
        assert cell == f"'{text}"
    ((shown,),) = csv.reader(io.StringIO(csv_text([["\x1b[2J\x00\u202e a\nb"]])))
    assert shown == "\\x1b[2J\\x00\\x202e a\nb"


def imported(*, with_packets: bool = False, started: str = "2026-03-01T09:00:00Z") -> CompleteStream:
    """An imported conversation of two replies."""
    packets = [ModelRequestEvent(seq=2, turn=1, tokens={"total": 9})] if with_packets else []
    events: list[Event] = [
        AgentStartEvent(
            seq=0, ts="2026-11-18T10:00:00Z", agent_id="A", operation="import", goal="Find it",
            parent={"sha256": "x", "started": started},
        ),
        *packets,
        ModelResponseEvent(
            seq=3, ts="2026-11-18T10:00:01Z", turn=1, text="I look", calls=(Call(call_id="1", tool="look"),),
            usage={"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3},
        ),
        ToolCallEvent(seq=4, ts="2026-11-18T10:00:02Z", turn=1, call_id="1", tool="look"),
        ToolResultEvent(seq=5, ts="2026-11-18T10:00:02Z", turn=1, call_id="1", tool="look", outcome="success"),
        ModelResponseEvent(seq=6, ts="2026-11-18T10:00:03Z", turn=2, text="There is none"),
    ]  # fmt: skip
    return CompleteStream(events, "", {5: "nothing"})


def spans_of(stream: CompleteStream) -> list[tuple[str, dict[str, str]]]:
    """Name and attributes of each span."""
    spans = otlp([stream], content=True)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return [
        (span["name"], {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]})
        for span in spans
    ]


def test_a_reply_without_a_recorded_prompt_is_a_span_with_what_was_said_since_the_one_before() -> None:
    for stream in (imported(), imported(with_packets=True)):  # the prompts of packets were never sent
        (_, agent), (_, first), (name, _), (_, second) = spans_of(stream)
        assert name == "execute_tool look"
        assert "Find it" in agent["gen_ai.input.messages"]
        assert "There is none" in agent["gen_ai.output.messages"]
        assert "Find it" in first["gen_ai.input.messages"]
        assert (first["gen_ai.usage.input_tokens"], first["gen_ai.usage.output_tokens"]) == ("7", "3")
        assert "Find it" not in second["gen_ai.input.messages"]
        assert "nothing" in second["gen_ai.input.messages"]
        assert "There is none" in second["gen_ai.output.messages"]


def test_the_tokens_that_a_log_counted_are_in_every_export_with_tokens() -> None:
    first, *_ = csv.DictReader(io.StringIO(csv_text([COLUMNS, *turn_rows(imported())])))
    assert (first["prompt_tokens"], first["output_tokens"]) == ("7", "3")
    found = atif(imported())
    assert found["steps"][1]["metrics"] == {"prompt_tokens": 7, "completion_tokens": 3}
    assert found["final_metrics"]["total_prompt_tokens"] == 7


def test_a_call_without_a_result_has_a_row_and_an_empty_result_is_one() -> None:
    calls = (Call(call_id="1", tool="look"), Call(call_id="2", tool="think"))
    reply = ModelResponseEvent(seq=3, turn=1, calls=calls)
    asked = [ToolCallEvent(seq=4 + at, turn=1, call_id=call.call_id, tool=call.tool) for at, call in enumerate(calls)]
    empty = ToolResultEvent(seq=6, turn=1, call_id="2", tool="think", outcome="success")
    start = AgentStartEvent(seq=0, agent_id="A", operation="import", parent={"sha256": "x"})
    stream = CompleteStream([start, reply, *asked, empty], "", {6: ""})
    rows = list(csv.DictReader(io.StringIO(csv_text([COLUMNS, *turn_rows(stream)]))))
    assert [(row["tool"], row["outcome"]) for row in rows] == [("look", "no result"), ("think", "success")]
    given = [attributes for name, attributes in spans_of(stream) if name == "execute_tool think"]
    assert [attributes["gen_ai.tool.call.result"] for attributes in given] == [""]


def test_the_spans_of_an_imported_log_begin_when_it_took_place() -> None:
    spans = otlp([imported()])["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert int(spans[0]["startTimeUnixNano"]) == nanoseconds("2026-03-01T09:00:00Z")
    assert int(spans[-1]["endTimeUnixNano"]) == nanoseconds("2026-03-01T09:00:03Z")


@pytest.mark.parametrize("started", ["9999-12-31T23:59:59", "2600-01-01T00:00:00Z", "0001-01-01T00:00:00", "soon", ""])
def test_a_log_whose_beginning_no_span_can_hold_keeps_the_time_of_its_import(started: str) -> None:
    request = otlp([imported(started=started)])
    assert encode(request)
    (agent, *_) = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert int(agent["startTimeUnixNano"]) == nanoseconds("2026-11-18T10:00:00Z")


def test_a_reply_that_a_rule_made_is_no_span_of_a_model() -> None:
    events: list[Event] = [
        AgentStartEvent(seq=0, agent_id="A", goal="g"),
        ModelResponseEvent(seq=1, turn=1, rule="no problem is left"),
    ]
    assert [name for name, _ in spans_of(CompleteStream(events))] == ["invoke_agent agent"]
