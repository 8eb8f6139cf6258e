"""Made-up agents: their packets tell what is right, and following the first candidate is not enough."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import orjson
import pytest

from remora.context.history import HISTORY
from remora.context.render import RENDERERS
from remora.inference import EstimatedCounter
from remora_lab.train import TrainingRow, synthetic_rows
from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._scenarios import scenarios

ROWS = 1500


@pytest.fixture(scope="module")
def rows() -> list[TrainingRow]:
    return list(synthetic_rows(7, ROWS, EstimatedCounter()))


def tools_of(row: TrainingRow) -> dict[str, Any]:
    listed = row.messages[0]["content"].split("\nTools:\n")[1].split("\n\n")[0]
    return {tool["name"]: tool for tool in map(orjson.loads, listed.splitlines())}


def test_the_same_seed_gives_the_same_rows(rows: list[TrainingRow]) -> None:
    assert list(synthetic_rows(7, 100, EstimatedCounter())) == rows[:100]
    assert list(synthetic_rows(8, 100, EstimatedCounter())) != rows[:100]


def test_another_process_gives_the_same_rows(rows: list[TrainingRow]) -> None:
    program = (
        "from remora.inference import EstimatedCounter; from remora_lab.train import synthetic_rows; import sys\n"
        "sys.stdout.write(repr(list(synthetic_rows(7, 100, EstimatedCounter()))))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    assert told.stdout == repr(rows[:100])


def test_every_answer_calls_a_listed_tool_with_its_arguments(rows: list[TrainingRow]) -> None:
    assert len(rows) == ROWS
    for row in rows:
        answer = orjson.loads(row.answer)
        tool = tools_of(row)[answer["tool"]]
        assert set(answer["args"]) <= set(tool["args"])
        assert row.renderer in RENDERERS.values()


def test_what_an_answer_says_stands_in_its_prompt(rows: list[TrainingRow]) -> None:
    for row in rows:
        answer = orjson.loads(row.answer)
        text = "".join(message["content"] for message in row.messages)
        if answer["tool"] != "submit_result":
            assert all(orjson.dumps(value).decode().strip('"') in text for value in answer["args"].values()), row.id


def test_all_kinds_of_states_are_among_them(rows: list[TrainingRow]) -> None:
    packets = [orjson.loads(row.messages[1]["content"]) for row in rows if row.renderer == RENDERERS["json"]]
    assert 0.15 < sum(row.renderer == RENDERERS["markdown"] for row in rows) / len(rows) < 0.35
    for field in ("last_error", "diagnostics", "left_out", "excerpts", "hub_context", "extensions", "state_summary"):
        assert sum(field in packet for packet in packets) > 10, field
    assert sum("candidate_actions" not in packet for packet in packets) > len(packets) * 0.2
    submits = sum('"tool":"submit_result"' in row.answer for row in rows)
    assert 0.1 < submits / len(rows) < 0.4


def test_whoever_takes_the_first_candidate_is_often_wrong(rows: list[TrainingRow]) -> None:
    right = 0
    for row in rows:
        found = re.search(r'(\{"tool":"[^"]*"(?:,"args":\{[^}]*\})?)', row.messages[1]["content"].split("andidate")[-1])
        right += bool(found) and row.answer.startswith(found[1] if found else "-")
    assert 0.2 < right / len(rows) < 0.65


def test_tools_of_unseen_patterns_are_named_by_words_that_other_patterns_do_not_have(rows: list[TrainingRow]) -> None:
    def spoken(some: list[TrainingRow]) -> set[str]:
        parts = (re.findall(r"[A-Z]?[a-z]+", name) for row in some for name in tools_of(row) if "submit" not in name)
        return {part.lower() for each in parts for part in each if part.lower() in nouns}

    verbs = {*words.LOOK, *words.ACT, *words.READ, *words.EDIT, *words.WRITE, *words.VERIFY, *words.OTHER}
    nouns = {*words.NOUNS} - verbs

    def made_up(some: list[TrainingRow]) -> list[TrainingRow]:
        return [row for row in some if row.operation not in scenarios()]

    unseen = spoken(made_up(list(synthetic_rows(7, 800, EstimatedCounter(), unseen=True))))
    assert len(unseen) > 20
    assert not unseen & spoken(made_up(rows))


def test_chats_are_the_same_turns_and_answers_with_results_in_full(rows: list[TrainingRow]) -> None:
    chats = list(synthetic_rows(7, 300, EstimatedCounter(), chats=True))
    assert [row.answer for row in chats] == [row.answer for row in rows[:300]]
    assert {row.renderer for row in chats} == {HISTORY}
    for row in chats:
        said = [message["role"] for message in row.messages]
        assert said[:2] == ["system", "user"]
        assert said[2:] == ["assistant", "user"] * (len(said[2:]) // 2)
        assert all(" returned:\n" in message["content"] for message in row.messages[3::2])
