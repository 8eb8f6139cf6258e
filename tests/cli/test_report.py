"""`remora trace report`, `diff` and `export`, on a real run."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remora.analysis import AgentReport, compare, compare_runs
from remora.cli import _render_compare

Remora = Callable[..., subprocess.CompletedProcess[str]]
TOKEN = "ghp_abcdefghij1234567890"


@pytest.fixture
def run(analyzed: Callable[[str], Any]) -> Any:
    return analyzed("shop/pricing.py")


def test_a_report_on_the_latest_run_has_every_agent_and_its_diff(remora: Remora, run: Any) -> None:
    done = remora("trace", "report")
    assert done.returncode == 0, done.stderr
    for agent in run["agents"]:
        assert f"`{agent['agent_id'][-7:]}`" in done.stdout
    assert "```diff\n--- a/shop/pricing.py" in done.stdout
    assert "by run_linter" in done.stdout


def test_each_format_is_written_to_a_file(remora: Remora, run: Any, tmp_path: Path) -> None:
    for kind, begins in (("html", "<!doctype html>"), ("md", "## Run"), ("json", "{"), ("sarif", "{")):
        file = tmp_path / f"report.{kind}"
        done = remora("trace", "report", "--format", kind, "-O", str(file))
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert file.read_text(encoding="utf-8").startswith(begins)
    log = json.loads((tmp_path / "report.sarif").read_text())
    assert (log["version"], log["runs"][0]["tool"]["driver"]["name"]) == ("2.1.0", "Remora")
    assert all(result["ruleId"].startswith("remora/lint/") for result in log["runs"][0]["results"])


def test_the_exit_code_follows_fail_on(remora: Remora, remora_json: Callable[..., Any], run: Any) -> None:
    statuses = remora_json("trace", "report")["statuses"]
    assert remora("trace", "report", "--fail-on", "failed").returncode == 0
    assert remora("trace", "report", "--fail-on", "proposed").returncode == 1  # the changes are not accepted yet
    assert remora("trace", "report", "--fail-on", "left").returncode == (0 if set(statuses) == {"done"} else 1)


def test_a_report_knows_what_was_accepted_and_what_was_rejected(
    remora: Remora, remora_json: Callable[..., Any], run: Any
) -> None:
    changed = [agent["agent_id"] for agent in run["agents"] if agent["files"]]
    assert remora("accept", changed[0]).returncode == 0
    assert remora("reject", changed[1]).returncode == 0
    agents = {agent["agent_id"]: agent for agent in remora_json("trace", "report")["agents"]}
    assert agents[changed[0]]["files"][0]["decision"] == "accepted"
    assert agents[changed[1]]["files"][0]["decision"] == "rejected"


def test_prices_of_the_users_own_settings_give_a_cost(remora: Remora, run: Any) -> None:
    env = {"REMORA_REPORT__PRICES": "{scripted: {input: 1000000}}", "REMORA_REPORT__CURRENCY": "EUR"}
    found = json.loads(remora("trace", "report", "--json", env=env).stdout)
    assert found["cost"] == found["prompt_tokens"]
    assert found["currency"] == "EUR"
    assert json.loads(remora("trace", "report", "--json").stdout)["cost"] is None


def test_a_repository_cannot_set_prices(remora: Remora, shop: Path) -> None:
    (shop / "remora.yaml").write_text("report: {currency: X}\n")
    done = remora("trace", "report")
    assert done.returncode == 3
    assert "$.report: a repository may not set this" in done.stderr


def test_everything_since_a_date_and_nothing_before_it(
    remora: Remora, remora_json: Callable[..., Any], run: Any
) -> None:
    found = remora_json("trace", "report", "--since", "2020-01-01")
    assert len(found["agents"]) == len(run["agents"])
    assert found["title"] == "All agents since 2020-01-01"
    done = remora("trace", "report", "--since", "2199-01-01")
    assert done.returncode == 1
    assert "error: There is no agent to report on since 2199-01-01" in done.stderr
    assert "remora trace ls" in done.stderr


def test_a_title_names_what_was_selected(remora_json: Callable[..., Any], run: Any) -> None:
    found = remora_json("trace", "report", "-o", "lint", "--outcome", "success")
    assert found["title"] == "All agents of operation lint with outcome success"


def test_content_is_only_of_spans(remora: Remora, run: Any) -> None:
    done = remora("trace", "export", "--format", "csv", "--content")
    assert (done.returncode, done.stdout) == (3, "")
    assert "`--content` takes only `--format otel`" in done.stderr


def test_ids_and_filters_together_are_a_mistake(remora: Remora, run: Any) -> None:
    done = remora("trace", "report", run["run_id"], "--since", "2020-01-01")
    assert done.returncode == 3
    assert "cannot be combined" in done.stderr


def test_a_damaged_stream_is_reported_up_to_its_damage(remora: Remora, shop: Path, run: Any) -> None:
    agent = run["agents"][0]["agent_id"]
    path = shop / ".agentfs" / "traces" / f"{agent}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], b'{"broken\n', *lines[7:]]))
    done = remora("trace", "report", agent)
    assert done.returncode == 0, done.stderr
    assert "damaged" in done.stdout
    assert f"notice: agent {agent[-7:]}: " in done.stderr


def test_two_agents_are_compared_from_where_they_parted(
    remora: Remora, remora_json: Callable[..., Any], run: Any
) -> None:
    one, other = (agent["agent_id"] for agent in run["agents"][:2])
    done = remora("trace", "diff", one, other)
    assert done.returncode == 0, done.stderr
    assert "Diverged at turn 1" in done.stdout
    assert remora_json("trace", "diff", one, other)["parted"] == 1
    same = remora_json("trace", "diff", one, one)
    assert (same["parted"], same["same_files"]) == (None, True)
    assert "the same in every turn" in remora("trace", "diff", one, one).stdout


def test_a_run_is_compared_with_a_run_only(remora: Remora, run: Any) -> None:
    agent = run["agents"][0]["agent_id"]
    done = remora("trace", "diff", run["run_id"], run["run_id"])
    assert f"0 differ, {len(run['agents'])} ended the same" in done.stdout
    mixed = remora("trace", "diff", run["run_id"], agent)
    assert mixed.returncode == 3
    assert f"`{agent}` is an agent and `{run['run_id']}` a run" in mixed.stderr


def test_agents_that_only_one_of_two_runs_has_are_counted_not_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shared = AgentReport(agent_id="A", operation="lint", node_id="a.py", outcome="success", turns=1)
    more = [replace(shared, agent_id=f"B{at}", operation="test", node_id=f"{at}.py") for at in range(40)]
    _render_compare.runs(compare_runs("ONE", [shared], "TWO", [shared, *more]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["0 differ, 1 ended the same", "Only in TWO: 40 × test"]
    assert (len(lines), lines[-1]) == (9, "  … 35 more: `remora trace show TWO`")
    assert "1 turn " in lines[3]


def test_imported_agents_are_compared_without_a_node_and_without_times(capsys: pytest.CaptureFixture[str]) -> None:
    log = AgentReport(agent_id="A", operation="import", goal="Book it", outcome="success", reason="imported", turns=1)
    _render_compare.agents(compare(log, [], replace(log, agent_id="B"), []))
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:] if line]
    assert names[:5] == ["asked", "verdict", "turns", "tokens", "files"]


def test_a_file_in_a_missing_folder_is_told_by_its_name(remora: Remora, run: Any, tmp_path: Path) -> None:
    file = tmp_path / "none" / "report.md"
    for command in ("report", "export"):
        done = remora("trace", command, "-O", str(file))
        assert done.returncode == 3
        assert f"error: `{file}` cannot be written: `{file.parent}` is not a folder" in done.stderr


def test_a_turn_that_an_agent_does_not_have_is_told_and_no_other_is_shown(remora: Remora, run: Any) -> None:
    agent, turns = run["agents"][0]["agent_id"], run["agents"][0]["turns"]
    for command in (("replay", agent, "--to"), ("explain", "last_error", agent, "--at")):
        done = remora("trace", *command, str(turns + 1))
        assert (done.returncode, done.stdout) == (3, "")
        assert f"There is no turn {turns + 1}: the last one is {turns}" in done.stderr


def test_a_key_that_the_packet_lacks_is_told_with_those_it_has(remora: Remora, run: Any) -> None:
    done = remora("trace", "explain", "colour", run["agents"][0]["agent_id"])
    assert done.returncode == 1
    assert "colour is not in the packet" in done.stdout
    assert "recent_actions" in done.stdout


def test_every_agent_is_exported_to_each_format(remora: Remora, run: Any, tmp_path: Path) -> None:
    for kind in ("otel", "atif", "openai"):
        lines = remora("trace", "export", "--format", kind).stdout.splitlines()
        assert len(lines) == len(run["agents"])
        assert all(json.loads(line) for line in lines)
    rows = list(csv.DictReader(io.StringIO(remora("trace", "export", "--format", "csv").stdout)))
    assert {row["agent_id"] for row in rows} == {agent["agent_id"] for agent in run["agents"]}
    file = tmp_path / "turns.csv"
    done = remora("trace", "export", run["agents"][0]["agent_id"], "--format", "csv", "-O", str(file))
    assert done.stderr == f"notice: 1 agent written to {file}\n"


def test_an_endpoint_takes_only_spans(remora: Remora, run: Any) -> None:
    done = remora("trace", "export", "--format", "csv", "--endpoint", "localhost:1")
    assert done.returncode == 3
    done = remora("trace", "export", "--format", "otel", "--endpoint", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr


def test_what_looks_like_a_secret_is_redacted_in_reports_and_exports(remora: Remora, shop: Path) -> None:
    (shop / "shop" / "keys.py").write_text(f"import os\nKEY = '{TOKEN}'\n")
    assert remora("analyze", "shop/keys.py").returncode == 0
    streams = b"".join(path.read_bytes() for path in (shop / ".agentfs" / "traces").glob("*.jsonl"))
    shown = [remora("trace", "report", "--format", kind).stdout for kind in ("md", "html", "json", "sarif")]
    shown += [remora("trace", "export", "--format", kind).stdout for kind in ("atif", "openai", "csv")]
    shown.append(remora("trace", "export", "--format", "otel", "--content").stdout)
    assert TOKEN not in "".join(shown)
    assert TOKEN.encode() in streams or "[redacted:github-token]" in "".join(shown)


def test_a_stream_without_an_agent_of_ours_is_reported_too(remora: Remora, shop: Path, tmp_path: Path) -> None:
    log = tmp_path / "chat.jsonl"
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Find it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "nothing"},
        {"role": "assistant", "content": "There is none"},
    ]
    log.write_text(json.dumps({"messages": messages}))
    shutil.rmtree(shop / ".agentfs", ignore_errors=True)
    assert remora("trace", "import", str(log)).returncode == 0
    done = remora("trace", "report")
    assert done.returncode == 0, done.stderr
    assert "`Find it`" in done.stdout
    assert remora("trace", "export", "--format", "openai").returncode == 0


def sarif_lines(remora: Remora, shop: Path, rule: str) -> list[str]:
    """The lines of the project at which SARIF has results of a rule."""
    log = json.loads(remora("trace", "report", "--format", "sarif").stdout)
    found = [each for each in log["runs"][0]["results"] if each["ruleId"] == f"remora/lint/{rule}"]
    places = [each["locations"][0]["physicalLocation"] for each in found]
    rows = [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places]
    return [(shop / path).read_text().splitlines()[row - 1].strip() for path, row in rows]


def test_code_scanning_gets_every_problem_once_and_at_its_line_in_the_project(
    remora: Remora, shop: Path, analyzed: Callable[[str], Any]
) -> None:
    analyzed("shop/cart.py")  # agents of functions begin with the fixes of the file's agent, which remove lines
    assert sarif_lines(remora, shop, "E722") == ["except:"]
    assert sarif_lines(remora, shop, "E741") == ["for l in self.items:"]


def test_after_an_accept_and_an_edit_problems_are_at_their_lines_in_the_file_as_it_is_now(
    remora: Remora, shop: Path, analyzed: Callable[[str], Any]
) -> None:
    agents = analyzed("shop/cart.py")["agents"]
    before = {rule: sarif_lines(remora, shop, rule) for rule in ("E722", "E741", "B006", "E711")}
    assert before["E722"] == ["except:"]
    whole = next(agent["agent_id"] for agent in agents if agent["node_id"] == "shop/cart.py" and agent["files"])
    assert remora("accept", whole).returncode == 0
    assert {rule: sarif_lines(remora, shop, rule) for rule in before} == before
    source = shop / "shop" / "cart.py"
    source.write_text("# One line\n# more\n" + source.read_text())
    assert {rule: sarif_lines(remora, shop, rule) for rule in before} == before


def test_sarif_names_the_version_of_the_file_and_leaves_out_a_problem_whose_line_was_edited(
    remora: Remora, shop: Path, analyzed: Callable[[str], Any]
) -> None:
    analyzed("shop/cart.py")
    source = shop / "shop" / "cart.py"
    source.write_text(source.read_text().replace("except:", "except ValueError:"))
    (log,) = json.loads(remora("trace", "report", "--format", "sarif").stdout)["runs"]
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert [each["hashes"]["sha-256"] for each in log["artifacts"]] == [digest]
    assert not [each for each in log["results"] if each["ruleId"] == "remora/lint/E722"]
    assert "not listed" in log["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    assert "changed since: E722" in remora("trace", "report").stdout


@pytest.mark.parametrize("file", ["../outside.py", "shop/cart.py"])
def test_a_planted_path_of_a_file_outside_is_not_read_for_a_report(
    remora: Remora, shop: Path, analyzed: Callable[[str], Any], file: str
) -> None:
    analyzed("shop/pricing.py")
    (shop.parent / "outside.py").write_text("secret\n")
    for path in (shop / ".agentfs" / "traces").glob("*.jsonl"):
        start = path.read_bytes().splitlines(keepends=True)[0]  # what follows would show that it was changed
        path.write_bytes(start.replace(b'"file":"shop/pricing.py"', b'"file":"%s"' % file.encode()))
    done = remora("trace", "report", "--format", "sarif")
    assert done.returncode == 0, done.stderr
    assert file in done.stdout
    digest = hashlib.sha256((shop / file).read_bytes()).hexdigest()
    assert (digest in done.stdout) == (not file.startswith("..")), "or nothing was looked for"


def test_where_the_version_that_an_agent_saw_is_not_stored_sarif_names_it_and_has_its_lines(
    remora: Remora, shop: Path
) -> None:
    source = shop / "shop" / "bare.py"
    source.write_text("try:\n    x = 1\nexcept:\n    x = 2\n")
    assert remora("analyze", "shop/bare.py", "-o", "lint", "--policy", "first-candidate").returncode == 0
    seen = hashlib.sha256(source.read_bytes()).hexdigest()
    assert sarif_lines(remora, shop, "E722") == ["except:"]
    source.write_text("# above\n" + source.read_text())
    (log,) = json.loads(remora("trace", "report", "--format", "sarif").stdout)["runs"]
    (found,) = log["results"]
    assert found["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    assert [each["hashes"]["sha-256"] for each in log["artifacts"]] == [seen]


def test_a_problem_in_a_file_that_is_gone_is_no_result_but_is_counted(
    remora: Remora, shop: Path, analyzed: Callable[[str], Any]
) -> None:
    analyzed("shop/cart.py")
    (shop / "shop" / "cart.py").unlink()
    (log,) = json.loads(remora("trace", "report", "--format", "sarif").stdout)["runs"]
    assert all(each["ruleId"] == "remora/lint/proposed" for each in log["results"])
    assert "not listed" in log["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
