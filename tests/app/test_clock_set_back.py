"""What was recorded last is the latest, whatever the clock said then."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import remora
from projects import leave_out_plugins
from remora.app import Project
from remora.app._decisions import decisions
from remora.events import AcceptUndoneEvent, Event, WorkspaceAcceptedEvent, new_id

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
YEAR = timedelta(days=365)
CODE = "import os\n"


class SetClock:
    """A clock that somebody sets; between that it goes on by a millisecond at a time."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def set_back(self, by: timedelta = YEAR) -> None:
        self.time -= by


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: SetClock) -> Project:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "off")
    (tmp_path / "remora.yaml").write_text("")
    leave_out_plugins(tmp_path)
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(CODE)
    project = remora.open_project(tmp_path, {"server.server": "scripted"})
    project.clock = clock
    return project


async def analyze(project: Project, name: str) -> str:
    """The id of the run."""
    plan = project.runs.plan([project.root / name], ["lint"])
    assert [result.verdict async for result in project.runs.run(plan)].count("clean")
    return plan.run_id


async def opened(project: Project, fragment: str | None = None) -> set[str]:
    return {change.path for diff in await project.review.diff(fragment) for change in diff.changes}


def changed(project: Project) -> list[str]:
    """The files that are no longer as they were."""
    return [path.name for path in sorted(project.root.glob("?.py")) if path.read_text() != CODE]


async def test_after_the_clock_was_set_back_diff_and_accept_and_resume_choose_the_run_recorded_last(
    project: Project, clock: SetClock
) -> None:
    first = await analyze(project, "a.py")
    clock.set_back()
    second = await analyze(project, "b.py")
    assert [path.stem for path in project.library.runs()] == [first, second]
    assert await opened(project) == {"b.py"}
    assert project.runs.resume()[0].run_id == second
    await project.review.accept()
    assert changed(project) == ["b.py"]
    assert await opened(project) == {"a.py"}


async def test_after_the_clock_was_set_back_streams_are_listed_as_they_were_recorded(
    project: Project, clock: SetClock
) -> None:
    runs = [await analyze(project, "a.py")]
    for name in ("b.py", "c.py"):
        clock.set_back()
        runs.append(await analyze(project, name))
    assert list(dict.fromkeys(info.run_id for info in project.library.agents())) == runs
    hits = [hit.event.run_id for hit in project.library.search("lint")]
    assert list(dict.fromkeys(hits)) == runs[::-1]


async def test_after_the_clock_was_set_back_undo_takes_back_the_accept_recorded_last(
    project: Project, clock: SetClock
) -> None:
    first, second = await analyze(project, "a.py"), await analyze(project, "b.py")
    await project.review.accept(second)
    clock.set_back()
    await project.review.accept(first)
    clock.set_back()
    await project.review.undo()
    assert changed(project) == ["b.py"]
    clock.set_back()
    await project.review.accept(first)
    clock.set_back()
    await project.review.undo()
    assert changed(project) == ["b.py"], "the second accept of the same changes is the latest, too"
    await project.review.undo()
    assert changed(project) == []
    assert await project.review.undo() == []


