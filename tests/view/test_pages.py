from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remora import app
from remora.cli import main
from remora.errors import ConfigError, TraceNotFound
from remora.events import (
    AgentEndEvent,
    AgentStartEvent,
    EscalationEvent,
    FileChange,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolResultEvent,
    TurnStartEvent,
)
from remora.trace import FileBlobs
from remora.view import export_agent
from remora.view._pages import Pages
from view.loops import finish

SECRET = "ghp_" + "a1B2c3D4" * 4
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow\n" * 20 + "-----END RSA PRIVATE KEY-----"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Any:
    """Runs `remora view` in this process."""

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["remora", "view", *args, "-C", str(folder)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def test_the_estimate_of_the_history_is_near_what_is_counted(project: app.Project, run: Any) -> None:
    agent = run(turns=6)
    pages = Pages(project)
    estimated = pages.facts(pages.viewing.open(agent))["line"].history
    counted = max(finish(project.streams.chat_history(agent))[0].values())
    assert 0.6 * counted < estimated < 1.6 * counted


def test_all_turns_are_listed_with_what_was_chosen_and_what_came_back(project: app.Project, run: Any) -> None:
    agent, pages = run(turns=6), Pages(project)
    page = pages.turns(agent, 0)
    assert [f'href="/a/{agent}?turn={turn}"' in page for turn in range(1, 7)] == [True] * 6
    assert page.count("<tbody>") == len(pages.viewing.open(agent)) - 1  # turn 0 has no row
    assert "later turns" not in page


def test_a_report_page_lists_what_a_check_still_found(project: app.Project, write: Any) -> None:
    error = {"code": "E741", "message": "Ambiguous name", "location": {"row": 3, "column": 1}}
    check = ToolResultEvent(
        call_id="check-after",
        tool="run_linter",
        outcome="success",
        raw={"result": {"errors": [error]}},
        purpose="check",
    )
    ended = AgentEndEvent(outcome="success", check={"before": 1, "after": 1})
    agent = write(AgentStartEvent(format=1, goal="g"), check, ended)
    assert "line 3: E741 Ambiguous name" in Pages(project).report(agent)


def test_a_turn_that_a_rule_decided_says_so_on_both_tracks(project: app.Project, write: Any) -> None:
    decided = ModelResponseEvent(turn=1, rule="no problem is left")
    agent = write(AgentStartEvent(format=1, goal="g"), TurnStartEvent(turn=1), decided, AgentEndEvent(turn=1))
    pages = Pages(project)
    page = pages.turn(agent, 1)
    assert "No prompt was sent in this turn: a rule decided." in page
    assert "A rule chose" in page and "no problem is left" in page
    assert "<b>a rule</b>" in pages.ladder(agent)
    assert "by rule: no problem is left" in pages.turns(agent, 0)


def test_the_bars_of_a_short_run_are_not_broad(project: app.Project, run: Any) -> None:
    pages = Pages(project)
    svg = pages.facts(pages.viewing.open(run(turns=2)))["line"].svg
    broad = [float(width) for width in re.findall(r'class="bar"[^>]* width="([\d.]+)"', svg)]
    assert broad and max(broad) <= 90


def test_the_list_shows_verdict_turns_tokens_and_model(project: app.Project, write: Any) -> None:
    request = ModelRequestEvent(turn=3, tokens={"total": 1234})
    end = AgentEndEvent(verdict="clean", turn=3)
    write(AgentStartEvent(format=1, goal="g", model={"model": "some-model"}), TurnStartEvent(turn=3), request, end)
    page = Pages(project).runs({})
    assert all(f">{word}<" in page for word in ("clean", "3", "1,234", "some-model"))
    assert "some-model" not in Pages(project).runs({"outcome": "error"})


def test_an_agent_that_rules_decided_alone_does_not_have_the_runs_model(project: app.Project, write: Any) -> None:
    reply = ModelResponseEvent(rule="nothing to do", turn=1)
    start = AgentStartEvent(format=1, goal="g", operation="lint", model={"model": "some-model"})
    agent_id = write(start, TurnStartEvent(turn=1), reply, AgentEndEvent(verdict="clean", reason="submitted"))
    pages = Pages(project)
    assert ">by rule<" in pages.runs({})
    assert ">by rule<" in pages.agent(agent_id, 0)
    assert "some-model" not in pages.runs({})


def test_thousands_of_agents_are_listed_by_pages(project: app.Project, write: Any) -> None:
    for number in range(205):
        write(AgentStartEvent(format=1, goal=f"goal {number}"))
    pages = Pages(project)
    first, last = pages.runs({}), pages.runs({"page": "2"})
    assert "goal 204" in first and "goal 104" not in first and "older →" in first
    assert "goal 0<" in last and "goal 5<" not in last and "← newer" in last


def test_the_files_of_a_turn_are_those_after_it(project: app.Project, write: Any, folder: Path) -> None:
    blobs = FileBlobs(folder / ".agentfs")
    one, two, three = (finish(blobs.put(text)) for text in (b"a = 1\n", b"a = 2\n", b"a = 3\n"))

    def change(turn: int, before: str, after: str) -> ToolResultEvent:
        files = (FileChange(path="a.py", before=before, after=after),)
        return ToolResultEvent(call_id="1", tool="edit", outcome="success", turn=turn, files=files)

    agent = write(AgentStartEvent(format=1), change(1, one, two), TurnStartEvent(turn=2), change(3, two, three))
    pages = Pages(project)
    assert "changed no file" in pages.files(agent, 0)
    assert "+a = 2" in pages.files(agent, 1) == pages.files(agent, 1) and "a = 3" not in pages.files(agent, 2)
    assert "+a = 3" in pages.files(agent, None) and "-a = 1" in pages.files(agent, None)
    assert "remora accept" in pages.files(agent, 1)


def test_who_decided_what_is_told_by_model(project: app.Project, write: Any) -> None:
    agent = write(
        AgentStartEvent(format=1),
        ModelRequestEvent(turn=1, rung="small", tokens={"total": 10}),
        ModelResponseEvent(turn=1),
        EscalationEvent(turn=1, source="small", target="large", rule="repeats", reason="twice the same"),
        ModelRequestEvent(turn=2, rung="large", tokens={"total": 20}),
        ModelResponseEvent(turn=2),
    )
    page = Pages(project).ladder(agent)
    assert "<b>small</b>" in page and "<b>large</b>" in page and "twice the same" in page


def test_a_comparison_says_where_two_agents_part(project: app.Project, run: Any) -> None:
    one, other = run(turns=2), run(turns=4)
    assert "They diverge at turn 3" in Pages(project).compare(one, other)
    assert "Both did the same" in Pages(project).compare(one, one)


def test_what_looks_like_a_secret_is_in_no_page_and_no_export(project: app.Project, write: Any, tmp_path: Path) -> None:
    text = f"token = {SECRET}\n{KEY}\nend"
    result = ToolResultEvent(call_id="1", tool="t", outcome="success", raw=text, turn=1)
    request = ModelRequestEvent(turn=1, messages=({"role": "user", "content": text},))
    agent = write(AgentStartEvent(format=1, goal=text), TurnStartEvent(turn=1), request, result, AgentEndEvent(turn=1))
    done = export_agent(project, agent, tmp_path / "run.html", max_bytes=10_000_000)
    for page in (done.path.read_text(), Pages(project).agent(agent, 1), Pages(project).search_agent(agent, "end")):
        assert SECRET not in page and "MIIEow" not in page
        assert "[redacted:" in page
    for at in range(0, len(text), 7):
        window = Pages(project).output(agent, 3, 0, at, "")
        assert SECRET[4:] not in window and "MIIEow" not in window


def test_a_search_for_a_secret_shows_none(project: app.Project, write: Any) -> None:
    agent = write(AgentStartEvent(format=1, goal=f"use {SECRET} here"), TurnStartEvent(turn=1))
    assert SECRET not in Pages(project).search_agent(agent, "use").replace(f'value="{SECRET}"', "")


def test_an_export_that_does_not_fit_leaves_out_the_middle_and_says_so(
    project: app.Project, write: Any, tmp_path: Path
) -> None:
    turns = [
        ToolResultEvent(call_id=str(n), tool="t", outcome="success", raw="x" * 5000, turn=n) for n in range(1, 101)
    ]
    agent = write(AgentStartEvent(format=1, goal="g"), *turns, AgentEndEvent(turn=100))
    done = export_agent(project, agent, tmp_path / "run.html", max_bytes=300_000)
    assert done.size <= 300_000 and 10 < done.turns < 101
    text = done.path.read_text()
    assert 'data-turn="1"' in text and 'data-turn="100"' in text
    assert done.left_out and done.left_out[0] in text
    assert list(tmp_path.glob(".*")) == []


def test_an_export_of_a_run_or_of_nothing_is_refused(project: app.Project, folder: Path, tmp_path: Path) -> None:
    (folder / ".agentfs" / "runs").mkdir()
    (folder / ".agentfs" / "runs" / "RUN.jsonl").write_text("")
    with pytest.raises(ConfigError, match="expected an agent"):
        export_agent(project, "RUN", tmp_path / "run.html", max_bytes=10_000_000)
    with pytest.raises(TraceNotFound):
        export_agent(project, "NOBODY", tmp_path / "run.html", max_bytes=10_000_000)


def test_the_command_exports_and_says_what_it_wrote(command: Any, run: Any, tmp_path: Path) -> None:
    agent = run()
    code, out, _ = command(agent, "--export", str(tmp_path / "run.html"))
    assert code == 0 and out.startswith(f"{tmp_path}/run.html: ")
    code, out, _ = command(agent, "--export", str(tmp_path / "run.html"), "--json")
    assert json.loads(out)["turns"] == 5
    code, _, err = command("--export", str(tmp_path / "run.html"))
    assert code == 3 and "needs an agent" in err
    code, _, err = command("NOBODY")
    assert code == 1 and "NOBODY" in err


def test_the_command_says_which_extra_is_missing(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = command()
    assert code == 3
    assert "`jinja2`, which `remora view` needs, is not installed" in err and "remora-agents[view]" in err


def test_the_command_serves_until_it_is_stopped_and_ends_without_noise(folder: Path) -> None:
    argv = [sys.executable, "-m", "remora", "view", "--no-browser", "--json", "-C", str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout and server.stderr
        assert json.loads(server.stdout.readline())["url"].startswith("http://127.0.0.1:")
        server.terminate()
        _, err = server.communicate(timeout=60)
    assert "Traceback" not in err and "ERROR" not in err


def test_a_port_that_is_taken_is_said_in_a_sentence(command: Any, running: Any) -> None:
    code, _, err = command("--port", str(running.port), "--no-browser")
    assert code == 3 and f"Port {running.port} cannot be used" in err
