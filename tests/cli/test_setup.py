"""Settings, agents of one's own, and trust, through the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from remora.config import config_values

Remora = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    return {"REMORA_CONFIG_DIR": str(tmp_path / "own")}


def test_init_writes_settings_that_change_nothing_and_never_twice(remora: Remora, tmp_path: Path) -> None:
    before = json.loads(remora("config", "--json", cwd=tmp_path).stdout)
    assert remora("init", cwd=tmp_path).returncode == 0
    text = (tmp_path / "remora.yaml").read_text()
    assert "packet_size_limit: null" in text
    assert "server:" not in text.replace("`server`", "")
    after = json.loads(remora("config", "--json", cwd=tmp_path).stdout)
    assert after == before
    every = [line.removeprefix("# ").partition("  # ")[0] for line in text.splitlines() if line[:2] == "# "]
    settings = [line for line in every if ":" in line and not line.startswith(("Settings", "Who"))]
    config_values("\n".join(settings), "remora.yaml", of_repository=True)
    again = remora("init", cwd=tmp_path)
    assert (again.returncode, (tmp_path / "remora.yaml").read_text()) == (3, text)


def test_config_says_who_gave_each_value(remora: Remora, tmp_path: Path, own: dict[str, str]) -> None:
    (tmp_path / "remora.yaml").write_text("runner: {max_errors: 3}\n")
    shown = remora("config", "--json", cwd=tmp_path, env={**own, "REMORA_RUNNER__MAX_TURNS": "4"})
    found = {item["path"]: (item["value"], item["origin"]) for item in json.loads(shown.stdout)}
    assert found["runner.max_turns"] == (4, "environment")
    assert found["runner.max_errors"] == (3, "remora.yaml")
    assert found["runner.retries"] == (2, "default")


def test_a_new_agent_works_and_its_own_test_passes(remora: Remora, tmp_path: Path, own: dict[str, str]) -> None:
    (tmp_path / "remora.yaml").touch()
    (tmp_path / "load.py").write_text("def load():\n    # TODO one\n    return 1  # TODO two\n")
    made = remora("agents", "new", "todo", cwd=tmp_path, env=own)
    assert made.returncode == 0, made.stderr
    ran = remora("analyze", "load.py", "-o", "todo", "--policy", "scripted", "--json", cwd=tmp_path, env=own)
    (agent,) = json.loads(ran.stdout)["agents"]
    assert (agent["verdict"], agent["check"]["before"], agent["check"]["after"]) == ("clean", 2, 0)
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "agents/todo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout
    assert remora("agents", "new", "todo", cwd=tmp_path, env=own).returncode == 3
    assert remora("agents", "new", "../up", cwd=tmp_path, env=own).returncode == 3
    assert remora("agents", "new", "lint", cwd=tmp_path, env=own).returncode == 3


def test_what_needs_trust_is_refused_until_it_is_trusted_and_again_once_it_changes(
    remora: Remora, tmp_path: Path, own: dict[str, str]
) -> None:
    (tmp_path / "remora.yaml").touch()
    remora("agents", "new", "todo", cwd=tmp_path, env=own)
    (tmp_path / "load.py").write_text("def load():\n    return 1\n")
    definition = tmp_path / "agents" / "todo" / "subagent.yaml"
    definition.write_text(definition.read_text() + "\nsummarizers:\n  find_todos: 'json:JSONDecoder'\n")
    run = ("analyze", "load.py", "-o", "todo", "--policy", "scripted", "--dry-run")
    refused = remora(*run, cwd=tmp_path, env=own)
    assert refused.returncode == 3
    assert "$.summarizers.find_todos: needs trust" in refused.stderr
    assert remora("trust", "agents", cwd=tmp_path, env=own).returncode == 0
    shown = {row["name"]: row for row in json.loads(remora("agents", "--json", cwd=tmp_path, env=own).stdout)}
    assert shown["todo"]["origin"] == "project"
    definition.write_text(definition.read_text() + "# changed\n")
    assert "needs trust" in remora(*run, cwd=tmp_path, env=own).stderr


def test_a_projects_agent_never_stands_in_for_a_bundled_one(
    remora: Remora, tmp_path: Path, own: dict[str, str]
) -> None:
    (tmp_path / "remora.yaml").touch()
    folder = tmp_path / "agents" / "lint"
    folder.mkdir(parents=True)
    (folder / "subagent.yaml").write_text("name: lint\ngoal: evil\nsystem_prompt: evil\ntools: []\n")
    shown = {row["name"]: row for row in json.loads(remora("agents", "--json", cwd=tmp_path, env=own).stdout)}
    assert shown["lint"]["origin"] == "bundled"


def test_changed_runs_only_what_differs_from_the_last_commit(remora: Remora, tmp_path: Path) -> None:
    tmp_path /= "repository"
    tmp_path.mkdir()

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)  # noqa: S607

    git("init", "-q")
    (tmp_path / "a.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    (tmp_path / "a.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 3\n")
    (tmp_path / "b.py").write_text("def new():\n    return 1\n")

    def nodes(*flags: str) -> list[str]:
        shown = remora("analyze", ".", "--dry-run", "--json", "--policy", "scripted", *flags, cwd=tmp_path)
        return [job["node"]["node_id"] for job in json.loads(shown.stdout)["agents"]]

    assert nodes("--changed") == ["a.py:two", "b.py:new"]
    assert nodes("--changed", "HEAD") == ["a.py:two", "b.py:new"]
    assert len(nodes()) == 5
    bad = remora("analyze", ".", "--changed", "no-such-branch", cwd=tmp_path)
    assert (bad.returncode, "Traceback" in bad.stderr) == (3, False)
