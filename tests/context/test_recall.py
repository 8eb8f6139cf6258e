from __future__ import annotations

from pathlib import Path
from typing import Any

import remora
from remora.context.recall import MAX_EXCERPT_LINES, MAX_LINES, RECALL, Recall, Remembered
from remora.context.summarizers import distill
from remora.events import Call

PAST = [
    Remembered(5, 1, "run_linter", "a.py:1 F401 `os`\na.py:9 E741 `l`"),
    Remembered(10, 2, "read_file", "\n".join(f"line {number} E741" for number in range(20))),
]


def recall(text: str = "", **asked: Any) -> dict[str, Any]:
    question = Recall(text, **asked)
    for item in PAST:
        if question.wants(item.seq):
            question.take(item)
    return question.result()


def test_the_newest_lines_that_hold_the_text_come_back_with_their_place() -> None:
    found = recall("f401")["result"]
    assert found == [{"turn": 1, "seq": 5, "tool": "run_linter", "line": 1, "text": "a.py:1 F401 `os`"}]


def test_what_comes_back_is_bounded() -> None:
    result = recall("E741")
    assert len(result["result"]) == MAX_LINES
    assert result["summary"] == "21 lines of earlier results contain 'E741'"
    assert result["result"][-1]["line"] == 20


def test_nothing_found_and_nothing_asked_are_told() -> None:
    assert recall("nowhere")["summary"] == "Nothing contains 'nowhere'"
    assert recall(" \n")["outcome"] == "error"


async def test_a_run_can_look_into_its_own_stream_and_the_packet_shows_it(tmp_path: Path) -> None:
    async with remora.TwoTrack(goal="g", tools=[RECALL], state_dir=tmp_path) as tt:
        await tt.request()
        await tt.call(Call(call_id="1", tool="read_file"), lambda: "x" * 20_000 + "\nthe needle is here")
        await tt.call(Call(call_id="2", tool="recall", args={"text": "needle"}), tt.recall)
        assert tt.packet.knowledge["recall: needle"].value == ["turn 1 read_file:2 the needle is here"]
        assert "needle" in (await tt.request()).messages[-1]["content"]


def test_the_same_past_gives_the_same_answer() -> None:
    assert distill("recall", recall("E741"), {}) == distill("recall", recall("E741"), {})


def test_an_event_comes_back_by_its_number_whole_or_some_lines_of_it() -> None:
    (whole,) = recall(seq=5)["excerpts"]
    assert (whole["label"], whole["text"]) == ("#5 run_linter", "a.py:1 F401 `os`\na.py:9 E741 `l`")
    (some,) = recall(seq=10, lines="3-4")["excerpts"]
    assert (some["start_line"], some["text"]) == (3, "line 2 E741\nline 3 E741")
    assert recall(seq=99)["outcome"] == "error"


def test_an_event_comes_back_bounded() -> None:
    question = Recall(seq=1)
    question.take(Remembered(1, 1, "read", "\n".join("x" * 200 for _ in range(1000))))
    (excerpt,) = question.result()["excerpts"]
    assert len(excerpt["text"]) <= 4_000
    assert excerpt["text"].count("\n") < MAX_EXCERPT_LINES


async def test_recall_is_offered_by_itself_where_something_was_left_out(tmp_path: Path) -> None:
    async with remora.TwoTrack(goal="g", budget=900, state_dir=tmp_path) as tt:
        assert [tool.name for tool in (await tt.request()).tools] == []
        text = "\n".join(f"{number}: value_{number}" for number in range(2000))
        shown = await tt.perform(Call(call_id="1", tool="read_file"), lambda: text)
        prompt = await tt.request()
        assert [tool.name for tool in prompt.tools] == ["recall"]
        assert "`recall` brings them back" in prompt.text
        ask = Call(call_id="2", tool="recall", args={"seq": shown.seq, "lines": "1500-1502"})
        await tt.call(ask, lambda **_: "not asked")
        assert "1500: value_1500" in (await tt.request()).messages[-1]["content"]
