"""`remora fork`: packet and files as they were, and on from there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.analysis import replay
from remora.context.projection import project as fold
from remora.events import AgentStartEvent, PacketUpdateEvent, UserInputEvent
from remora.trace import read_events

Remora = Callable[..., subprocess.CompletedProcess[str]]
OWN = {"agent_id", "hub_freshness"}
"""What differs in a fork's packet: its name, and the time of its own records."""


@pytest.fixture
def agent(analyzed: Callable[[str], Any]) -> str:
    """An agent that changed a file in several turns."""
    found = analyzed("shop/cart.py")["agents"]
    return str(max((one for one in found if one["files"]), key=lambda one: one["turns"])["agent_id"])


def stream(shop: Path, agent_id: str) -> Path:
    return shop / ".agentfs" / "traces" / f"{agent_id}.jsonl"


def fork(remora: Remora, *args: str) -> Any:
    done = remora("fork", *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_fork_has_the_packet_and_the_files_of_that_turn(remora: Remora, shop: Path, agent: str) -> None:
    (made,) = fork(remora, agent, "--at", "2")
    new = made["result"]["agent_id"]
    old, forked = list(read_events(stream(shop, agent))), list(read_events(stream(shop, new)))
    start = forked[0]
    assert isinstance(start, AgentStartEvent)
    assert start.parent is not None
    kept = start.parent["seq"]
    assert (start.parent["agent_id"], start.parent["relation"], start.parent["turn"]) == (agent, "fork", 2)
    assert start.parent["head"] == old[kept + 1].prev
    assert [event.body() for event in forked[1 : kept + 1]] == [event.body() for event in old[1 : kept + 1]]
    assert [event.seq for event in forked] == list(range(len(forked)))
    before, after = (fold(events[: kept + 1]).model_dump(exclude=OWN) for events in (old, forked))
    assert before == after


def test_a_fork_that_changes_nothing_sees_chooses_and_gets_the_same(
    remora: Remora, analyzed: Callable[[str], Any]
) -> None:
    found = analyzed("shop/pricing.py")["agents"]
    (made,) = fork(remora, next(one["agent_id"] for one in found if one["files"]), "--at", "1")
    assert (made["parted"], made["same_files"]) == (None, True)


def test_a_fork_of_an_agent_on_a_whole_file_keeps_its_stage(remora: Remora, by_rule: None) -> None:
    found = json.loads(remora("analyze", "shop/cart.py", "--json").stdout)["agents"]
    (whole,) = [one for one in found if one["stage"] == "first" and one["files"]]
    (made,) = fork(remora, whole["agent_id"], "--at", "1")
    assert (made["parted"], made["same_files"]) == (None, True)


def test_receipts_of_a_fork_match_and_its_stream_verifies(remora: Remora, shop: Path, agent: str) -> None:
    (made,) = fork(remora, agent, "--at", "1")
    new = made["result"]["agent_id"]
    found = replay(read_events(stream(shop, new)))
    assert found.first_difference is None
    assert found.receipts > 0
    assert remora("trace", "verify").returncode == 0
    assert remora("trace", "show", new).returncode == 0


def test_what_a_person_says_and_sets_is_recorded_and_in_the_packet(remora: Remora, shop: Path, agent: str) -> None:
    (made,) = fork(
        remora, agent, "--at", "1", "--say", "Mind the tests", "--set", "owner=me", "--set", "runner.max_turns=3"
    )
    events = list(read_events(stream(shop, made["result"]["agent_id"])))
    assert [event.text for event in events if isinstance(event, UserInputEvent)] == ["Mind the tests"]
    assert [event.source for event in events if isinstance(event, PacketUpdateEvent)] == ["fork"]
    packet = fold(events)
    assert packet.knowledge["owner"].value == "me"
    assert packet.turn <= 3


def test_an_agent_that_had_ended_goes_on_only_if_a_person_says_something(
    remora: Remora, shop: Path, agent: str
) -> None:
    last = str(max(event.turn for event in read_events(stream(shop, agent))))
    refused = remora("fork", agent, "--at", last)
    assert refused.returncode == 3
    assert "ended its work in turn" in refused.stderr
    (made,) = fork(remora, agent, "--at", last, "--say", "Look again", "--policy", "first-candidate")
    events = list(read_events(stream(shop, made["result"]["agent_id"])))
    assert max(event.turn for event in events) == int(last) + 1


def test_files_are_as_they_were_even_if_the_changes_were_accepted(remora: Remora, shop: Path, agent: str) -> None:
    (before,) = fork(remora, agent, "--at", "1")
    text = (shop / "shop" / "cart.py").read_bytes()
    assert remora("accept", agent).returncode == 0
    assert (shop / "shop" / "cart.py").read_bytes() != text
    (after,) = fork(remora, agent, "--at", "1")
    assert after["same_files"]
    assert after["result"]["files"] == before["result"]["files"]


def test_many_forks_each_have_a_seed_and_a_line_in_the_table(remora: Remora, agent: str) -> None:
    done = remora("fork", agent, "--at", "1", "--policy", "random", "--times", "3")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if " random " in line]
    assert len(rows) == 3
    assert all(len(line) <= 80 for line in rows)


