"""Rows of a person's request: the call fits the sentence, or the model declines."""

from __future__ import annotations

import orjson

from remora.inference import EstimatedCounter
from remora_lab.train import TrainingRow, request_rows
from remora_lab.train.synthetic._requests import DECLINED


def listed_tools(row: TrainingRow) -> dict[str, set[str]]:
    lines = str(row.messages[0]["content"]).partition("Tools:\n")[2].partition("\n\n")[0].split("\n")
    return {tool["name"]: set(tool["args"]) for tool in map(orjson.loads, lines)}


def test_a_request_holds_the_arguments_of_its_call_or_is_declined() -> None:
    declined = 0
    for row in request_rows(7, 300, EstimatedCounter()):
        call = orjson.loads(row.answer)
        goal = orjson.loads(str(row.messages[1]["content"]))["goal"]
        tools = listed_tools(row)
        assert set(call["args"]) <= tools[call["tool"]]
        assert (row.operation == "refusal") == (call["tool"] in ("submit_result", "no_tool_fits"))
        if row.operation == "refusal":
            declined += 1
        else:
            assert all(str(value) in goal for value in call["args"].values())
    assert abs(declined / 300 - DECLINED) < 0.1


def test_the_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    first, again, other = ([row.answer for row in request_rows(seed, 20, EstimatedCounter())] for seed in (1, 1, 2))
    assert first == again
    assert first != other
