"""The agents dead_code, annotations and documents: what is proven is made, unless tests, linter or mypy refuse it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import remora
from remora.sandbox import probe
from remora.scripts import ScriptTools
from remora.scripts._host_code import MAX_TOKENS
from sandbox.boxes import no_plugins

Make = Callable[..., ScriptTools]
OLD = "def _old():\n    return 1\n\n\ndef load():\n    return 2\n"
TYPED = "".join(f"def f{n}(x: int) -> int:\n    return x\n\n\n" for n in range(6))
needs_sandbox = pytest.mark.skipif(probe().applies == "none", reason="no OS sandbox works here")


async def value_of(tools: ScriptTools, name: str) -> dict[str, Any]:
    value: dict[str, Any] = (await tools.call(name, {})).value
    return value


@needs_sandbox
async def test_dead_code_is_removed_if_the_tests_pass(agent_tools: Make, tmp_path: Path) -> None:
    test = "from pkg.a import load\n\n\ndef test_load():\n    assert load() == 2\n"
    tools = agent_tools("dead_code", {"pkg/__init__.py": "", "pkg/a.py": OLD, "test_a.py": test}, "pkg/a.py")
    made = await value_of(tools, "remove_dead_code")
    assert made["summary"] == "Removed 1: function `_old` is never used"
    assert (await value_of(tools, "find_dead_code"))["knowledge_delta"]["dead_code"] == 0
    assert (tmp_path / "pkg/a.py").read_text() == OLD


@needs_sandbox
async def test_a_suite_of_which_nothing_passes_proves_nothing(agent_tools: Make) -> None:
    files = {"pkg/__init__.py": "", "pkg/a.py": OLD, "test_a.py": "import not_installed_here\n"}
    made = await value_of(agent_tools("dead_code", files, "pkg/a.py"), "remove_dead_code")
    assert made["result"]["removed"] == []
    assert "none of them passes here" in made["error"]


@needs_sandbox
async def test_what_a_test_needs_stays_and_the_rest_goes(agent_tools: Make) -> None:
    code = f"def _older():\n    return 1\n\n\n{OLD}"
    test = "import pkg.a\n\n\ndef test_it():\n    assert any(name.endswith('der') for name in vars(pkg.a))\n"
    tools = agent_tools("dead_code", {"pkg/__init__.py": "", "pkg/a.py": code, "test_a.py": test}, "pkg/a.py")
    made = await value_of(tools, "remove_dead_code")
    assert made["outcome"] == "partial"
    assert [one["what"] for one in made["result"]["removed"]] == ["function `_old` is never used"]
    (refused,) = made["result"]["refused"].items()
    assert refused[0] == "function `_older` is never used"
    assert refused[1] == "It fails with the project's suite: test_a.py::test_it"


async def test_without_a_sandbox_nothing_is_removed(agent_tools: Make) -> None:
    tools = agent_tools("dead_code", {"a.py": OLD}, "a.py", sandbox=False)
    made = await value_of(tools, "remove_dead_code")
    assert made["outcome"] == "error"
    assert "The project's tests cannot judge it" in made["error"]


@needs_sandbox
async def test_types_are_added_if_mypy_accepts_them(agent_tools: Make) -> None:
    code = f"{TYPED}def name(x: int):\n    return str(x)\n\n\ndef twice():\n    return len('a'.nothing) * 2\n"
    tools = agent_tools("annotations", {"a.py": code}, "a.py")
    made = await value_of(tools, "add_types")
    assert made["summary"] == "Completed 1: `name` `-> str`"
    assert list(made["result"]["refused"]) == ["twice"]
    assert "has no attribute" in made["result"]["refused"]["twice"]
    assert made["knowledge_delta"]["missing_types"] == 1


@needs_sandbox
async def test_a_mypy_plugin_of_the_project_reaches_nothing_outside(agent_tools: Make, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    plugin = f"try:\n    open({str(outside)!r}, 'w')\nexcept OSError:\n    pass\nraise RuntimeError('the plugin ran')\n"
    files = {"a.py": f"{TYPED}def name(x: int):\n    return str(x)\n", "evil.py": plugin}
    tools = agent_tools("annotations", files | {"mypy.ini": "[mypy]\nplugins = ./evil.py\n"}, "a.py")
    value = await value_of(tools, "add_types")
    assert "the plugin ran" in str(value)
    assert not outside.exists()


async def test_without_mypy_no_type_is_added(agent_tools: Make) -> None:
    tools = agent_tools(
        "annotations", {"a.py": f"{TYPED}def name(x: int):\n    return str(x)\n"}, "a.py", sandbox=False
    )
    made = await value_of(tools, "add_types")
    assert made["outcome"] == "error"
    assert made["result"]["completed"] == []


async def test_a_false_statement_is_corrected_and_one_for_people_reported(agent_tools: Make) -> None:
    document = "```python\nfrom pkg.a import Load, checkout\n```\n"
    tools = agent_tools("documents", {"pkg/__init__.py": "", "pkg/a.py": OLD, "README.md": document}, "pkg/a.py")
    found = await value_of(tools, "check_statements")
    assert found["knowledge_delta"]["false_statements"] == 2
    assert len(found["diagnostics"]) == 2
    made = await value_of(tools, "correct_statements")
    assert [one["key"] for one in made["result"]["corrected"]] == ["README.md import Load"]
    assert [one["key"] for one in made["result"]["left"]] == ["README.md import checkout"]


@pytest.mark.usefixtures("by_rule")
def test_a_file_that_is_too_large_to_parse_fails_no_agent_and_the_verdict_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "remora.yaml").touch()
    (root / "table.py").write_text("x = 1\n" * (MAX_TOKENS // 3 + 1))
    project = remora.open_project(root, {"server.server": "first-candidate", "event_stream.sync": "off"})
    results = asyncio.run(project.runs.analyze([root / "table.py"], ["dead_code", "annotations", "documents"]))
    said = "Nothing can be proven here: `table.py` is too large to parse: the limit is 80,000 tokens"
    assert {result.operation: (result.verdict, result.check["notes"]) for result in results} == {
        "dead_code": ("unchanged", [said]),
        "annotations": ("unchanged", [said]),
        "documents": ("unchanged", [said]),
    }
    assert all(result.why == f"{said}, decided by rule" for result in results)


@needs_sandbox
@pytest.mark.usefixtures("by_rule")
def test_all_three_run_by_rule_and_their_changes_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "remora.yaml").touch()
    (root / "pytest.ini").write_text(no_plugins("xdist"))
    (root / "pkg/__init__.py").write_text("")
    (root / "pkg/a.py").write_text(f"{OLD}\n\n{TYPED}def name(x: int):\n    return str(x)\n")
    (root / "README.md").write_text("```python\nfrom pkg.a import Load\n```\n")
    project = remora.open_project(root, {"server.server": "first-candidate", "event_stream.sync": "off"})
    results = asyncio.run(project.runs.analyze([root / "pkg/a.py"], ["dead_code", "annotations", "documents"]))
    assert {result.operation: result.verdict for result in results} == {
        "dead_code": "removed",
        "annotations": "typed",
        "documents": "corrected",
    }
    events = [event for result in results for event in project.library.events(result.agent_id)]
    assert not [event for event in events if event.type == "model_request"]
    accepted = asyncio.run(project.review.accept())
    assert not [item.conflict for item in accepted if item.conflict]
    text = (root / "pkg/a.py").read_text()
    assert "_old" not in text
    assert "def name(x: int) -> str:" in text
    assert (root / "README.md").read_text() == "```python\nfrom pkg.a import load\n```\n"
