from __future__ import annotations

from pathlib import Path

import pytest

from remora.context.budget import check_limit, reserved
from remora.context.render import fixed_tokens, system_text
from remora.inference import EstimatedCounter
from remora.runner import CheckResult, judge
from remora.scripts import load_agent, tool_specs
from remora.subagent import SUBMIT_RESULT

AGENTS = Path(__file__).parents[2] / "agents"


@pytest.mark.parametrize(
    ("agent", "before", "after", "word"),
    [
        ("lint", 2, 0, "clean"),
        ("lint", 0, 0, "clean"),
        ("lint", 2, 1, "partial"),
        ("lint", None, 0, "failed"),
        ("test", 1, 0, "kept"),
        ("test", 0, 0, "unchanged"),
        ("test", 1, 1, "discarded"),
        ("test", None, None, "discarded"),
        ("sample_data", 1, 0, "written"),
        ("sample_data", 0, 0, "unchanged"),
        ("sample_data", 1, 1, "unchanged"),
        ("sample_data", 0, 1, "failed"),
        ("dead_code", 2, 0, "removed"),
        ("dead_code", 2, 2, "unchanged"),
        ("dead_code", 2, 1, "partial"),
        ("annotations", 1, 0, "typed"),
        ("annotations", 0, 0, "unchanged"),
        ("documents", 2, 0, "corrected"),
        ("documents", 2, 2, "reported"),
    ],
)
def test_each_agent_has_its_own_words(agent: str, before: int | None, after: int | None, word: str) -> None:
    rule = load_agent(AGENTS, agent).definition.check
    assert judge(rule, CheckResult(before), CheckResult(after))["verdict"] == word


@pytest.mark.parametrize(
    ("agent", "word"), [("docstring", "rewritten"), ("lint", "clean"), ("sample_data", "unchanged")]
)
def test_a_change_of_code_without_a_problem_is_not_called_unchanged_where_the_agent_has_a_word(
    agent: str, word: str
) -> None:
    rule = load_agent(AGENTS, agent).definition.check
    assert judge(rule, CheckResult(0), CheckResult(0), changed=True)["verdict"] == word
    assert judge(rule, CheckResult(1), CheckResult(0), changed=True)["verdict"] in ("written", "clean")


@pytest.mark.parametrize("agent", ["lint", "test", "sample_data", "dead_code", "annotations", "documents"])
def test_the_fixed_part_leaves_room_within_the_default_limit(agent: str) -> None:
    loaded, counter = load_agent(AGENTS, agent), EstimatedCounter()
    tools = (*tool_specs(loaded.definition, loaded.scripts), SUBMIT_RESULT)
    fixed = fixed_tokens(system_text(loaded.definition.system_prompt, tools), counter)
    check_limit(fixed, 1000, reserved(counter.count))
    assert fixed <= 460
