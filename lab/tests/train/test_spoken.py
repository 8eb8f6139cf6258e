"""Rows of what people say: toolsets that were written by hand, and the rows that are made of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from remora.context.schema import problems
from remora.inference import EstimatedCounter
from remora.subagent import RESERVED_TOOLS
from remora_lab.bench.requests import listed_tools
from remora_lab.train import TrainingRow, spoken_rows
from remora_lab.train._rows import answer_text
from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._renumbering import renumbered
from remora_lab.train.synthetic._requests import DECLINED, TOOL
from remora_lab.train.synthetic._spoken import AFTER, BEFORE
from remora_lab.train.synthetic._toolsets import FOLDER, Said, Toolset, WantedCall, toolsets

ROWS = 1500


def blurred(text: str) -> str:
    """The text without the numbers that rows exchange."""
    return re.sub(r"\d{3,}", "#", text)


SAID: dict[str, tuple[Toolset, Said]] = {
    blurred(said.say): (each, said) for each in toolsets() for said in each.requests
}


def rows_of(seed: int, *, unseen: bool = False, rows: int = ROWS) -> list[TrainingRow]:
    return list(spoken_rows(seed, rows, EstimatedCounter(), unseen=unseen))


def goal_of(row: TrainingRow) -> str:
    return str(orjson.loads(str(row.messages[1]["content"]))["goal"])


def plain(name: str) -> str:
    """A name without its style."""
    return "".join(filter(str.isalnum, name)).lower()


def blurred_args(args: Mapping[str, Any]) -> dict[str, str]:
    return {plain(name): blurred(orjson.dumps(value).decode()) for name, value in args.items()}


def said_in(row: TrainingRow) -> tuple[Toolset, Said]:
    """What was written down, of a row's decorated sentence."""
    goal = blurred(goal_of(row))
    cut = [goal.removeprefix(before) for before in BEFORE] + [goal.removesuffix(after) for after in AFTER]
    found = [known for each in [goal, *cut] for known in (SAID.get(each), SAID.get(f"{each}.")) if known]
    return found[0]


@pytest.mark.parametrize("written", toolsets(), ids=lambda each: each.name)
def test_every_call_of_a_toolset_is_valid_and_its_tools_have_different_names(written: Toolset) -> None:
    names = [tool.name for tool in written.specs]
    assert len(names) == len(set(names))
    assert not set(names) & set(RESERVED_TOOLS)
    assert {name for group in written.alike for name in group} <= set(names)
    for said in written.requests:
        if said.call:
            assert answer_text(said.call.tool, said.call.args, written.specs), said.say
    assert any(said.call is None for said in written.requests)


@pytest.mark.parametrize("written", toolsets(), ids=lambda each: each.name)
def test_a_call_leaves_out_what_has_its_default(written: Toolset) -> None:
    schemas = {tool.name: tool.parameters["properties"] for tool in written.specs}
    for said in written.requests:
        for name, value in (said.call.args if said.call else {}).items():
            schema = schemas[said.call.tool if said.call else ""][name]
            assert "default" not in schema or schema["default"] != value, said.say


def test_names_and_sentences_are_unique() -> None:
    assert max(Counter(each.name for each in toolsets()).values()) == 1
    assert max(Counter(blurred(said.say) for each in toolsets() for said in each.requests).values()) == 1


def test_a_default_fits_its_own_schema() -> None:
    for written in toolsets():
        for tool in written.specs:
            for name, schema in tool.parameters["properties"].items():
                assert "default" not in schema or not problems(schema, schema["default"]), f"{tool.name}: {name}"


def test_files_of_toolsets_stay_readable() -> None:
    for path in FOLDER.glob("*.yaml"):
        assert len(path.read_text("utf-8").splitlines()) < 400, path.name


def test_the_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    first, again, other = rows_of(1, rows=50), rows_of(1, rows=50), rows_of(2, rows=50)
    assert first == again
    assert [row.messages for row in first] != [row.messages for row in other]


