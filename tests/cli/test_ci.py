"""The commands of the example workflow and of the pre-commit hook are commands that run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Remora

ROOT = Path(__file__).parents[2]


@pytest.fixture
def commit(shop: Path) -> None:
    """Make the example project a repository with one commit, so that nothing differs from it."""
    named = ["-c", "user.email=a@example.com", "-c", "user.name=a"]
    for args in (["init", "-q"], ["add", "-A"], [*named, "commit", "-qm", "All"]):
        subprocess.run(["git", *args], cwd=shop, check=True)  # noqa: S607 (any git)


def commands(text: str) -> list[list[str]]:
    """Every `remora` command of a shell script, without redirections and with HEAD for a base."""
    found = [each.partition(">")[0] for each in re.split(r"\n|&&", text)]
    names = {"$BASE": "HEAD", "$@": "shop/cart.py"}
    words = [shlex.split(each) for each in found if each.strip().startswith("remora ")]
    return [[_replaced(word, names) for word in command[1:]] for command in words]


def _replaced(word: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        word = word.replace(name, value)
    return word


def test_the_commands_of_the_example_workflow_run(
    remora: Remora, shop: Path, analyzed: Callable[[str], Any], commit: None
) -> None:
    analyzed("shop/cart.py")
    workflow = yaml.safe_load((ROOT / "examples" / "ci" / "remora.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["agents"]["steps"] if "run" in step]
    found = [command for step in steps for command in commands(step)]
    assert [command[:2] for command in found] == [["analyze", "."], *[["trace", "report"]] * 4]
    for command in (found[0], found[2], found[-1]):  # the other formats are tested where reports are
        done = remora(*command)
        assert done.returncode == 0, (command, done.stderr)
    assert json.loads((shop / "remora.sarif").read_text())["version"] == "2.1.0"


def test_the_commands_of_the_pre_commit_hook_run_and_fail_on_what_is_proposed(
    remora: Remora, analyzed: Callable[[str], Any], commit: None
) -> None:
    analyzed("shop/cart.py")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    _, _, script, name = shlex.split(hook["entry"])
    analyze, report = commands(script)
    assert (hook["id"], name) == ("remora-lint", "remora-lint")
    assert remora(*report).returncode == 1  # the run proposes changes that nobody has accepted
    assert remora(*analyze).returncode == 0  # nothing differs from the commit
    assert remora(*report).returncode == 0
