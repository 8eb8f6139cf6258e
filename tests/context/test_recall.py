from __future__ import annotations

from pathlib import Path

import remora
from remora.context.recall import MAX_LINES, RECALL, Remembered, recall
from remora.context.summarizers import distill
from remora.events import Call

PAST = [
    Remembered(5, 1, "run_linter", "a.py:1 F401 `os`\na.py:9 E741 `l`"),
    Remembered(10, 2, "read_file", "\n".join(f"line {number} E741" for number in range(20))),
]


def test_the_newest_lines_that_hold_the_text_come_back_with_their_place() -> None:
    found = recall(PAST, "f401")["result"]
    assert found == [{"turn": 1, "seq": 5, "tool": "run_linter", "line": 1, "text": "a.py:1 F401 `os`"}]


def test_what_comes_back_is_bounded() -> None:
    result = recall(PAST, "E741")
    assert len(result["result"]) == MAX_LINES
    assert result["summary"] == "21 lines of earlier results contain 'E741'"
    assert result["result"][-1]["line"] == 20


def test_nothing_found_and_nothing_asked_are_told() -> None:
    assert recall(PAST, "nowhere")["summary"] == "Nothing contains 'nowhere'"
    assert recall(PAST, " \n")["outcome"] == "error"


async def test_a_run_can_look_into_its_own_stream_and_the_packet_shows_it(tmp_path: Path) -> None:
    async with remora.TwoTrack(goal="g", tools=[RECALL], state_dir=tmp_path) as tt:
        await tt.request()
        await tt.call(Call(call_id="1", tool="read_file"), lambda: "x" * 20_000 + "\nthe needle is here")
        await tt.call(Call(call_id="2", tool="recall", args={"text": "needle"}), tt.recall)
        assert tt.packet.knowledge["recall: needle"].value == ["turn 1 read_file:2 the needle is here"]
        assert "needle" in (await tt.request()).messages[-1]["content"]


def test_the_same_past_gives_the_same_answer() -> None:
    assert distill("recall", recall(PAST, "E741"), {}) == distill("recall", recall(PAST, "E741"), {})