def test_every_call_is_one_of_an_offered_tool_with_the_arguments_that_were_written() -> None:
    for row in rows_of(3):
        call = orjson.loads(row.answer)
        offered = {tool.name: tool for tool in listed_tools(str(row.messages[0]["content"]))}
        assert not problems(offered[call["tool"]].parameters, call["args"])
        if row.operation == "request":
            wanted = said_in(row)[1].call
            assert wanted is not None
            assert plain(call["tool"]) == plain(wanted.tool)
            assert blurred_args(call["args"]) == blurred_args(wanted.args)


def test_a_refusal_never_has_the_right_tool_or_one_that_could_stand_in_for_it() -> None:
    refused = [row for row in rows_of(4) if row.operation == "refusal"]
    for row in refused:
        written, said = said_in(row)
        offered = {(plain(tool.name), tool.description) for tool in listed_tools(str(row.messages[0]["content"]))}
        gone = written.stand_ins(said.call.tool) if said.call else frozenset()
        assert not offered & {(plain(tool.name), tool.description) for tool in written.specs if tool.name in gone}
    assert abs(len(refused) / ROWS - DECLINED) < 0.05


def test_unseen_toolsets_are_never_trained_on() -> None:
    seen, kept = rows_of(5), rows_of(5, unseen=True)
    assert all(not said_in(row)[0].is_unseen for row in seen)
    assert all(said_in(row)[0].is_unseen for row in kept)
    described = {tool.description for each in toolsets() if each.is_unseen for tool in each.specs}
    assert not described & {orjson.loads(line)["description"] for row in seen for line in tool_lines(row)}


def tool_lines(row: TrainingRow) -> set[str]:
    lines = str(row.messages[0]["content"]).partition("Tools:\n")[2].partition("\n\n")[0].split("\n")
    return {line for line in lines if orjson.loads(line)["name"] not in RESERVED_TOOLS}


def test_names_come_in_several_styles_and_arguments_in_several_orders() -> None:
    names, orders = defaultdict[str, set[str]](set), defaultdict[str, set[tuple[str, ...]]](set)
    for row in rows_of(7):
        for tool in map(orjson.loads, tool_lines(row)):
            names[tool["description"]].add(tool["name"])
            orders[tool["description"]].add(tuple(map(plain, tool["args"])))
    assert sum(len(each) >= 3 for each in names.values()) > len(names) / 3
    assert sum(len(each) >= 2 for each in orders.values()) > len(orders) / 3


def test_numbers_change_in_a_sentence_and_its_call_alike() -> None:
    args = {"order": "WO-5512", "lines": [{"sku": "A-300", "qty": 250}], "on": "2026-11-03", "price": 12.5}
    say = "WO-5512: 250 of A-300 on 2026-11-03, 12.5 each"
    found = renumbered(Dice("1"), Said(say=say, call=WantedCall(tool="order", args=args)))
    assert found.call is not None
    order, (line,) = found.call.args["order"], found.call.args["lines"]
    assert order != "WO-5512"
    assert found.say == f"{order}: {line['qty']} of {line['sku']} on 2026-11-03, 12.5 each"
    assert (found.call.args["on"], found.call.args["price"]) == ("2026-11-03", 12.5)


def test_a_number_that_only_the_sentence_or_only_the_call_names_stays() -> None:
    said = Said(
        say="Flat 221, since 1990, 4711 euros", call=WantedCall(tool="rent", args={"year": 1990, "cents": 471100})
    )
    assert renumbered(Dice("1"), said) == said


def test_sometimes_one_tool_is_offered_and_mostly_one_that_declines() -> None:
    rows = rows_of(6)
    assert any(len(tool_lines(row)) == 1 and row.operation == "request" for row in rows)
    declines = [row for row in rows if '"name":"no_tool_fits"' in str(row.messages[0]["content"])]
    assert abs(len(declines) / len(rows) - TOOL) < 0.05
    for row in rows:
        if row.operation == "refusal":
            assert orjson.loads(row.answer)["tool"] == ("no_tool_fits" if row in declines else "submit_result")
