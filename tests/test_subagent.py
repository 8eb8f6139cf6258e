from __future__ import annotations

import pytest

from remora.errors import DefinitionError
from remora.subagent import parse_definition

GOOD = """
name: lint
goal: Fix {node}
system_prompt: Fix it.
tools:
  - name: run_linter
    effects: none
"""


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(DefinitionError) as caught:
        parse_definition(text, "agents/lint/subagent.yaml")
    assert caught.value.message.startswith("agents/lint/subagent.yaml: ")
    return caught.value.problems


def test_a_definition_has_sensible_defaults() -> None:
    definition = parse_definition(GOOD, "x")
    assert definition.max_turns == 12
    assert definition.tools[0].effects == "none"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD + "colour: red\n", "$.colour: unknown key; expected one of `name`"),
        (GOOD + "max_turn: 3\n", "$.max_turn: unknown key; did you mean `max_turns`?"),
        (GOOD.replace("effects: none", "effects: magic"), "$.tools[0].effects: Input should be 'none'"),
        (GOOD.replace("name: run_linter", "name: Run Linter"), "$.tools[0].name: String should match"),
        (GOOD + "script: [no_such]\n", "tool `no_such` is used but not listed"),
        (GOOD + "check: {tool: other, count: x}\n", "tool `other` is used but not listed"),
        (GOOD.replace("run_linter", "submit_result"), "`submit_result` is reserved"),
        (GOOD.replace("run_linter", "escalate"), "`escalate` is reserved"),
        (GOOD + "escalation: {models: [x]}\n", "$.escalation.models: unknown key"),
        (GOOD + "  - name: run_linter\n", "tool `run_linter` is listed twice"),
        ("[]", "$: expected an object: keys with values"),
        (GOOD + "escalation: 3\n", "$.escalation: expected an object: keys with values"),
        (GOOD + "goal: another\n", "`goal` is already set in line 3: expected each key once"),
        ("a: [", "not YAML"),
        ("", "$: expected an object: keys with values"),
    ],
)
def test_a_wrong_definition_is_told_by_its_path(text: str, problem: str) -> None:
    assert any(problem in found for found in problems(text))


def test_every_problem_is_told_at_once() -> None:
    assert len(problems("name: 1\nmax_turns: 0\n")) >= 4
