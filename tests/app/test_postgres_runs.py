"""Whole runs over a Postgres store: the same as over files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from postgres import Server
from remora.app import make_store, open_project
from remora.events import AgentEndEvent, AgentFinishedEvent, RunEndEvent
from remora.trace import read_events

SHOP = Path(__file__).parents[2] / "examples" / "shop"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CACHE_DIR", str(tmp_path / "cache"))
    return Path(shutil.copytree(SHOP, tmp_path / "shop", ignore=shutil.ignore_patterns(".agentfs", "__pycache__")))


def steps(project: object, run: str) -> list[list[tuple[str, int]]]:
    """What each agent of a run recorded: types and turns."""
    library = project.library  # type: ignore[attr-defined]
    found = [event for event in read_events(library.find(run)) if isinstance(event, AgentFinishedEvent)]
    order = sorted(found, key=lambda event: event.node_id)
    return [[(event.type, event.turn) for event in library.events(each.agent_id)] for each in order]


def test_a_run_over_a_store_is_that_over_files_and_leaves_no_stream_on_disk(shop: Path, postgres: Server) -> None:
    url = postgres.new_url()
    files, stored = open_project(shop), open_project(shop, state_dir=url)
    for project in (files, stored):
        results = asyncio.run(project.runs.analyze([shop / "shop" / "pricing.py"], ["lint"]))
        assert {result.outcome for result in results} == {"success"}
    runs = [project.library.runs()[-1].stem for project in (files, stored)]
    assert steps(stored, runs[1]) == steps(files, runs[0])
    assert not (shop / ".agentfs" / "runs" / f"{runs[1]}.jsonl").exists()
    assert not stored.library.verify().damaged
    accepted = asyncio.run(stored.review.accept())
    assert any(not each.conflict for each in accepted)
    assert [len(project.library.agents()) for project in (files, stored)].count(0) == 0


@pytest.mark.fleet
def test_a_killed_run_is_resumed_from_the_store_and_every_agent_ends_once(shop: Path, postgres: Server) -> None:
    url = postgres.new_url()
    make_store(url)
    environment = os.environ | {"REMORA_RUNNER__MEMORY__TRACE_STORE": url}
    argv = [sys.executable, "-m", "remora", "analyze", "shop", "-o", "lint"]
    with subprocess.Popen(argv, cwd=shop, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        library = open_project(shop, state_dir=url).library
        while sum(info.events for info in library.agents()) < 60:
            assert run.poll() is None, "the run ended before it could be killed"
        run.kill()
    again = [sys.executable, "-m", "remora", "resume", "--json"]
    for _ in range(50):  # until the server has noticed that the first process is gone
        done = subprocess.run(again, cwd=shop, env=environment, capture_output=True, text=True, check=False)
        if "another writer" not in done.stderr + done.stdout:
            break
    assert done.returncode in (0, 1), done.stderr
    with contextlib.suppress(json.JSONDecodeError):
        json.loads(done.stdout)
    (path,) = library.runs()
    events = list(read_events(path))
    finished = [event.agent_id for event in events if isinstance(event, AgentFinishedEvent)]
    assert len(finished) == len(set(finished)) == len(library.agents())
    assert [event.outcome for event in events if isinstance(event, RunEndEvent)] == ["finished"]
    for agent in finished:
        assert sum(isinstance(event, AgentEndEvent) for event in library.events(agent)) == 1
    assert not library.verify().damaged
