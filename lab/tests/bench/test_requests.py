"""Requests of people: who is asked, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from remora.app import Deciders
from remora.cli._main import app
from remora.errors import ConfigError
from remora.events import Call
from remora.inference import EstimatedCounter
from remora.ports import Decision, Prompt
from remora_lab.bench._prompt_parts import read_prompt
from remora_lab.bench.own_requests import OwnRequests
from remora_lab.bench.requests import Asked, ask_requests, figures, request_of
from remora_lab.cli._requests import _made, _plain
from remora_lab.train import request_rows
from remora_lab.train.synthetic._toolsets import toolsets


class Knowing:
    """A policy that gives the answer that the row has."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers

    async def decide(self, prompt: Prompt) -> Decision:
        wanted: dict[str, Any] = orjson.loads(self._answers[str(prompt.messages[-1]["content"])])
        return Decision(calls=(Call(call_id="1", tool=wanted["tool"], args=wanted["args"]),))


async def test_whoever_knows_the_answers_is_right_and_declines_what_fits_no_tool() -> None:
    rows = list(request_rows(3, 40, EstimatedCounter(), unseen=True))
    policy = Knowing({str(row.messages[-1]["content"]): row.answer for row in rows})
    found = figures(await ask_requests(map(request_of, rows), [policy, policy]))
    assert (found.right_tool.value, found.exact.value, found.declined.value) == (1, 1, 1)
    assert found.over_declined.value == 0


def test_a_wrong_tool_is_neither_right_nor_declined() -> None:
    asked = [Asked("a", "b", False, 1, 2, 0.1), Asked("no_tool_fits", "a", False, 0, 2, 0.1)]
    found = _plain(figures(asked))
    assert orjson.loads(orjson.dumps(found))["right_tool"]["value"] == 0
    assert found["declined"]["value"] == 0


def test_a_packet_is_read_also_if_the_prompt_says_below_it_that_the_work_is_done() -> None:
    said = '{"knowledge":{"errors":0}}\n\n`errors` is 0: the work is done. Call submit_result.'
    prompt = Prompt(messages=({"role": "user", "content": said},), tools=(), candidates=(), turn=2)
    assert read_prompt(prompt).knowledge == {"errors": 0}


TOOL = {
    "type": "function",
    "function": {
        "name": "reschedule",
        "description": "Move an event.",
        "parameters": {
            "type": "object",
            "properties": {
                "event": {"type": "string"},
                "day": {"type": "string"},
                "notify": {"type": "boolean", "default": True},
            },
            "required": ["event", "day"],
        },
    },
}


class Saying:
    """A policy that always makes the same call, and remembers what it was asked."""

    def __init__(self, tool: str, **args: Any) -> None:
        self._call = Call(call_id="1", tool=tool, args=args)
        self.prompts: list[Prompt] = []

    async def decide(self, prompt: Prompt) -> Decision:
        self.prompts.append(prompt)
        return Decision(calls=(self._call,))


def own(tmp_path: Path, *lines: object) -> OwnRequests:
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else orjson.dumps(line).decode() for line in lines))
    return OwnRequests(file)


def request(call: object) -> dict[str, Any]:
    return {"request": "Move the 3 pm call to Friday", "tools": [TOOL], "call": call}


async def asked_of(found: OwnRequests, policy: Saying) -> list[Asked]:
    deciders = Deciders(policy=lambda _: policy, counter=EstimatedCounter())
    return await ask_requests(found.prompts(deciders), [policy])


@pytest.mark.parametrize(
    ("args", "exact"),
    [({}, True), ({"notify": True}, True), ({"notify": False}, False), ({"day": "Monday"}, False)],
)
async def test_an_argument_with_its_default_is_as_good_as_none(
    tmp_path: Path, args: dict[str, Any], exact: bool
) -> None:
    wanted = {"name": "reschedule", "arguments": {"event": "3 pm call", "day": "Friday"}}
    policy = Saying("reschedule", **{"event": "3 pm call", "day": "Friday", **args})
    (asked,) = await asked_of(own(tmp_path, request(wanted)), policy)
    assert (asked.tool, asked.exact) == ("reschedule", exact)


CARD = {
    "name": "pay",
    "parameters": {"type": "object", "properties": {"what": {"type": "object"}, "days": {}, "on": {}}},
}


