from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from remora.analysis import call_words, report_agent, words_in
from remora.analysis.reporting.agent import seconds_between
from remora.analysis.reporting.lost import has_word
from remora.events import (
    AgentEndEvent,
    AgentErrorEvent,
    AgentStartEvent,
    Call,
    ErrorDelta,
    Event,
    FileChange,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    PacketDelta,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    UserInputEvent,
)
from remora.trace import read_events

GOLDEN = Path(__file__).parents[2] / "golden" / "format-1-lint.jsonl"


def stream(*events: Event) -> list[Event]:
    """The events with seqs and times as a writer would give them."""
    return [
        event.model_copy(update={"seq": seq, "ts": f"2026-11-15T18:20:{seq:02d}.000000Z"})
        for seq, event in enumerate(events)
    ]


def turn(number: int, shown: str, call: Call, raw: str) -> list[Event]:
    return [
        TurnStartEvent(turn=number),
        ModelRequestEvent(turn=number, messages=({"role": "user", "content": shown},), tokens={"total": 100}),
        ModelResponseEvent(turn=number, calls=(call,)),
        ToolCallEvent(turn=number, call_id=call.call_id, tool=call.tool, args=call.args),
        ToolResultEvent(turn=number, call_id=call.call_id, tool=call.tool, outcome="success", duration_ms=5, raw=raw),
    ]


def test_a_report_holds_what_was_asked_done_and_judged() -> None:
    report = report_agent(read_events(GOLDEN))
    assert report.goal
    assert (report.outcome, report.summary) == ("partial", "5 of 7 fixed")
    assert report.status == "partial"
    assert [step.tool for step in report.steps] == ["run_linter", "apply_fix", "apply_fix", "run_linter", "run_linter"]
    assert report.turns == 6
    assert report.prompt_tokens > 0


def test_the_servers_own_count_goes_before_the_receipts() -> None:
    events = stream(
        AgentStartEvent(model={"policy": "ollama", "model": "small"}),
        ModelRequestEvent(turn=1, tokens={"total": 90}),
        ModelResponseEvent(turn=1, model="small", usage={"prompt_tokens": 100, "completion_tokens": 7}),
        ModelRequestEvent(turn=2, tokens={"total": 50}),
        ModelResponseEvent(turn=2, model="large"),
    )
    small, large = report_agent(events).models
    assert (small.model, small.prompt_tokens, small.output_tokens, small.counted) == ("small", 100, 7, "server")
    assert (large.model, large.prompt_tokens, large.output_tokens, large.counted) == ("large", 50, 0, "receipt")
    assert small.duration_ms == 1000


def test_a_model_file_is_named_without_its_folders() -> None:
    events = stream(ModelRequestEvent(turn=1), ModelResponseEvent(turn=1, model="/home/ann/models/small.gguf"))
    (use,) = report_agent(events).models
    assert use.model == "small.gguf"


def test_what_was_refused_is_told_with_its_reason() -> None:
    told = PacketDelta(error=ErrorDelta(set="There is no tool `fly`"))
    events = stream(
        AgentStartEvent(),
        ModelResponseEvent(turn=1, error="unknown_tool", delta=told),
        NoticeEvent(turn=1, code="too_many_calls", message="20 calls in one reply: 16 were made"),
        NoticeEvent(turn=1, code="window", message="The window is small"),
        AgentErrorEvent(turn=1, code="undecided", message="3 replies in a row without a call"),
        AgentEndEvent(turn=1, outcome="error", reason="undecided", summary="3 replies in a row without a call"),
    )
    report = report_agent(events)
    assert [(refusal.what, refusal.why) for refusal in report.refused] == [
        ("the reply", "There is no tool `fly`"),
        ("too many calls", "20 calls in one reply: 16 were made"),
    ]
    assert report.notices == ("The window is small",)
    assert report.status == "failed"
    assert report.why == "undecided: 3 replies in a row without a call"


def test_the_check_decides_the_status_and_its_last_result_lists_what_is_left() -> None:
    def check(seq_name: str, *codes: str) -> ToolResultEvent:
        errors = [{"code": code, "message": "bad", "location": {"row": 3, "column": 2}} for code in codes]
        raw = {"result": {"errors": errors}}
        return ToolResultEvent(call_id=seq_name, tool="run_linter", outcome="success", raw=raw, purpose="check")

    counts = {"tool": "run_linter", "key": "errors", "before": 2, "after": 1, "evidence": [1, 2]}
    end = AgentEndEvent(verdict="partial", check=counts)
    events = stream(AgentStartEvent(), check("before", "A", "B"), check("after", "B"), end)
    report = report_agent(events)
    assert report.status == "partial"
    assert [item["code"] for item in report.problems] == ["B"]
    assert report.steps == ()
    unchanged = report_agent([*events[:-1], end.model_copy(update={"check": counts | {"after": 2}})])
    assert unchanged.status == "unchanged"


def test_a_fork_counts_only_its_own_turns_but_all_its_files() -> None:
    change = FileChange(path="a.py", before="sha256:1", after="sha256:2")
    first = turn(1, "goal", Call(call_id="1", tool="edit"), "done")
    first[-1] = first[-1].model_copy(update={"files": (change,)})
    events = stream(
        AgentStartEvent(parent={"relation": "fork", "agent_id": "P", "seq": 5, "turn": 1}),
        *first,
        UserInputEvent(turn=1, text="go on"),
        *turn(2, "goal", Call(call_id="2", tool="look"), "seen"),
    )
    report = report_agent(events)
    assert (report.turns, report.inherited) == (2, 1)
    assert [step.tool for step in report.steps] == ["look"]
    assert [file.path for file in report.files] == ["a.py"]
    assert report.prompt_tokens == 100
    assert report.said == ("go on",)


def test_a_word_that_only_an_earlier_result_held_is_lost_and_names_its_result() -> None:
    events = stream(
        AgentStartEvent(goal="Find it"),
        *turn(1, "goal", Call(call_id="1", tool="list", args={}), "id_4711 and id_4712"),
        *turn(2, "goal id_4712", Call(call_id="2", tool="get", args={"ids": ["id_4711", "id_4712", "new_one"]}), "x"),
    )
    report = report_agent(events, raw_text=lambda event: str(event.raw))
    assert [(lost.word, lost.tool, lost.seq, lost.turn) for lost in report.lost] == [("id_4711", "list", 5, 2)]


def test_a_word_of_the_system_text_is_not_lost() -> None:
    events = stream(
        AgentStartEvent(),
        *turn(1, "goal", Call(call_id="1", tool="list"), "id_4711"),
        *turn(2, "goal", Call(call_id="2", tool="get", args={"id": "id_4711"}), "x"),
    )
    report = report_agent(events, system=lambda request: "Use id_4711", raw_text=lambda event: str(event.raw))
    assert report.lost == ()


@given(st.text(alphabet='ab1_ .\\nrt"-', max_size=30), st.sampled_from(["ab1", "aab", "b_1", "11", "nab", "rab1"]))
def test_a_word_is_found_exactly_where_splitting_into_words_finds_it(text: str, word: str) -> None:
    if call_words([Call(call_id="1", tool="t", args={"a": word})]) == {word}:
        assert has_word(text, word) == (word in words_in(text))


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    assert seconds_between("2026-11-15T18:20:45Z", "2026-11-15T18:20:44Z") == 0
    assert seconds_between("", "2026-11-15T18:20:44Z") == 0
    assert seconds_between("nonsense", "2026-11-15T18:20:44Z") == 0
