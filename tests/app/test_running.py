"""Which agents run, in what order, and when a run is over."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import remora
from inference.fakes import FakeServer, says
from projects import leave_out_plugins
from remora.app import Project
from remora.errors import ConfigError
from remora.events import RunEndEvent
from remora.trace import read_events


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "'off'")
    (tmp_path / "remora.yaml").touch()
    leave_out_plugins(tmp_path)
    (tmp_path / "a.py").write_text("import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n")
    return tmp_path


def opened(root: Path, **settings: Any) -> Project:
    return remora.open_project(
        root, {"server.server": "scripted"} | {k.replace("__", "."): v for k, v in settings.items()}
    )


def test_operations_with_a_higher_priority_come_first_and_disabled_ones_not_at_all(root: Path) -> None:
    settings = "operations: {docstring: {priority: 5}, sample_data: {enabled: false}}\n"
    (root / "remora.yaml").write_text(settings)
    plan = opened(root).runs.plan([root / "a.py"], ["lint", "sample_data", "docstring"])
    assert plan.operations == ("docstring", "lint")
    assert [job.operation for job in plan.jobs] == ["docstring"] * 2 + ["lint"] * 3


def test_no_agent_works_on_a_file_that_does_not_parse_and_the_plan_says_so(root: Path) -> None:
    (root / "broken.py").write_text("import os\n\n\ndef f(:\n    return 1\n\n\ndef g():\n    return 2\n")
    plan = opened(root).runs.plan([root], ["lint", "docstring"])
    assert {job.node.file_path.as_posix() for job in plan.jobs} == {"a.py"}
    assert plan.problems == ("`broken.py` is not valid Python at line 4: it is skipped",)


def test_an_operations_own_limit_caps_its_turns(root: Path) -> None:
    (root / "remora.yaml").write_text("operations: {lint: {max_turns: 1}}\n")
    results = asyncio.run(opened(root).runs.analyze([root / "a.py"], ["lint"]))
    assert {(result.turns, result.reason) for result in results} == {(1, "max_turns")}


def test_rules_that_a_project_does_not_keep_are_followed_where_its_settings_are_strict(root: Path) -> None:
    (root / "ruff.toml").write_text('lint.select = ["UP"]\n')
    for number in range(13):
        (root / f"m{number}.py").write_text("x = '%s' % 1\n")
    verdicts = []
    for text in ("", "operations: {lint: {strict: true}}\n"):
        (root / "remora.yaml").write_text(text)
        verdicts += [each.verdict for each in asyncio.run(opened(root).runs.analyze([root / "m1.py"], ["lint"]))][-1:]
    assert verdicts == ["clean", "unsafe"]


def test_when_the_runs_time_is_over_no_agent_begins_and_the_run_is_recorded_as_whole(root: Path) -> None:
    project = opened(root, runner__total_deadline_s=0.000001)
    results = asyncio.run(project.runs.analyze([root / "a.py"], ["lint"]))
    assert {(result.outcome, result.reason) for result in results} == {("cancelled", "deadline")}
    last = list(read_events(project.library.runs()[-1]))[-1]
    assert isinstance(last, RunEndEvent)
    assert last.counts == {"cancelled": 3}


def test_a_limit_that_no_prompt_fits_is_refused_before_anything_is_recorded(root: Path) -> None:
    project = opened(root, runner__memory__packet_size_limit=200)
    with pytest.raises(ConfigError, match="Agent `lint`"):
        asyncio.run(project.runs.analyze([root / "a.py"], ["lint"]))
    assert not project.library.runs()


def test_tools_that_take_too_much_as_the_servers_own_are_told_with_the_mode_that_takes_less(root: Path) -> None:
    with FakeServer(says("ready")) as server:
        settings = {"server__server": server.url, "server__model": "m", "runner__memory__packet_size_limit": 1000}
        project = opened(root, **settings)
        with pytest.raises(ConfigError, match="too small") as told:
            asyncio.run(project.runs.analyze([root / "a.py"], ["lint"]))
    assert "server.mode: json" in (told.value.hint or "")
    assert "packet_size_limit" in (told.value.hint or "")


def test_without_the_packet_the_run_is_the_same_but_for_its_prompts(root: Path) -> None:
    packet = asyncio.run(opened(root).runs.analyze([root / "a.py"], ["lint"]))
    history = asyncio.run(opened(root, runner__memory__enabled=False).runs.analyze([root / "a.py"], ["lint"]))
    assert [(one.verdict, one.turns, one.files) for one in history] == [
        (one.verdict, one.turns, one.files) for one in packet
    ]
    assert history[0].largest_prompt > packet[0].largest_prompt
