from __future__ import annotations

from typing import Any

import pytest

from remora.context.contracts import make_error_result, make_partial_result, make_success_result
from remora.errors import DecisionError
from remora.events import ToolResultEvent
from remora.testing import (
    MemoryTwoTrack,
    ScriptedModel,
    assert_valid_tool_result,
    completion,
    make_ctx,
    make_definition,
    make_node,
    tool_call_message,
)


def test_what_is_made_fits_together() -> None:
    definition, node, ctx = make_definition(), make_node(), make_ctx()
    assert definition.goal.format(node=node.node_id, file=node.file_path) == f"Fix lint errors in {ctx.node_id}"
    assert node.summary() == "function 'load' in cart.py, lines 1-2"
    assert (make_definition(max_turns=3).max_turns, make_ctx("01B").agent_id) == (3, "01B")
    assert make_node("x\n", name="f", file_path="a.py").node_id == "a.py:f"


@pytest.mark.parametrize(
    "result", [make_success_result(1, "one"), make_error_result("no"), make_partial_result([], "half", {"k": 1})]
)
def test_results_of_the_helpers_keep_the_contract(result: dict[str, Any]) -> None:
    assert_valid_tool_result(result)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"summary": "x" * 200}, "shorter than 200"),
        ({"outcome": "fine"}, "`outcome` is one of"),
        ({"knowledge_delta": [1]}, "`knowledge_delta` does not fit"),
        ({"candidate_actions": [{}]}, "`candidate_actions.0.tool` does not fit"),
    ],
)
def test_a_result_that_breaks_the_contract_is_told(change: dict[str, Any], why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        assert_valid_tool_result(make_success_result(1, "one") | change)


@pytest.mark.parametrize("result", ["text", {}, {"summary": "s"}, {"summary": "s", "outcome": "success"}])
def test_what_is_no_result_is_told(result: Any) -> None:
    with pytest.raises(AssertionError):
        assert_valid_tool_result(result)


async def test_a_scripted_model_drives_both_tracks_without_a_disk_or_a_model() -> None:
    model = ScriptedModel(("look", {"at": "a.py"}), "done")
    async with MemoryTwoTrack("Look", tools=[{"name": "look"}]) as tt:
        for _ in range(2):
            for call in await tt.response(await model.decide(await tt.request())):
                await tt.call(call, lambda at: {"summary": f"looked at {at}"})
        with pytest.raises(DecisionError, match="2 steps"):
            await model.decide(await tt.request())
    assert "looked at a.py" in model.prompts[1].messages[-1]["content"]
    assert [event.raw for event in tt.events if isinstance(event, ToolResultEvent)] == [{"summary": "looked at a.py"}]


async def test_the_same_test_writes_the_same_bytes() -> None:
    heads = []
    for _ in range(2):
        async with MemoryTwoTrack("Same") as tt:
            await tt.user("hello")
        heads.append(tt.events[-1].prev)
    assert heads[0] == heads[1]


def test_no_event_is_there_before_the_start() -> None:
    assert MemoryTwoTrack().events == []


def test_a_completion_has_the_shape_that_the_client_reads() -> None:
    chat = pytest.importorskip("openai.types.chat")
    reply = chat.ChatCompletion.model_validate(completion(tool_call_message("t", {"a": 1}), prompt_tokens=5))
    assert reply.choices[0].message.tool_calls[0].function.arguments == '{"a":1}'
    assert reply.usage.prompt_tokens == 5
