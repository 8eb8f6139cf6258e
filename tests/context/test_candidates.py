"""What an agent's own rules offer after a tool that offers nothing itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from remora.context.candidates import by_rules
from remora.errors import DefinitionError
from remora.subagent import CandidateRule, parse_definition
from remora.testing import MemoryTwoTrack
from remora.twotrack import TwoTrack

RULES = (
    CandidateRule.model_validate(
        {"when": "left", "is": "above", "value": 0, "tool": "fix", "args": {"code": "{first}", "why": "{left} left"}}
    ),
    CandidateRule.model_validate({"when": "left", "is": "equal", "value": 0, "tool": "submit_result"}),
)


@pytest.mark.parametrize(
    ("known", "tools"),
    [
        ({"left": 2, "first": "F401"}, ["fix"]),
        ({"left": 0}, ["submit_result"]),
        ({}, []),
        ({"left": "many"}, []),
        ({"left": None}, []),
    ],
)
def test_a_rule_offers_its_call_when_it_holds(known: dict[str, Any], tools: list[str]) -> None:
    assert [action.tool for action in by_rules(RULES, known)] == tools


def test_a_key_in_the_arguments_stands_for_what_is_known() -> None:
    (action,) = by_rules(RULES, {"left": 2, "first": ["F401"]})
    assert action.args == {"code": ["F401"], "why": "2 left"}


async def test_rules_offer_only_where_the_tool_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = {"type": "object", "properties": {}}
    tools = [{"name": name, "parameters": shape} for name in ("look", "fix", "other")]
    rules = (CandidateRule.model_validate({"when": "left", "is": "known", "tool": "fix"}),)
    wire = TwoTrack._wire
    monkeypatch.setattr(TwoTrack, "_wire", lambda self, wiring: wire(self, replace(wiring, rules=rules)))
    async with MemoryTwoTrack(tools=tools) as track:
        await track.call({"tool": "look"}, lambda: {"summary": "1 left", "knowledge_delta": {"left": 1}})
        assert [action.tool for action in track.packet.candidate_actions] == ["fix"]
        offers = {"summary": "1 left", "candidate_actions": [{"tool": "other"}]}
        await track.call({"tool": "look"}, lambda: offers)
        assert [action.tool for action in track.packet.candidate_actions] == ["other"]


def test_a_rule_for_a_tool_that_is_not_there_is_refused() -> None:
    text = "name: a\ngoal: g\nsystem_prompt: s\ntools: [{name: look}]\ncandidate_rules: [{when: x, tool: nobody}]\n"
    with pytest.raises(DefinitionError, match="tool `nobody` is used but not listed"):
        parse_definition(text, "subagent.yaml")
