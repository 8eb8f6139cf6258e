"""The ladder and `remora trace escalate`, through the real command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Remora
from remora.cli._analyze import run_flags

SOON = {"REMORA_RUNNER__ESCALATION__NO_PROGRESS": "1"}


def climb(remora: Remora, *more: str) -> Any:
    return remora(
        "analyze",
        "shop/pricing.py",
        "-o",
        "lint",
        "--policy",
        "random",
        "--escalate",
        "first-candidate",
        *more,
        env=SOON,
    )


def test_a_run_says_its_ladder_every_move_and_who_decided(remora: Remora) -> None:
    done = climb(remora)
    assert done.returncode == 0, done.stderr
    assert "ladder: random → first-candidate" in done.stdout
    assert "up to first-candidate by `no_progress`" in done.stdout
    assert "Who decided:" in done.stdout
    assert "network not used" in done.stdout
    # The larger prompts too are functions of the stream: the same rules give the same prompts.
    assert "No prompt changes" in remora("trace", "what-if").stdout


def test_json_has_the_decisions_of_each_agent_and_of_the_run(remora: Remora) -> None:
    told = json.loads(climb(remora, "--json").stdout)
    total = {row["rung"]: row["decisions"] for row in told["decisions"]}
    assert set(total) == {"random", "first-candidate"}
    assert sum(total.values()) == sum(row["decisions"] for agent in told["agents"] for row in agent["decisions"])


def test_a_stuck_run_becomes_a_document(remora: Remora, analyzed: Callable[[str], Any], shop: Path) -> None:
    agent = analyzed("shop/pricing.py")["agents"][-1]["agent_id"]
    done = remora("trace", "escalate", agent, "--tokens", "500")
    assert done.returncode == 0, done.stderr
    assert "## What was tried" in done.stdout
    assert "of 500 tokens, estimated" in done.stderr
    told = json.loads(remora("trace", "escalate", agent, "--json").stdout)
    assert told["tokens"] <= told["limit"] == 4000


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("analyze", "shop", "--escalate", "gpt-9"), "`gpt-9` is not a rung of a ladder"),
        (("analyze", "shop", "--escalate", "https://example.com/v1"), "names no model"),
        (("analyze", "shop", "--answer", "0000000"), "0000000"),
        (("trace", "escalate", "0000000"), "0000000"),
    ],
)
def test_a_mistake_is_a_sentence(remora: Remora, args: tuple[str, ...], message: str) -> None:
    done = remora(*args)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("flags", "ladder"),
    [
        ({}, None),
        ({"escalate": "a,b"}, ["a", "b"]),
        ({"escalate": "b"}, ["server", "b"]),
        ({"escalate": "b, c", "policy": "random"}, ["server", "b", "c"]),
        ({"model": "m"}, []),
    ],
)
def test_the_flags_of_a_run_say_where_its_ladder_starts(flags: dict[str, str], ladder: list[str] | None) -> None:
    given = {"server": None, "policy": None, "model": None, "no_memory": False, "max_turns": None} | flags
    assert run_flags(**given)["escalation"] == ladder  # type: ignore[arg-type]
