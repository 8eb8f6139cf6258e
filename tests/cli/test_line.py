"""The straight line, from the command to the file and back, with real tools on a real project."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Remora = Callable[..., subprocess.CompletedProcess[str]]
Json = Callable[..., Any]


def sources(project: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in project.rglob("*.py")
        if ".agentfs" not in path.parts
    }


def lint_errors(project: Path) -> int:
    argv = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--exclude",
        ".agentfs",
        "--output-format=concise",
        ".",
    ]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)
    return len([line for line in done.stdout.splitlines() if line.count(":") >= 3])


def test_a_run_changes_no_file_of_the_user_until_accept_and_then_the_linter_finds_less(
    shop: Path, remora_json: Json, runs: Callable[[str], Path], analyzed: Json
) -> None:
    before, errors = sources(shop), lint_errors(shop)
    run = analyzed("shop")
    assert sources(runs("shop")) == before

    assert {agent["outcome"] for agent in run["agents"]} == {"success"}
    assert {report["status"] for report in remora_json("trace", "verify")["streams"]} == {"sealed", "unsealed"}

    assert not [item for item in remora_json("accept") if item["conflict"]]
    assert errors - lint_errors(shop) > 20
    assert remora_json("accept") == []
    tests = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=shop, check=False)
    assert tests.returncode == 0


def test_the_first_run_shows_both_tracks_and_what_is_next(remora: Remora) -> None:
    done = remora("analyze", "shop/cart.py", "-o", "lint")
    assert done.returncode == 0
    for words in (
        "SHORT TRACK",
        "LONG TRACK",
        "Chat history would have sent",
        "judged by the files",
        "none of your files changed yet",
        "remora accept",
    ):
        assert words in done.stdout
    assert "\x1b" not in done.stdout


def test_two_agents_that_changed_one_file_are_both_accepted(shop: Path, remora_json: Json, analyzed: Json) -> None:
    analyzed("shop/cart.py")
    accepted = remora_json("accept")
    assert len([item for item in accepted if item["files"][0]["path"] == "shop/cart.py"]) >= 2
    assert not any(item["conflict"] for item in accepted)


def test_a_change_of_the_user_meanwhile_is_never_overwritten(shop: Path, remora: Remora, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    file = shop / "shop" / "pricing.py"
    mine = b"".join(line + b"  # mine\n" for line in file.read_bytes().splitlines())
    file.write_bytes(mine)
    done = remora("accept")
    assert done.returncode == 1
    assert "conflict" in done.stdout
    assert file.read_bytes() == mine


def test_the_diff_is_what_accept_writes(shop: Path, remora: Remora, remora_json: Json, analyzed: Json) -> None:
    analyzed("shop/report.py")
    agent = remora_json("diff")[0]
    remora("accept", agent["agent_id"])
    text = (shop / "shop" / "report.py").read_text()
    added = [line[1:] for line in agent["diff"].splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert added
    assert all(line in text for line in added)


def test_every_stream_belongs_to_its_run_and_shows_its_turns(remora: Remora, remora_json: Json, analyzed: Json) -> None:
    run = analyzed("shop/pricing.py")
    rows = remora_json("trace", "ls")
    assert {row["run_id"] for row in rows} == {run["run_id"]}
    agent = max(rows, key=lambda row: row["events"])["agent_id"]
    shown = remora("trace", "show", agent[-7:]).stdout
    assert "run_linter" in shown
    assert "sealed" in shown
    events = remora_json("trace", "show", agent)
    assert [event["seq"] for event in events] == list(range(len(events)))
    table = remora("trace", "show", run["run_id"]).stdout
    assert all(row["agent_id"][-7:] in table for row in rows)
    assert remora("trace", "show", run["run_id"], "--events").stdout.count("agent_finished") == len(rows)


def test_a_damaged_stream_is_named_and_the_rest_stays_readable(shop: Path, remora: Remora, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    stream = max((shop / ".agentfs" / "traces").glob("*.jsonl"), key=lambda path: path.stat().st_size)
    data = bytearray(stream.read_bytes())
    data[data.rindex(b"\n", 0, -1) - 100] ^= 1  # in the last line but one
    stream.write_bytes(data)
    done = remora("trace", "verify")
    assert done.returncode == 1
    assert "damaged" in done.stdout
    assert f"{stream.relative_to(shop)}:" in done.stdout
    assert remora("trace", "ls").returncode == 0
    for options in ([], ["--events"], ["--json"]):
        shown = remora("trace", "show", stream.stem, *options)
        assert shown.returncode == 1
        assert "run_linter" in shown.stdout
        assert f"{stream}:" in shown.stderr


def test_a_cut_tail_is_seen_because_the_run_noted_the_head(shop: Path, remora: Remora, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    stream = sorted((shop / ".agentfs" / "traces").glob("*.jsonl"))[0]
    lines = stream.read_bytes().splitlines(keepends=True)
    stream.write_bytes(b"".join(lines[:-1]))
    assert remora("trace", "verify", stream.stem).returncode == 1


def test_search_finds_what_a_tool_really_returned_and_filters_narrow_it(remora_json: Json, analyzed: Json) -> None:
    analyzed("shop/report.py")
    hits = remora_json("trace", "search", "unused", "import")
    assert hits
    assert all("unused" in hit["excerpt"] or "import" in hit["excerpt"] for hit in hits)
    assert remora_json("trace", "search", "unused", "import", "--tool", "no_such_tool") == []
    assert remora_json("trace", "search", "unused", "import", "--until", "2020-01-01") == []
    assert len(remora_json("trace", "ls", "--node", "shop/report.py")) == 1
    run_id = remora_json("trace", "ls")[0]["run_id"]
    assert len(remora_json("trace", "ls", "--run", run_id[-7:])) == len(remora_json("trace", "ls"))
    assert remora_json("trace", "ls", "--outcome", "error") == []


def test_tail_follows_a_stream_until_it_is_sealed(shop: Path, remora: Remora, analyzed: Json) -> None:
    run = analyzed("shop/pricing.py")
    agent = run["agents"][0]["agent_id"]
    lines = remora("trace", "tail", agent, "-f", "--json").stdout.splitlines()
    assert lines == (shop / ".agentfs" / "traces" / f"{agent}.jsonl").read_text().splitlines()


def test_prune_tells_first_and_deletes_only_when_asked(shop: Path, remora_json: Json, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    before = sorted(path.name for path in (shop / ".agentfs" / "traces").iterdir())
    told = remora_json("trace", "prune", "--keep-last", "1", "--dry-run")
    assert len([item for item in told["plan"]["streams"] if item["stream_id"].startswith("traces/")]) == len(before) - 1
    assert sorted(path.name for path in (shop / ".agentfs" / "traces").iterdir()) == before
    remora_json("trace", "prune", "--keep-last", "1")
    assert len(list((shop / ".agentfs" / "traces").glob("*.jsonl"))) == 1
    assert len(list((shop / ".agentfs" / "workspaces").glob("*"))) <= 1
    assert {report["status"] for report in remora_json("trace", "verify")["streams"] if report["kind"] == "traces"} == {
        "sealed"
    }
