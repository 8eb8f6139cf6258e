"""Whole runs over a Postgres store: the same as over files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from postgres import Server
from projects import copy_shop
from remora.app import make_store, open_project
from remora.errors import TracePoisoned
from remora.events import AgentEndEvent, AgentFinishedEvent, Event, RunEndEvent
from remora.ports import AgentResult, Draft
from remora.trace import PostgresTrace, Retention, read_events


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CACHE_DIR", str(tmp_path / "cache"))
    return copy_shop(tmp_path / "shop")


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


def test_pruning_a_store_deletes_the_workspaces_on_this_machine(shop: Path, postgres: Server) -> None:
    project = open_project(shop, state_dir=postgres.new_url())
    asyncio.run(project.runs.analyze([shop / "shop" / "pricing.py"], ["lint"]))
    workspaces = [shop / ".agentfs" / "workspaces" / info.agent_id for info in project.library.agents()]
    assert any(folder.exists() for folder in workspaces)
    later = project.clock.now() + timedelta(days=1)
    project.library.prune(project.library.plan_prune(Retention(max_age_days=0.5), later))
    assert not project.library.agents()
    assert not any(folder.exists() for folder in workspaces)


def test_an_agent_that_could_not_record_its_end_is_not_over_and_resume_continues_it(
    shop: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(shop, state_dir=postgres.new_url())
    append, refused = PostgresTrace.append, set[str]()

    async def refuse_one_end(self: PostgresTrace, stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
        if any(isinstance(draft, AgentEndEvent) for draft in drafts) and not refused:
            refused.add(stream_id)
            raise TracePoisoned("the database did not answer in time")
        return await append(self, stream_id, drafts)

    monkeypatch.setattr(PostgresTrace, "append", refuse_one_end)
    first = asyncio.run(project.runs.analyze([shop / "shop" / "pricing.py"], ["lint"]))
    (open_one,) = [result.agent_id for result in first if not result.has_ended]
    assert refused == {f"traces/{open_one}"}
    plan, results = project.runs.resume()
    assert [job.agent_id for job in plan.jobs] == [open_one] and not plan.is_over

    async def go_on() -> list[AgentResult]:
        return [result async for result in results]

    assert [(result.agent_id, result.outcome) for result in asyncio.run(go_on())] == [(open_one, "success")]
    (path,) = project.library.runs()
    finished = [event.agent_id for event in read_events(path) if isinstance(event, AgentFinishedEvent)]
    assert sorted(finished) == sorted(result.agent_id for result in first)
    assert not project.library.verify().damaged
    assert project.runs.resume()[0].is_over


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