@pytest.mark.parametrize(
    ("args", "right"),
    [
        ({"what": {"to": "Ada Lovelace", "sum": 5}, "days": ["May 1, 2024"]}, True),
        ({"what": {"to": "ada  lovelace", "sum": 5.0}, "days": ["may 1 2024"], "on": True}, True),
        ({"what": {"to": "Ada Lovelace"}, "days": ["May 1, 2024"]}, False),
        ({"what": {"to": "Ada Lovelace", "sum": 5}, "days": ["May 1, 2024", "May 2"]}, False),
        ({"what": {"to": "Ada Lovelace", "sum": 5}, "days": ["May 1, 2024"], "on": 1}, False),
        ({"what": {"to": "Ada Lovelace", "sum": 5}, "days": ["May 1, 2024"], "off": True}, False),
    ],
)
async def test_each_argument_may_have_several_right_values_or_be_missing(
    tmp_path: Path, args: dict[str, Any], right: bool
) -> None:
    accepts = {"what": [{"to": ["Ada", "Ada Lovelace"], "sum": [5]}], "days": [["May 1, 2024"]], "on": [True, None]}
    line = {"request": "Pay Ada", "tools": [CARD], "call": {"name": "pay", "accepts": accepts}}
    (asked,) = await asked_of(own(tmp_path, line), Saying("pay", **args))
    assert asked.exact is right


async def test_a_line_without_decline_offers_no_tool_for_it(tmp_path: Path) -> None:
    policy = Saying("submit_result", summary="none")
    (asked,) = await asked_of(own(tmp_path, {**request(None), "decline": False}), policy)
    assert [tool.name for tool in policy.prompts[0].tools] == ["reschedule", "submit_result"]
    assert "no_tool_fits" not in str(policy.prompts[0].messages)
    assert asked.declined and asked.should_decline and not asked.offered


def test_a_tool_may_be_named_as_one_that_is_not_offered(tmp_path: Path) -> None:
    line = {"request": "x", "tools": [{"name": "no_tool_fits"}], "call": None, "decline": False}
    assert len(own(tmp_path, line)) == 1


async def test_a_prompt_has_the_sentence_whole_and_the_tools_of_its_line(tmp_path: Path) -> None:
    sentence = "Move the call " + " ".join(["with a person whose name is long"] * 30)
    policy = Saying("no_tool_fits", reason="no")
    (asked,) = await asked_of(own(tmp_path, {**request(None), "request": sentence}), policy)
    assert sentence in str(policy.prompts[0].messages[-1]["content"])
    assert [tool.name for tool in policy.prompts[0].tools] == ["reschedule", "no_tool_fits", "submit_result"]
    assert asked.declined and asked.should_decline


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ({"request": "x", "tools": [TOOL]}, r"\$.call"),
        (request({"name": "reschedule", "arguments": {"day": "x"}, "accepts": {"day": ["x"]}}), "not both"),
        (request({"name": "other"}), "names `other`, which is not one of its tools"),
        ({"request": "x", "tools": [{"function": {"nom": "x"}}], "call": None}, "is not a tool"),
        (request({"name": "reschedule", "accepts": {"day": [{"on": 1}]}}), "`accepts.day.on` is no list"),
        (request({"name": "reschedule", "accepts": {"day": [[{"on": 1}]]}}), "`accepts.day.on` is no list"),
        ({"request": "x", "tools": [{"name": "no_tool_fits"}], "call": None}, "two tools are named `no_tool_fits`"),
        ({"request": "x", "tools": [TOOL, TOOL], "call": None}, "two tools are named `reschedule`"),
        ({"request": "x", "tools": [{"name": "submit_result"}], "call": None}, "two tools are named `submit_result`"),
        ({"request": "x", "tools": [{"name": "f", "input_schema": {"properties": {"a": True}}}], "call": None}, "read"),
    ],
)
def test_a_line_that_is_no_request_is_told_with_its_number(tmp_path: Path, line: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"requests.jsonl:2.*{problem}"):
        own(tmp_path, request(None), line)


def test_a_file_that_is_missing_or_empty_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        OwnRequests(tmp_path / "none.jsonl")
    with pytest.raises(ConfigError, match="holds no request"):
        own(tmp_path, "")


def test_two_sources_of_requests_at_once_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "requests", "--spoken", "--from", str(tmp_path / "none.jsonl")])
    assert done.exit_code == 3
    assert "expected one of them" in done.output


async def test_what_people_say_is_asked_with_tools_that_are_never_trained_on() -> None:
    policy = Saying("any")
    requests = [*_made(1, 40, spoken=True)]
    await ask_requests(requests, [policy])
    described = {tool.description for each in toolsets() if not each.is_unseen for tool in each.specs}
    asked = {tool.description for prompt in policy.prompts for tool in prompt.tools}
    assert len(policy.prompts) == 40
    assert not asked & described
