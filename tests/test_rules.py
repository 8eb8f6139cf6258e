from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remora.analysis import summarize
from remora.app import SystemClock
from remora.context.models import DecisionPacket, KnowledgeEntry, RecentAction
from remora.context.projection import EMPTY, project
from remora.events import (
    CandidateAction,
    ModelResponseEvent,
    UserInputEvent,
    decode,
    encode,
)
from remora.inference import ScriptedPolicy
from remora.ports import Decision, Prompt
from remora.rules import Ruling
from remora.subagent import DecisionRule
from remora.trace import MemoryTrace
from test_runner import CHECK, DEFINITION, CountingTools, Stage

WITH_RULE = DEFINITION.model_copy(
    update={
        "decision_rules": (
            DecisionRule.model_validate({"when": "left", "is": "above", "tool": "candidates", "reason": "safe"}),
        )
    }
)


class NeverAsked:
    """A policy that must not be asked."""

    name = "never"

    async def decide(self, prompt: Prompt) -> Decision:
        raise AssertionError("the policy was asked")


class CleanTools(CountingTools):
    def __init__(self) -> None:
        super().__init__()
        self.left = 0


async def test_an_agent_whose_check_finds_nothing_ends_without_asking() -> None:
    stage = Stage(NeverAsked(), tools=CleanTools())
    result = await stage.run()
    assert (result.outcome, result.verdict, result.turns, result.largest_prompt) == ("success", "clean", 1, 0)
    assert await stage.types() == ["agent_start", *CHECK, "turn_start", "model_response", "submit_result", "agent_end"]


async def test_a_turn_by_rule_is_recorded_with_its_rule_and_counted_apart() -> None:
    stage = Stage(NeverAsked(), tools=CleanTools())
    result = await stage.run()
    events = await stage.events()
    (reply,) = [event for event in events if isinstance(event, ModelResponseEvent)]
    assert (reply.rule, reply.calls[0].tool) == ("no problem is left", "submit_result")
    assert [(row.rung, row.decisions) for row in result.decisions] == [("by rule", 1)]
    assert summarize(events).turns[0].rule == "no problem is left"


async def test_a_definition_can_ask_the_model_about_clean_code() -> None:
    asks = DEFINITION.model_copy(update={"check": DEFINITION.check.model_copy(update={"ask_when_clean": True})})  # type: ignore[union-attr]
    stage = Stage(ScriptedPolicy(["submit_result"]), tools=CleanTools(), definition=asks)
    await stage.run()
    assert "model_request" in await stage.types()


async def test_a_decision_rule_makes_the_first_candidates_call_without_the_policy() -> None:
    tools = CountingTools()
    tools.left = 1
    stage = Stage(ScriptedPolicy(["run_linter"]), tools=tools, definition=WITH_RULE)
    result = await stage.run()
    assert (result.verdict, [(row.rung, row.decisions) for row in result.decisions]) == (
        "clean",
        [("scripted", 1), ("by rule", 2)],
    )


async def test_a_rule_makes_the_same_call_only_once() -> None:
    stage = Stage(ScriptedPolicy(["run_linter", "submit_result"]), definition=WITH_RULE)
    result = await stage.run()
    assert (result.check["before"], result.check["after"], result.verdict) == (2, 1, "partial")


async def test_a_run_by_rule_that_was_cut_after_any_event_ends_in_the_same_way() -> None:
    whole = Stage(NeverAsked(), tools=CleanTools())
    await whole.run()
    for cut in range(1, len(await whole.events())):
        past = (await whole.events())[:cut]
        writer = MemoryTrace(clock=SystemClock())
        await writer.append("traces/01M7AGENT", past)
        assert (await Stage(NeverAsked(), writer, tools=CleanTools(), past=past).run()).verdict == "clean"


def test_a_person_who_speaks_to_an_agent_gets_a_models_answer() -> None:
    said = Ruling.after(DEFINITION, [UserInputEvent(text="look again")])
    assert said.decide(EMPTY, 0) is None
    assert Ruling.after(DEFINITION, []).decide(EMPTY, 0) is not None


def _packet(left: int, turn: int) -> DecisionPacket:
    return EMPTY.model_copy(
        update={
            "turn": turn,
            "knowledge": {"left": KnowledgeEntry(key="left", value=left, source_turn=turn)},
            "recent_actions": [RecentAction(turn=turn, tool="run_linter", summary="seen", outcome="success")],
            "candidate_actions": [CandidateAction(tool="apply_fix", args={"code": "F401"}, reason="1 safe fix")],
        }
    )


@given(st.integers(0, 3), st.integers(1, 9), st.integers(0, 5) | st.none())
def test_a_rule_decides_the_same_from_the_same_packet(left: int, turn: int, found: int | None) -> None:
    packet = _packet(left, turn)
    first, second = (Ruling.after(WITH_RULE, ()).decide(packet, found) for _ in range(2))
    assert first == second
    assert first is not None
    assert first.call.tool == ("apply_fix" if left else "submit_result")


def test_a_reply_by_rule_survives_the_codec_and_changes_no_packet() -> None:
    reply = ModelResponseEvent(seq=3, turn=1, finish="rule", rule="no problem is left")
    assert decode(encode(reply)) == reply
    assert project([reply], start=_packet(1, 1)) == _packet(1, 1)


def test_a_reply_of_a_model_is_encoded_as_before() -> None:
    assert b'"rule"' not in encode(ModelResponseEvent(seq=3, turn=1, text="done"))


def test_the_end_of_a_run_takes_the_words_that_a_tool_offers() -> None:
    offered = CandidateAction(tool="submit_result", args={"summary": "No lint errors left"})
    packet = _packet(0, 2).model_copy(update={"candidate_actions": [offered]})
    decision = Ruling.after(DEFINITION, ()).decide(packet, 3)
    assert decision is not None
    assert decision.call.args == {"summary": "No lint errors left"}
