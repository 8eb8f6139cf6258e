"""A server that refuses: one prompt is one failed trial, and only what no later trial could survive ends a bench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.tiny import BARE, DOCS, Follower
from inference.fakes import FakeServer, Reply, Wire, answer, by_path, chooses
from remora.config import ServerConfig
from remora.errors import DecisionError, RemoraError
from remora_lab.bench.bench import BenchPlan, make_environment, run_bench, trials
from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.results import Result
from remora_lab.bench.rows import ROWS, Models
from remora_lab.bench.tasks import Task

ENDS = chooses("submit_result", summary="It is done")
SHORT = DOCS
LONG = DOCS.model_copy(
    update={"id": "long", "files": {"app/code.py": BARE.replace("total", "far_too_long")}, "node": "far_too_long"}
)
KEPT = LONG.model_copy(update={"id": "kept", "check": LONG.check.model_copy(update={"unchanged": True})})


def served(decide: Reply) -> Reply:
    """A server with one model, which decides so."""
    return by_path(v1__models=answer({"data": [{"id": "tiny"}]}), v1__chat__completions=decide)


def refuses_long_ones(status: int = 400) -> Reply:
    def decide(wire: Wire) -> None:
        long = "far_too_long" in json.dumps(wire.request.body)
        (answer({"error": {"message": "exceeds the context"}}, status) if long else ENDS)(wire)

    return served(decide)


async def results(path: Path, server: FakeServer, tasks: list[Task], kept: list[Result]) -> None:
    models = Models(server=ServerConfig(server=server.url, model="tiny", mode="json"))
    asked = BenchPlan(tasks, [ROWS["server"]], [CONTROLS["none"]], 1, models)
    async for _ in run_bench(trials(asked), models, make_environment(path, None, Follower), keep=kept.append):
        pass


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_prompt_that_is_refused_is_a_failed_trial_with_its_reason(status: int, tmp_path: Path) -> None:
    kept: list[Result] = []
    with FakeServer(refuses_long_ones(status)) as server:
        await results(tmp_path / "r.jsonl", server, [LONG, SHORT], kept)
    long, other = kept
    assert (long.task, long.solved, long.reason) == ("long", False, "server_refused")
    assert f"refused with HTTP {status}: " in long.problems[0]
    assert "exceeds the context" in long.problems[0]
    assert (other.task, other.reason) == ("docs-1", "submitted")


async def test_a_file_that_was_left_alone_only_because_of_a_refusal_solves_nothing(tmp_path: Path) -> None:
    kept: list[Result] = []
    with FakeServer(refuses_long_ones()) as server:
        await results(tmp_path / "r.jsonl", server, [KEPT], kept)
    assert [one.solved for one in kept] == [False]


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_server_that_knows_no_such_key_or_model_ends_the_bench(status: int, tmp_path: Path) -> None:
    kept: list[Result] = []
    refused = pytest.raises(DecisionError, match=f"`long`: .*HTTP {status}")
    with FakeServer(refuses_long_ones(status)) as server, refused:
        await results(tmp_path / "r.jsonl", server, [SHORT, LONG, SHORT], kept)
    assert [one.task for one in kept] == ["docs-1"]  # what was done before is kept, the refused one is not counted


async def test_a_server_that_goes_away_ends_the_bench_and_nothing_is_counted_for_it(tmp_path: Path) -> None:
    def hangs_up(wire: Wire) -> None:
        return None

    def decide(wire: Wire) -> None:
        (hangs_up if "far_too_long" in json.dumps(wire.request.body) else ENDS)(wire)

    kept: list[Result] = []
    with FakeServer(served(decide)) as server, pytest.raises(RemoraError, match="gave no answer"):
        await results(tmp_path / "r.jsonl", server, [SHORT, LONG], kept)
    assert [one.task for one in kept] == ["docs-1"]
