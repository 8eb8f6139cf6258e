from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from remora.analysis import fold_files, history_tokens, summarize
from remora.events import (
    AgentStartEvent,
    Call,
    EventEmitter,
    FileChange,
    JsonlEventEmitter,
    ModelResponseEvent,
    NoticeEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UserInputEvent,
    decode,
    from_record,
)
from remora.events import _codec as codec
from remora.inference import EstimatedCounter
from remora.trace import read_events

GOLDEN = Path(__file__).parents[1] / "golden" / "format-1-lint.jsonl"


def test_a_stream_in_one_row_tells_every_turn_on_both_tracks() -> None:
    summary = summarize(read_events(GOLDEN))
    assert (summary.outcome, summary.reason, summary.summary) == ("partial", "submitted", "5 of 7 fixed")
    assert [row.turn for row in summary.turns] == [1, 2, 3, 4, 5, 6]
    assert [row.news for row in summary.turns][:3] == ["goal, 3 tools", '"7 errors left"', '"3 errors left"']
    assert [call.tool for row in summary.turns for call in row.calls] == [
        "run_linter",
        "apply_fix",
        "apply_fix",
        "run_linter",
        "run_linter",
    ]
    assert summary.turns[-2].calls[0].raw_bytes == 20_000
    assert summary.turns[-1].submitted == "5 of 7 fixed"


def test_what_was_wrong_from_the_start_is_told_and_what_came_later_is_left_to_its_turn() -> None:
    early = NoticeEvent(code="adapter_weights", message="Adapter a.gguf was trained on other weights")
    later = NoticeEvent(code="no_result", message="look: it took too long", turn=2)
    assert summarize([early, later]).notices == ("Adapter a.gguf was trained on other weights",)


def test_chat_history_grows_by_every_raw_result() -> None:
    events = list(read_events(GOLDEN))
    sent = list(history_tokens(events, "system", lambda event: "word " * 100, EstimatedCounter()).values())
    assert len(sent) == 6
    assert all(later >= earlier + 100 for earlier, later in itertools.pairwise(sent))


def test_files_that_came_back_to_what_they_were_are_no_change() -> None:
    there_and_back = [FileChange(path="a", before="1", after="2"), FileChange(path="a", before="2", after="1")]
    assert fold_files(there_and_back) == ()
    assert fold_files([*there_and_back, FileChange(path="a", before="1", after="3")])[0].after == "3"


async def test_an_unknown_event_is_skipped_and_told(tmp_path: Path) -> None:
    emitter: EventEmitter = JsonlEventEmitter(tmp_path, "01NEW")
    await emitter.emit({"type": "agent_start", "goal": "g"})
    await emitter.emit({"type": "from_the_future", "colour": "red"})
    summary = summarize(read_events(tmp_path / "traces" / "01NEW.jsonl"))
    assert summary.notices == ("seq 1 is kept and skipped: type `from_the_future`, version 1 is not known",)


def test_an_older_format_is_brought_forward_while_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        codec.UPCASTS,
        0,
        lambda record: record | {"v": 1, "type": "notice", "data": {"message": record["data"]["text"]}},
    )
    old = b'{"v":0,"seq":3,"type":"remark","data":{"text":"from before"}}'
    assert decode(old) == from_record({"v": 1, "seq": 3, "type": "notice", "data": {"message": "from before"}})


def test_a_call_that_was_chosen_and_never_started_has_a_row_in_its_turn() -> None:
    reply = ModelResponseEvent(turn=1, seq=4, calls=(Call(call_id="a", tool="look", args={"at": 1}),))
    started = ModelResponseEvent(turn=2, seq=6, calls=(Call(call_id="b", tool="look"),))
    call = ToolCallEvent(turn=2, seq=7, call_id="b", tool="look")
    first, second = summarize([reply, started, call]).turns
    assert [(row.tool, row.args, row.summary) for row in first.calls] == [
        ("look", {"at": 1}, "the call was not started")
    ]
    assert [row.summary for row in second.calls] == ["no result is recorded"]


def test_a_result_that_a_continued_agent_had_submitted_is_not_a_call_that_was_not_started() -> None:
    submit = Call(call_id="a", tool="submit_result")
    reply = ModelResponseEvent(turn=1, seq=4, calls=(submit,))
    done = SubmitResultEvent(turn=1, call_id="a", result={"summary": "Done"})
    again = AgentStartEvent(parent={"relation": "continue", "turn": 1, "seq": 4})
    (cut_off,), (ended,) = summarize([reply]).turns, summarize([reply, done]).turns
    (left_out,) = summarize([again, reply]).turns
    assert [(row.tool, row.summary) for row in cut_off.calls] == [("submit_result", "the call was not started")]
    assert [row.summary for row in left_out.calls] == ["submitted; the agent went on after it"]
    assert (ended.calls, ended.submitted) == ((), "Done")


def test_what_a_person_said_is_new_in_the_next_turn() -> None:
    said = UserInputEvent(text="And now?", turn=1)
    failed = ToolResultEvent(turn=1, call_id="a", tool="look", outcome="error")
    assert summarize([said, TurnStartEvent(turn=2)]).turns[-1].news == 'user "And now?"'
    assert summarize([failed, said, TurnStartEvent(turn=2)]).turns[-1].news == 'last error, user "And now?"'
