"""A model that may decline is asked whether its first call does what was asked, and the decision shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inference.fakes import DONE, USAGE, FakeServer, Reply, answer, chooses, chunk, says, stream
from remora.context.contracts import ToolSpec
from remora.errors import ReplyInvalid
from remora.events import Call
from remora.inference import PRESETS, Adapter, EmbeddedPolicy, EmbeddedServer, Endpoint, ServerPolicy
from remora.inference._embedded import Child
from remora.inference._fit import LEAST_YES, fit_messages
from remora.ports import Decision, Prompt
from remora.subagent import NO_TOOL_FITS, SUBMIT_RESULT

BOOK = ToolSpec(name="book_table", description="Book a table.", parameters={"type": "object", "properties": {}})
PACKET = '{"goal":"Water the plants.","turn":1}'
BOOKS = chooses("book_table")


def offer(*tools: ToolSpec, turn: int = 1, goal: str = "") -> Prompt:
    return Prompt(({"role": "user", "content": PACKET},), tools, turn=turn, goal=goal)


async def decide(server: FakeServer, prompt: Prompt, preset: str = "vllm", **settings: Any) -> Decision:
    async with ServerPolicy(Endpoint(PRESETS[preset], server.url, model="m", **settings)) as policy:
        return await policy.decide(prompt)


def thinks(word: str, **log_probabilities: float) -> Reply:
    """A word, and how likely the first tokens were."""
    top = [{"token": token, "logprob": value} for token, value in log_probabilities.items()]
    choice = {"index": 0, "delta": {"content": word}, "finish_reason": None, "logprobs": {"content": [{"token": word}]}}
    choice["logprobs"]["content"][0]["top_logprobs"] = top  # type: ignore[index]
    return stream(chunk(choices=[choice]), chunk(finish="stop", usage=USAGE), DONE)


async def test_a_call_that_the_model_says_is_for_something_else_becomes_a_refusal_that_shows_the_question() -> None:
    with FakeServer(BOOKS, says("No")) as server:
        decision = await decide(server, offer(BOOK, NO_TOOL_FITS, SUBMIT_RESULT))
    (made,) = decision.calls
    assert (made.tool, "Book a table." in made.args["reason"]) == ("no_tool_fits", True)
    assert decision.fit["proposed"] == {"tool": "book_table", "args": {}}
    assert decision.fit["messages"] == server.asked[1].body["messages"]
    assert decision.fit["messages"][-1]["content"] == "User: Water the plants.\nFunction: book_table(): Book a table."
    assert (decision.fit["answer"], decision.fit["fits"], decision.fit["usage"]) == ("No", False, USAGE)


async def test_a_call_that_fits_is_made_and_the_question_is_recorded_too() -> None:
    with FakeServer(BOOKS, says("Yes")) as server:
        decision = await decide(server, offer(BOOK, NO_TOOL_FITS, goal="Table for two"), "llamacpp")
    assert [call.tool for call in decision.calls] == ["book_table"]
    assert decision.fit["fits"] is True
    assert "Table for two" in decision.fit["messages"][-1]["content"]
    assert server.asked[1].body["grammar"] == 'root ::= "Yes" | "No"'


async def test_the_odds_decide_rather_than_the_word() -> None:
    for no, fits in ((LEAST_YES + 2, False), (LEAST_YES - 2, True)):
        with FakeServer(BOOKS, thinks("Yes", Yes=-1.0, No=-1.0 + no - 2 * LEAST_YES)) as server:
            decision = await decide(server, offer(BOOK, NO_TOOL_FITS))
        assert (decision.fit["fits"], decision.fit["least"]) == (fits, LEAST_YES)


async def test_nothing_is_asked_where_the_model_cannot_decline_has_declined_or_is_past_its_first_turn() -> None:
    submits, declines = chooses("submit_result", summary="x"), chooses("no_tool_fits", reason="x")
    cases: list[tuple[Reply, Prompt, dict[str, Any]]] = [
        (BOOKS, offer(BOOK, SUBMIT_RESULT), {}),
        (BOOKS, offer(BOOK, NO_TOOL_FITS, turn=2), {}),
        (BOOKS, offer(BOOK, NO_TOOL_FITS), {"checks_fit": False}),
        (submits, offer(BOOK, NO_TOOL_FITS, SUBMIT_RESULT), {}),
        (declines, offer(BOOK, NO_TOOL_FITS, SUBMIT_RESULT), {}),
    ]
    for reply, prompt, settings in cases:
        with FakeServer(reply) as server:
            decision = await decide(server, prompt, **settings)
        assert (len(server.asked), decision.fit) == (1, {})


async def test_a_server_that_tells_no_probabilities_is_asked_for_the_word() -> None:
    refusal = answer({"error": {"message": "logprobs is not supported"}}, 400)
    with FakeServer(BOOKS, refusal, says("No")) as server:
        decision = await decide(server, offer(BOOK, NO_TOOL_FITS))
    assert ["logprobs" in each.body for each in server.asked] == [False, True, False]
    assert decision.calls[0].tool == "no_tool_fits"


async def test_a_question_without_an_answer_leaves_the_call_and_a_notice() -> None:
    with FakeServer(BOOKS, answer({"error": {"message": "gone"}}, 404)) as server:
        decision = await decide(server, offer(BOOK, NO_TOOL_FITS))
    assert [call.tool for call in decision.calls] == ["book_table"]
    assert [notice.code for notice in decision.notices] == ["fit_unknown"]


async def test_a_call_that_runs_on_until_it_is_cut_is_declined_if_its_tool_does_something_else() -> None:
    cut = says('{"tool": "book_table", "args": {"at": "Oslo, Oslo, Oslo, Oslo, Oslo', finish="length")
    with FakeServer(cut, says("No")) as server:
        decision = await decide(server, offer(BOOK, NO_TOOL_FITS))
    assert (decision.calls[0].tool, decision.fit["proposed"]["tool"]) == ("no_tool_fits", "book_table")
    with FakeServer(cut, says("Yes")) as server, pytest.raises(ReplyInvalid):
        await decide(server, offer(BOOK, NO_TOOL_FITS))


def test_the_beginning_of_the_question_is_the_same_for_every_call() -> None:
    first, second = (
        fit_messages(offer(BOOK, NO_TOOL_FITS, goal=goal), Call(call_id="c", tool="book_table")) for goal in "ab"
    )
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]


def test_an_embedded_model_is_asked_unless_an_adapter_was_trained_for_it() -> None:
    server = EmbeddedServer(Path("tiny.gguf"), context=512, adapters=[Path("a.gguf")])
    child = Child(process=None, url="http://127.0.0.1:1", key="k")  # type: ignore[arg-type]
    trained = EmbeddedPolicy(server, adapter=Adapter(0))
    assert [policy._endpoint(child).checks_fit for policy in (trained, trained.using(None))] == [False, True]