async def test_an_accept_and_its_undo_at_one_moment_of_the_clock_are_told_apart(
    project: Project, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await analyze(project, "a.py"), await analyze(project, "b.py")
    monkeypatch.setattr(clock, "now", lambda: NOW)
    for _ in range(5):
        await project.review.accept(second)
        await project.review.accept(first)
        await project.review.undo()
        assert changed(project) == ["b.py"]
        await project.review.undo()
        assert changed(project) == []


async def test_a_run_of_the_far_future_is_followed_and_a_name_that_no_clock_gives_is_never_the_latest(
    project: Project, clock: SetClock
) -> None:
    clock.time = datetime(2926, 1, 1, tzinfo=UTC)
    future = await analyze(project, "a.py")
    clock.time = NOW
    run = await analyze(project, "b.py")
    assert run > future
    begun = (project.state_dir / "runs" / f"{future}.jsonl").read_bytes()
    for name in ("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ", "zzz", "0" * 26):
        (project.state_dir / "runs" / f"{name}.jsonl").write_bytes(begun)
    last = await analyze(project, "c.py")
    assert project.library.runs()[-1].stem == last
    assert await opened(project) == {"c.py"}
    assert project.runs.resume()[0].run_id == last


async def test_ids_of_a_run_and_its_agents_sort_as_they_were_planned_and_behind_all_before(
    project: Project, monkeypatch: pytest.MonkeyPatch, clock: SetClock
) -> None:
    (project.root / "many.py").write_text("".join(f"def f{number}():\n    pass\n\n\n" for number in range(2000)))
    monkeypatch.setattr(clock, "now", lambda: NOW)
    await analyze(project, "a.py")
    known = [path.stem for kind in ("runs", "traces") for path in (project.state_dir / kind).iterdir()]
    plan = project.runs.plan([project.root / "many.py"], ["lint"])
    ids = [plan.run_id, *(job.agent_id for job in plan.jobs)]
    assert len(ids) > 2000
    assert ids == sorted(set(ids))
    assert ids[0] > max(known)
    assert len({id_[-7:] for id_ in ids}) > len(ids) - 2, "people tell agents apart by the end of their ids"


async def test_a_loop_of_ones_own_gets_an_id_behind_all_that_are_recorded(project: Project, clock: SetClock) -> None:
    clock.time = datetime(2926, 1, 1, tzinfo=UTC)
    await analyze(project, "a.py")
    newest = max(path.stem for path in (project.state_dir / "traces").glob("*.jsonl"))
    async with remora.TwoTrack(goal="g", state_dir=project.state_dir) as track:
        pass
    assert track.path.stem > newest
    assert project.library.agents()[-1].agent_id == track.path.stem


def accepted(run: str, seq: int, accept_id: str, ts: str = "") -> WorkspaceAcceptedEvent:
    return WorkspaceAcceptedEvent(run_id=run, agent_id=f"{run}{seq}", seq=seq, accept_id=accept_id, ts=ts)


def test_accepts_of_earlier_releases_keep_the_order_that_their_streams_prove() -> None:
    old, new = new_id(NOW - YEAR), new_id(NOW)
    events: list[Event] = [
        accepted("A", 5, new),
        accepted("A", 6, old),  # recorded after the clock was set back, by a release that took its id from the clock
        accepted("B", 5, old),
    ]
    assert [event.agent_id for event in decisions(events).accepts] == ["B5", "A5", "A6"]


def test_accepts_from_before_they_had_ids_come_first_and_their_undo_takes_what_came_before_it() -> None:
    events: list[Event] = [
        accepted("A", 5, "", ts="2024-01-02T00:00:00.000000Z"),
        accepted("A", 6, new_id(NOW)),
        accepted("B", 5, "", ts="2024-01-01T00:00:00.000000Z"),
        accepted("C", 5, "", ts="2027-01-01T00:00:00.000000Z"),
        AcceptUndoneEvent(run_id="C", agent_id="C5", seq=6, ts="2023-01-01T00:00:00.000000Z"),
    ]
    assert [event.agent_id for event in decisions(events).accepts] == ["B5", "A5", "A6"]


@pytest.mark.parametrize("hostile", ["zzz", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "Z" * 100_000, "../x", "\x00"])
def test_an_accept_id_that_we_never_gave_is_never_the_latest(hostile: str) -> None:
    events: list[Event] = [accepted("A", 5, new_id(NOW)), accepted("B", 5, hostile)]
    found = decisions(events)
    assert [event.agent_id for event in found.latest(None)] == ["A5"]


def test_the_events_of_a_run_set_back_are_in_order_of_seq(project: Project, clock: SetClock) -> None:
    run_id = asyncio.run(analyze(project, "a.py"))
    clock.set_back()
    asyncio.run(project.review.accept())
    clock.set_back()
    asyncio.run(project.review.undo())
    lines = [json.loads(line) for line in (project.state_dir / "runs" / f"{run_id}.jsonl").read_bytes().splitlines()]
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    assert changed(project) == []
