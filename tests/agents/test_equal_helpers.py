"""Scripts cannot import each other, so they repeat what they share. What is repeated must stay the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

AGENTS = Path(__file__).parents[2] / "agents"
DIFFERENT = {"why_not", "own_file", "is_ours"}
"""Of the same name in two agents, and not the same: what is ours shows by other signs in a test than in a fixture."""


def _functions(script: Path) -> dict[str, str]:
    tree = ast.parse(script.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in tree.body if isinstance(node, kinds)]
    found = [node for node in found if not any(getattr(mark, "id", "") == "external" for mark in node.decorator_list)]
    return {node.name: ast.unparse(node) for node in found}


@pytest.mark.parametrize("agents", [("lint",), ("test", "sample_data")], ids=["lint", "test and sample_data"])
def test_functions_of_the_same_name_are_the_same(agents: tuple[str, ...]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    scripts = [script for agent in agents for script in sorted((AGENTS / agent / "tools").glob("*.pym"))]
    repeated = 0
    for script in scripts:
        for name, text in _functions(script).items():
            where, first = seen.setdefault(name, (script.parent.parent.name, text))
            if name in DIFFERENT and where != script.parent.parent.name:
                continue
            assert text == first, f"`{name}` of {script.name} is not the one of {where}"
            repeated += first is not text
    assert repeated
