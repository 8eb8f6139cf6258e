from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import remora
from remora.context.recall import MAX_EXCERPT_LINES, MAX_LINES, RECALL, Recall, Remembered
from remora.context.summarizers import distill
from remora.events import Call, readable
from remora.testing import MemoryTwoTrack

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
        assert tt.packet.knowledge["recall: needle"].value == [
            "turn 1 read_file:52 the needle is here"
        ]  # the line before is divided
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


SHOP = {
    "next": "cur_7",
    "items": [{"id": f"itm_{at:03}", "stock": at, "size": {"w": 1, "h": at}, "note": "x" * 150} for at in range(300)],
}


def recall_of(text: str, asked: dict[str, Any], **event: Any) -> dict[str, Any]:
    question = Recall(**asked)
    question.take(Remembered(4, 1, "shop", text, **event))
    return question.result()


def test_a_search_finds_a_record_of_json_in_one_line_with_its_id() -> None:
    for text, is_value in ((orjson.dumps(SHOP).decode(), False), (readable(SHOP), True)):
        (found,) = recall_of(text, {"text": "itm_222"}, is_value=is_value)["result"]
        assert found["text"].startswith("items[222]: id: itm_222, stock: 222")
        (again,) = recall_of(text, {"seq": 4, "lines": f"{found['line']}-{found['line']}"}, is_value=is_value)[
            "excerpts"
        ]
        assert again["text"].startswith("items[222]: id: itm_222, stock: 222")
        (paged,) = recall_of(text, {"text": "next: cur_7"}, is_value=is_value)["result"]
        assert paged["text"] == "next: cur_7"


def test_json_that_was_written_in_short_lines_comes_back_as_it_was_written() -> None:
    text = '{\n  "name": "x",\n  "version": "1"\n}'
    assert recall_of(text, {"seq": 4})["excerpts"][0]["text"] == text


def test_every_part_of_a_long_line_comes_back() -> None:
    text = "start " + ";".join(f"function f{at}(x){{return x*{at}}}" for at in range(3000)) + "Z" * 5000
    total = int(recall_of(text, {"seq": 4})["summary"].split(" of ")[1].split()[0])
    parts: list[str] = []
    while len(parts) < total:
        (excerpt,) = recall_of(text, {"seq": 4, "lines": f"{len(parts) + 1}-"})["excerpts"]
        parts += excerpt["text"].split("\n")
    assert "".join(part.removeprefix(" … ") for part in parts).replace(" ", "") == text.replace(" ", "")
    (found,) = recall_of(text, {"text": "f1500("})["result"]
    assert "f1500(" in found["text"]


def test_deep_values_and_texts_of_several_lines_come_back_whole() -> None:
    deep: Any = "the bottom"
    for level in range(60):
        deep = {f"k{level}": deep, "note": "y" * 90}
    assert recall_of(readable(deep), {"text": "the bottom"}, is_value=True)["result"]
    log = {"log": "first\nsecond needle\nthird", "more": ["z" * 120] * 9}
    assert recall_of(readable(log), {"text": "second needle"}, is_value=True)["result"][0]["text"] == "second needle"


def test_lines_that_hold_a_text_in_one_event_have_their_numbers() -> None:
    (excerpt,) = recall("line 1", seq=10)["excerpts"]
    assert excerpt["text"].split("\n")[:2] == ["2: line 1 E741", "11: line 10 E741"]
    assert excerpt["start_line"] == 2
    assert recall("nowhere", seq=10)["summary"] == "No line of #10 contains 'nowhere'"


@pytest.mark.parametrize(
    "asked", [{"seq": "10"}, {"seq": "#10"}, {"seq": 10, "lines": [1, 20]}, {"seq": 10, "lines": "1-"}]
)
def test_numbers_are_read_as_models_write_them(asked: dict[str, Any]) -> None:
    assert recall(**asked)["excerpts"][0]["text"].count("\n") == 19


@pytest.mark.parametrize(
    ("asked", "name"), [({"seq": "last"}, "`seq`"), ({"seq": 10, "lines": "all of it"}, "`lines`")]
)
def test_what_is_no_number_is_told(asked: dict[str, Any], name: str) -> None:
    result = recall(**asked)
    assert result["outcome"] == "error"
    assert str(result["error"]).startswith(name)


async def test_a_search_does_not_find_what_earlier_searches_returned() -> None:
    async with MemoryTwoTrack("g", tools=[RECALL]) as tt:
        await tt.request()
        await tt.call({"tool": "look", "args": {}}, lambda: {"a": [{"id": "needle_7", "n": 1}], "b": "x" * 200})
        for _ in range(3):
            await tt.call({"tool": "recall", "args": {"text": "needle_7"}}, dict)
        found = await tt.recall("needle_7")
    assert [(item["tool"], item["text"]) for item in found["result"]] == [("look", "a: [id: needle_7, n: 1]")]
