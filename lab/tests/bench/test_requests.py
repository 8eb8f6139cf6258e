"""Requests of people: who is asked, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from remora.events import Call
from remora.inference import EstimatedCounter
from remora.ports import Decision, Prompt
from remora_lab.bench._prompt_parts import read_prompt
from remora_lab.bench.requests import Asked, ask_requests, figures
from remora_lab.cli._requests import _plain
from remora_lab.train import request_rows


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
    found = figures(await ask_requests(rows, [policy, policy]))
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
