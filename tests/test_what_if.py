"""What-if: recorded runs by other rules. The same rules change nothing; others change what they should."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remora.analysis import Comparison, PromptFigures, Tolerance, WhatIf
from remora.context.render import Style
from remora.context.summarizers import Summarizer, get_default_summarizers
from remora.errors import BudgetError, DecisionError
from remora.events import Call, ModelRequestEvent
from remora.inference import EstimatedCounter
from remora.ports import BlobStore, Decision
from remora.testing import MemoryTwoTrack, TickingClock
from remora.trace import MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, PromptSettings, Rederived, Rules, Wiring, rederive

STYLES = get_args(Style)
LOOKUP = {"name": "lookup", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
values = st.recursive(
    st.text(max_size=60) | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


async def record(results: list[Any], style: Style = "account", **options: Any) -> MemoryTwoTrack:
    """A run with a person's words, the agent's own, a call for each result, and replies that are no calls."""
    tt = MemoryTwoTrack("Find city 77301", tools=[LOOKUP], style=style, budget=1500, **options)
    async with tt:
        await tt.user("Prefer cities with a port, such as 88412")
        for number, result in enumerate(results):
            await tt.request()
            call = Call(call_id=f"c{number}", tool="lookup", args={"city": f"city-{number}"})
            await tt.response(Decision(calls=(call,), text=f"I look at number {number}"))
            await tt.call(call, lambda result=result, **_: result)
        await tt.request()
        await tt.undecided(DecisionError("The reply has no call", text="Which one?"))
        await tt.request()
        await tt.response({"role": "assistant", "tool_calls": [{"function": {"name": "no_such", "arguments": "{}"}}]})
        await tt.request()
    return tt


async def again(tt: MemoryTwoTrack, rules: Rules = Rules(), **wiring: Any) -> tuple[WhatIf, list[Rederived]]:  # noqa: B008
    clock = TickingClock()
    parts = {"blobs": tt.blobs, "summarizers": get_default_summarizers()} | wiring
    made = Wiring(
        identity=Identity("01TESTAGENT"),
        goal="",
        prompts=PromptSettings(0),
        writer=MemoryTrace(clock),
        counter=EstimatedCounter(),
        clock=clock,
        **parts,
    )
    comparison, steps = Comparison(EstimatedCounter(), diffs=True), []
    async for step in rederive(tt.events, made, rules):
        comparison.take(step.recorded, step.event, step.text, step.problem)
        steps.append(step)
    return comparison.result(), steps


RESULTS: list[Any] = [
    {"city": "a", "population": 12345},
    "Traceback (most recent call last)\nKeyError: 77301",
    {"summary": "2 cities", "knowledge_delta": {"left": 3}, "outcome": "success"},
    {"summary": "2 cities", "knowledge_delta": {"left": 3}, "outcome": "success"},
    [{"id": number, "name": f"city {number}", "port": number % 2 == 0} for number in range(800)],
    float("nan"),
]


@pytest.mark.parametrize("style", STYLES)
async def test_the_same_rules_change_no_prompt(style: Style) -> None:
    tt = await record(RESULTS, style)
    found, steps = await again(tt)
    assert found.changes == ()
    assert found.prompts == len(RESULTS) + 3
    assert found.before == found.after
    assert all(step.event.delta == step.recorded.delta for step in steps)


@pytest.mark.parametrize("described", ["Look up a city. " * 20, "Look up a city. " * 3000], ids=["inline", "blob"])
async def test_tools_that_came_with_a_request_change_no_prompt(described: str) -> None:
    tt = MemoryTwoTrack("Find city 77301", style="chat", budget=20_000)
    rows = [{"id": number, "name": f"city {number}", "port": number % 2 == 0} for number in range(2_000)]
    async with tt:
        for number in range(3):
            await tt.request(tools=[{**LOOKUP, "description": described + "!" * number}])
            for call in await tt.response("", calls=[{"tool": "lookup", "args": {"city": f"city-{number}"}}]):
                await tt.call(call, lambda city: rows)
    found, _ = await again(tt)
    assert (found.changes, found.prompts) == ((), 3)


@given(results=st.lists(values, max_size=6), style=st.sampled_from(STYLES))
@settings(max_examples=30, deadline=None)
def test_whatever_tools_return_the_same_rules_change_no_prompt(results: list[Any], style: Style) -> None:
    async def check() -> None:
        found, _ = await again(await record(results, style))
        assert found.changes == ()

    asyncio.run(check())


@pytest.mark.parametrize("value", ["No such city", "error: none", {"rows": []}], ids=str)
@pytest.mark.parametrize("outcome", ["error", "success", "partial"])
async def test_an_outcome_that_the_caller_knew_changes_no_prompt(value: Any, outcome: Any) -> None:
    tt = MemoryTwoTrack("Find city 77301", tools=[LOOKUP], budget=1500)
    async with tt:
        await tt.request()
        (call,) = await tt.response(Decision(calls=(Call(call_id="c", tool="lookup", args={"city": "x"}),)))
        await tt.called(call)
        result = await tt.returned(call.call_id, value, outcome=outcome)
        await tt.request()
    assert (result.outcome, result.outcome_given, result.raw) == (outcome, True, value)
    found, _ = await again(tt)
    assert found.changed == 0


@pytest.mark.parametrize("style", STYLES)
async def test_another_style_gives_the_prompts_that_a_run_in_it_would_have_had(style: Style) -> None:
    short = RESULTS[:4]  # what does not fit depends on the tools, and `recall` is one only in style `account`
    _, steps = await again(await record(short), Rules(style=style))
    wanted = (await record(short, style)).events
    prompts = [step.event.messages[-1] for step in steps if isinstance(step.event, ModelRequestEvent)]
    expected = [event.messages[-1] for event in wanted if isinstance(event, ModelRequestEvent)]
    assert prompts[:-1] == expected[:-1]  # the last one names the tools


async def test_a_smaller_budget_holds_and_tells_what_was_lost() -> None:
    tt = await record(
        [{"id": 77301}, [{"id": 90000 + number, "name": f"town {number} by the sea"} for number in range(90)]]
    )
    found, steps = await again(tt, Rules(budget=450))
    assert found.changed
    assert found.after.tokens < found.before.tokens
    asked = [step.event for step in steps if isinstance(step.event, ModelRequestEvent)]
    assert all(event.tokens["total"] <= event.limit for event in asked)


async def test_a_budget_in_which_nothing_fits_is_refused() -> None:
    with pytest.raises(BudgetError):
        await again(await record([]), Rules(budget=10))


class Vague(Summarizer):
    """Says nothing about the result."""

    def summarize(self, raw_result: Any) -> str:
        return "Looked something up"

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        return {}


class Telling(Vague):
    """Names the port."""

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        return {"port": raw_result["port"]} if isinstance(raw_result, Mapping) else {}


async def ports(summarizer: Summarizer) -> MemoryTwoTrack:
    """A run whose second call uses what the first one returned."""
    tt = MemoryTwoTrack(tools=[LOOKUP], style="json", summarizers={"lookup": summarizer})
    async with tt:
        for city, result in (("a", {"port": "P-90417"}), ("P-90417", {"port": "none"})):
            await tt.request()
            call = Call(call_id=city, tool="lookup", args={"city": city})
            await tt.response(Decision(calls=(call,)))
            await tt.call(call, lambda result=result, **_: result)
    return tt


async def test_a_worse_summarizer_is_seen_in_the_turn_that_needed_its_words() -> None:
    found, _ = await again(await ports(Telling()), summarizers={"lookup": Vague()})
    assert (found.before.recall, found.after.recall) == (1.0, 0.0)
    assert [(change.turn, change.lost) for change in found.changes] == [(2, ("90417",))]
    assert any(line.startswith("-") and "90417" in line for line in found.changes[0].diff)


async def test_rendering_alone_keeps_what_was_distilled() -> None:
    found, _ = await again(await ports(Telling()), Rules(only_render=True), summarizers={"lookup": Vague()})
    assert found.changed == 0


class Gone(MemoryBlobs):
    """A store whose large results were pruned."""

    def __init__(self, kept: BlobStore, system: str) -> None:
        super().__init__()
        self._kept, self._system = kept, system

    async def get(self, digest: str, *, limit: int = 10**9) -> bytes:
        return await (self._kept if digest == self._system else super()).get(digest, limit=limit)


async def test_a_result_that_is_gone_keeps_its_recorded_delta_and_is_counted() -> None:
    tt = await record([[{"id": number} for number in range(4000)]])
    asked = next(event for event in tt.events if isinstance(event, ModelRequestEvent))
    found, _ = await again(tt, blobs=Gone(tt.blobs, asked.messages[0]["content_ref"]["blob"]))
    assert (found.kept_results, found.changed) == (1, 0)


def figures(tokens: int, recalled: float, grounded: int) -> PromptFigures:
    return PromptFigures(tokens, recalled, grounded, 10)


@pytest.mark.parametrize(
    ("tolerance", "breaches"),
    [
        (Tolerance(), 0),
        (Tolerance(changed=0.5, evidence_loss=0.2, token_growth=0.5), 0),
        (Tolerance(changed=0.1), 1),
        (Tolerance(evidence_loss=0.01), 2),
        (Tolerance(token_growth=0.1), 1),
    ],
)
def test_only_a_limit_that_was_set_can_be_exceeded(tolerance: Tolerance, breaches: int) -> None:
    total = WhatIf(prompts=10, changed=4, before=figures(100, 10, 10), after=figures(120, 9, 8))
    assert len(tolerance.breaches(total)) == breaches


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), max_size=8))
def test_totals_are_the_sums_of_the_runs(rows: list[tuple[int, int]]) -> None:
    total = WhatIf()
    for tokens, changed in rows:
        total = total.plus(WhatIf(prompts=9, changed=changed, before=figures(tokens, 1, 1)))
    assert total.before.tokens == sum(tokens for tokens, _ in rows)
    assert total.changed == sum(changed for _, changed in rows)
    assert total.before.scored == 10 * len(rows)
