"""Why work was not taken reaches the lines, the JSON and one line for all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remora.app import open_project
from remora.cli import _render as render
from remora.events import AgentFinishedEvent
from remora.ports import AgentResult
from remora.sandbox import probe
from remora.trace import read_events

needs_sandbox = pytest.mark.skipif(probe().applies == "none", reason="row 22: no sandbox works here for project code")
GONE = "No test written: the search for calls did not end: ModuleNotFoundError: No module named 'not_there'"


def result(number: int, **check: Any) -> AgentResult:
    check = {"tool": "run_tests", "before": 1, "after": 0 if "why" not in check else 1} | check
    verdict = "discarded" if "why" in check else "kept"
    return AgentResult(
        f"01M7KCERB16YZ927KXSZFWW{number:03}", f"a.py:f{number}", "test", "success", verdict=verdict, check=check
    )


def test_a_reason_stands_in_its_agents_line_and_once_for_all_that_share_it(capsys: pytest.CaptureFixture[str]) -> None:
    results = [result(number, why=GONE) for number in range(46)]
    assert GONE in render.agent_line(results[0])
    render.verdicts(results)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "reason" in line]
    assert line.strip() == f"46 of 46 for the same reason: {GONE}"


def test_a_note_that_most_agents_have_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    note = "Run without the project's pytest options: --cov=a needs pytest-cov, which is not installed"
    render.verdicts([result(1, notes=[note]), result(2, notes=[note]), result(3)])
    assert [line.strip() for line in capsys.readouterr().out.splitlines() if "pytest-cov" in line] == [f"2 of 3 {note}"]


def test_reasons_that_differ_are_not_said_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    render.verdicts([result(number, why=f"because of {number}") for number in range(4)])
    assert "reason" not in capsys.readouterr().out


@pytest.mark.parametrize(("unfinished", "offered"), [(0, []), (2, ["continue 2 agents without an end"])])
def test_resume_is_the_next_step_only_where_an_agent_has_no_end(
    unfinished: int, offered: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    render.next_steps(result(1), "", unfinished=unfinished)
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert [words[2] for words in lines if words[:2] == ["remora", "resume"]] == offered


def test_explain_is_a_next_step_only_for_something_that_the_packet_has(capsys: pytest.CaptureFixture[str]) -> None:
    recorded = replace(result(1, key="test_problems"), last_seq=9)
    render.next_steps(recorded, "")
    assert "trace explain" not in capsys.readouterr().out
    render.next_steps(recorded, "", key="tests_written")
    assert "remora trace explain tests_written" in capsys.readouterr().out


@needs_sandbox
def test_the_reason_is_the_tools_word_and_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    (tmp_path / "remora.yaml").touch()
    (tmp_path / "a.py").write_text("import not_there\n\n\ndef one(x: int) -> int:\n    return x\n")
    app = open_project(tmp_path, settings={"server.server": "first-candidate"})
    (done,) = asyncio.run(app.runs.analyze([tmp_path / "a.py"], ["test"]))
    assert (done.verdict, done.check["why"]) == ("discarded", GONE)
    (path,) = app.library.runs()
    (finished,) = [event for event in read_events(path) if isinstance(event, AgentFinishedEvent)]
    assert finished.check["why"] == GONE
