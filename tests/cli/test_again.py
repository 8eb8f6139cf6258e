"""`remora resume --again`: an agent that ended goes on as a new one, with its packet and its files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.analysis import replay, report_agent
from remora.context.projection import project as fold
from remora.events import AgentStartEvent, Event, UserInputEvent
from remora.trace import read_events

Remora = Callable[..., subprocess.CompletedProcess[str]]
FILE = "shop/report.py"


@pytest.fixture
def stopped(remora: Remora) -> str:
    """An agent that was stopped after two turns, with a change in its workspace and work left."""
    found = run(remora, "analyze", FILE, "--policy", "first-candidate", "--max-turns", "2")
    return str(next(one["agent_id"] for one in found if one["node_id"] == FILE))


def run(remora: Remora, *args: str) -> Any:
    done = remora(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["agents"]


def again(remora: Remora, *args: str) -> Any:
    (agent,) = run(remora, "resume", "--again", *args)
    return agent


def events(shop: Path, agent_id: str) -> list[Event]:
    return list(read_events(shop / ".agentfs" / "traces" / f"{agent_id}.jsonl"))


def test_it_goes_on_with_the_packet_and_the_files_and_as_many_turns_again(
    remora: Remora, shop: Path, stopped: str
) -> None:
    made = again(remora, stopped)
    old, new = events(shop, stopped), events(shop, made["agent_id"])
    start = new[0]
    assert isinstance(start, AgentStartEvent)
    assert start.parent is not None
    assert (start.parent["agent_id"], start.parent["relation"]) == (stopped, "continue")
    assert start.parent["head"] == old[start.parent["seq"] + 1].prev
    assert (made["turns"], start.constraints["max_turns"]) == (4, 4)
    kept = start.parent["seq"] + 1
    different = {"agent_id", "hub_freshness", "constraints"}
    before, after = (fold(each[:kept]).model_dump(exclude=different) for each in (old, new))
    assert before == after
    assert made["verdict"] == "clean"
    assert replay(iter(new)).first_difference is None
    assert [step.turn for step in report_agent(iter(new)).steps] == [3, 4]


def test_one_that_ended_its_work_needs_to_hear_what_is_next(remora: Remora, shop: Path, stopped: str) -> None:
    done = again(remora, again(remora, stopped)["agent_id"])
    assert done["reason"] == "submitted"
    refused = remora("resume", "--again", done["agent_id"])
    assert refused.returncode == 3
    assert "would end again at once: it ended its work" in refused.stderr
    made = again(remora, done["agent_id"], "--say", "Look once more")
    (said,) = [event for event in events(shop, made["agent_id"]) if isinstance(event, UserInputEvent)]
    assert said.text == "Look once more"
    assert made["turns"] > done["turns"]


def test_its_changes_are_accepted_only_by_name_and_then_with_those_of_its_parent(
    remora: Remora, shop: Path, stopped: str
) -> None:
    text = remora("resume", "--again", stopped).stdout
    (new,) = {line.split()[2] for line in text.splitlines() if line.strip().startswith("remora accept ")}
    assert remora("accept", new).returncode == 0
    changed = (shop / FILE).read_text()
    assert "import datetime, os" not in changed
    assert "from collections.abc import Iterable" in changed


def test_mistakes_are_told(remora: Remora, stopped: str) -> None:
    for args, why in (
        (["resume", "--again", "nope"], "No stream has an id"),
        (["resume", "--say", "go on"], "expected `--again AGENT`"),
        (["resume", stopped, "--again", stopped], "expected no run"),
    ):
        done = remora(*args)
        assert done.returncode in (1, 3)
        assert why in done.stderr
