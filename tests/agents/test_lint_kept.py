"""Rules that the project selected and that its code breaks widely: real ruff over whole projects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
SETTINGS = {"ruff.toml": 'target-version = "py312"\nlint.select = ["F", "UP", "C4", "SIM", "RUF"]\n'}
OLD = "x = '%s' % 1\ny = list([1])\n"
"""Two errors: UP031 and C410."""


async def _call(tools: ScriptTools, name: str, **args: Any) -> dict[str, Any]:
    value: dict[str, Any] = (await tools.call(name, args)).value
    return value


def _codes(found: dict[str, Any]) -> list[str]:
    return [error["code"] for error in found["result"]["errors"]]


@pytest.mark.parametrize(("number", "left"), [(12, 1), (13, 0)])
async def test_a_rule_that_many_small_files_break_asks_for_nothing(agent_tools: Make, number: int, left: int) -> None:
    files = {f"pkg/m{each}.py": "x = '%s' % 1\n" for each in range(number)}
    files |= {f"pkg/clean{each}.py": "x = 1\n" for each in range(60)}
    found = await _call(agent_tools("lint", files | SETTINGS, "pkg/m1.py"), "run_linter")
    assert _codes(found) == ["UP031"] * left


async def test_what_is_left_alone_is_said_with_a_way_out(agent_tools: Make) -> None:
    files = {f"pkg/m{each}.py": "x = '%s' % 1\n" for each in range(13)}
    files |= {f"pkg/clean{each}.py": "x = 1\n" for each in range(60)}
    words = "13 errors of UP031 in 13 files left alone: the project does not run this rule. "
    words += "`operations.lint.strict` asks for all"
    found = await _call(agent_tools("lint", files | SETTINGS, "pkg/m1.py"), "run_linter")
    assert (found["summary"], found["diagnostics"]) == (words, [words])
    clean = await _call(agent_tools("lint", files | SETTINGS, "pkg/clean1.py"), "run_linter")
    assert (clean["summary"], clean["diagnostics"]) == ("No lint errors", [])


async def test_of_a_project_that_runs_no_linter_only_mistakes_count(agent_tools: Make) -> None:
    # 22 errors of two rules, none of them more than 12 times, in a third of the files.
    files = {f"pkg/m{each}.py": OLD for each in range(11)} | {f"pkg/n{each}.py": "x = 1\n" for each in range(22)}
    files["pkg/m1.py"] = f"import os\n\nprint(unknown)\n{OLD}"
    found = await _call(agent_tools("lint", files | SETTINGS, "pkg/m1.py"), "run_linter")
    assert sorted(_codes(found)) == ["F401", "F821"]
    assert found["diagnostics"][0].startswith("22 errors of UP031, C410 in 11 files left alone: the project does not")
    large = files | {f"pkg/o{each}.py": "x = 1\n" for each in range(22)}
    found = await _call(agent_tools("lint", large | SETTINGS, "pkg/m1.py"), "run_linter")
    assert len(_codes(found)) == 4


async def test_strict_asks_for_all_rules(agent_tools: Make) -> None:
    files = {f"pkg/m{each}.py": OLD for each in range(20)}
    found = await _call(agent_tools("lint", files | SETTINGS, "pkg/m1.py", strict=True), "run_linter")
    assert _codes(found) == ["UP031", "C410"]


async def test_tests_that_nobody_lints_say_nothing_about_the_code(agent_tools: Make) -> None:
    files = {f"tests/test_m{each}.py": OLD for each in range(20)} | {"pkg/a.py": OLD, "pkg/b.py": "x = 1\n"}
    tools = agent_tools("lint", files | SETTINGS, "pkg/a.py")
    assert _codes(await _call(tools, "run_linter")) == ["UP031", "C410"]
    assert _codes(await _call(agent_tools("lint", files | SETTINGS, "tests/test_m1.py"), "run_linter")) == []


async def test_code_that_nobody_lints_has_tests_that_nobody_lints(agent_tools: Make) -> None:
    files = {f"pkg/m{each}.py": OLD for each in range(20)} | {"tests/test_a.py": OLD}
    assert _codes(await _call(agent_tools("lint", files | SETTINGS, "tests/test_a.py"), "run_linter")) == []


async def test_what_the_settings_turn_off_does_not_come_back(agent_tools: Make) -> None:
    files = {f"pkg/m{each}.py": "import os\n" + OLD for each in range(20)}
    files["ruff.toml"] = SETTINGS["ruff.toml"] + 'lint.ignore = ["F401"]\n'
    assert _codes(await _call(agent_tools("lint", files, "pkg/m1.py"), "run_linter")) == []


async def test_files_that_the_linter_excludes_are_no_evidence(agent_tools: Make) -> None:
    files = {f"pkg/old/m{each}.py": OLD for each in range(20)} | {"pkg/a.py": OLD}
    files["ruff.toml"] = 'exclude = ["pkg/old"]\n' + SETTINGS["ruff.toml"]
    assert len(_codes(await _call(agent_tools("lint", files, "pkg/a.py"), "run_linter"))) == 2


async def test_files_that_flake8_allows_are_no_evidence(agent_tools: Make) -> None:
    long = f"x = '{'a' * 99}'\n"
    files = {f"pkg/old/m{each}.py": long for each in range(20)} | {"pkg/a.py": long}
    for more, left in (("", []), ("per-file-ignores = pkg/old/*: E501\n", ["E501"])):
        files["setup.cfg"] = f"[flake8]\nmax-line-length = 99\n{more}"
        assert _codes(await _call(agent_tools("lint", files, "pkg/a.py"), "run_linter")) == left


CUT = 'x = "ab"\nif x.startswith("a"):\n    x = x[1:]\n'
"""FURB188, which is stable since ruff 0.9.0."""
PINS = {
    "pyproject.toml": '[project]\nname = "p"\n[dependency-groups]\ndev = ["mypy", "ruff==0.4.4"]\n',
    ".pre-commit-config.yaml": "repos:\n- repo: https://github.com/astral-sh/ruff-pre-commit\n  # x\n  rev: v0.4.4\n",
    "poetry.lock": '[[package]]\nname = "ruff"\nversion = "0.4.4"\n',
    "requirements-dev.txt": "mypy\nruff>=0.1,<0.5\n",
    "tox.ini": "[testenv:lint]\ndeps = ruff ~= 0.4.1\n",
}


@pytest.mark.parametrize("name", [*PINS, ""])
async def test_a_rule_newer_than_the_pinned_ruff_asks_for_nothing(agent_tools: Make, name: str) -> None:
    code = CUT + 'y = "%s" % 1\n'
    files = {"pkg/a.py": code, "ruff.toml": 'lint.select = ["UP", "FURB"]\n'} | ({name: PINS[name]} if name else {})
    found = await _call(agent_tools("lint", files, "pkg/a.py"), "run_linter")
    assert _codes(found) == (["UP031"] if name else ["FURB188", "UP031"])
    assert bool(found["diagnostics"]) == bool(name)
    strict = await _call(agent_tools("lint", files, "pkg/a.py", strict=True), "run_linter")
    assert _codes(strict) == ["FURB188", "UP031"]


@pytest.mark.parametrize(
    "requirement", ["ruff>=0.4.4", "ruff", "ruff==0.15.1", "ruff~=0.4", "ruff-lsp==0.0.4", "x>=0.4,<0.5"]
)
async def test_a_requirement_that_allows_newer_versions_pins_nothing(agent_tools: Make, requirement: str) -> None:
    files = {"pkg/a.py": CUT, "ruff.toml": 'lint.select = ["FURB"]\n', "requirements-dev.txt": f"{requirement}\n"}
    assert _codes(await _call(agent_tools("lint", files, "pkg/a.py"), "run_linter")) == ["FURB188"]


async def test_examples_within_a_package_say_nothing_about_its_code(agent_tools: Make) -> None:
    files = {f"pkg/example/m{each}.py": OLD for each in range(20)} | {"pkg/a.py": OLD, "pkg/tools/b.py": "x = 1\n"}
    tools = agent_tools("lint", files | SETTINGS, "pkg/a.py")
    assert _codes(await _call(tools, "run_linter")) == ["UP031", "C410"]
    assert _codes(await _call(agent_tools("lint", files | SETTINGS, "pkg/example/m1.py"), "run_linter")) == []