def test_changes_of_a_fork_are_accepted_only_by_name(remora: Remora, agent: str) -> None:
    (made,) = fork(remora, agent, "--at", "1")
    new = made["result"]["agent_id"]
    opened = json.loads(remora("diff", "--json").stdout)
    assert new not in {item["agent_id"] for item in opened}
    assert [item["agent_id"] for item in json.loads(remora("diff", new, "--json").stdout)] == [new]
    assert remora("accept", new).returncode == 0


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--at", "99"), "cannot be forked at turn 99"),
        (("--at", "1", "--set", "nothing"), "has no value"),
        (("--at", "1", "--set", "runner.max_turns=many"), "runner.max_turns"),
        (("--at", "1", "--policy", "wise"), "There is no policy `wise`"),
        (("--at", "3", "--max-turns", "3"), "may have 3 turns"),
    ],
)
def test_mistakes_are_told_in_a_sentence(remora: Remora, agent: str, args: tuple[str, ...], told: str) -> None:
    done = remora("fork", agent, *args)
    assert done.returncode == 3, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_and_a_stream_of_another_program_cannot_be_forked(remora: Remora, shop: Path, tmp_path: Path) -> None:
    log = tmp_path / "chat.jsonl"
    log.write_text('{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}]}')
    assert remora("trace", "import", str(log)).returncode == 0
    (imported,) = (shop / ".agentfs" / "traces").glob("*.jsonl")
    done = remora("fork", imported.stem, "--at", "0")
    assert done.returncode == 3
    assert "was not run by Remora" in done.stderr


@pytest.mark.parametrize(
    ("flags", "sentence", "hint"),
    [
        (["--set", "runner.max_turn=3"], "There is no setting `runner.max_turn`", "Did you mean `runner.max_turns`?"),
        (["--set", "server.nonsense=3"], "There is no setting `server.nonsense`", ""),
        (["--model", "qwen3:4b"], "`scripted` decides without a model", "Name the server with `--server`"),
        (["--model", "qwen3:4b", "--policy", "random"], "`random` decides without a model", "`--server`"),
    ],
)
def test_a_flag_that_would_change_nothing_is_a_mistake(
    remora: Remora, agent: str, flags: list[str], sentence: str, hint: str
) -> None:
    done = remora("fork", agent, "--at", "1", *flags)
    assert done.returncode == 3
    assert sentence in done.stderr
    assert hint in done.stderr


def test_a_setting_of_one_operation_can_be_set(remora: Remora, agent: str) -> None:
    (made,) = fork(remora, agent, "--at", "1", "--set", "operations.lint.max_turns=2")
    assert made["result"]["turns"] == 2
