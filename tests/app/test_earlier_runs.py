"""What is open in earlier runs is found through the index, and found as well without one that can be believed."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import remora
from projects import leave_out_plugins
from remora.app import Project
from remora.errors import TraceDamaged, TraceError
from remora.events import AgentScheduledEvent, AgentStartEvent, RunStartEvent
from remora.trace import TraceIndex


@pytest.fixture
async def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three runs: the first would change a file, the others nothing."""
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "off")
    (tmp_path / "remora.yaml").write_text("")
    leave_out_plugins(tmp_path)
    for name, code in (("a.py", "import os\n"), ("b.py", "X = 1\n")):
        (tmp_path / name).write_text(code)
    project = remora.open_project(tmp_path, {"server.server": "scripted"})
    for name in ("a.py", "b.py", "b.py"):
        await project.runs.analyze([tmp_path / name], ["lint"])
    return project


async def opened(project: Project) -> set[str]:
    return {change.path for diff in await project.review.diff() for change in diff.changes}


@contextmanager
def nothing(db: Path) -> Iterator[None]:
    yield


@contextmanager
def overwritten(db: Path) -> Iterator[None]:
    db.write_bytes(b"garbage" * 1000)
    yield


@contextmanager
def untrue(db: Path) -> Iterator[None]:
    with closing(sqlite3.connect(db)) as index:
        index.execute("UPDATE streams SET changes = 0, run_id = 'other'")
        index.commit()
    yield


@contextmanager
def locked_by_another(db: Path) -> Iterator[None]:
    db.unlink()
    with db.with_suffix(".lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


async def test_a_change_open_in_the_first_of_many_runs_is_found_whatever_the_index_is(project: Project) -> None:
    db = project.state_dir / "index.db"
    assert not db.exists()
    assert await opened(project) == {"a.py"}
    assert db.exists()
    for happens in (nothing, overwritten, untrue, locked_by_another):
        with happens(db):
            assert await opened(project) == {"a.py"}, happens.__name__
    await project.review.accept()
    assert await opened(project) == set()
    await project.review.undo()
    assert await opened(project) == {"a.py"}


async def test_a_damaged_stream_of_an_earlier_run_is_named_and_not_passed_over(project: Project) -> None:
    first = next(read_agents(project))
    with TraceIndex(project.state_dir) as index:
        index.catch_up()
    data = first.read_bytes()
    at = data.index(b"tool_result")
    first.write_bytes(data[:at] + b"tool_Result" + data[at + 11 :])
    with pytest.raises(TraceDamaged):
        await project.review.diff()
    damaged = data.replace(b"agent_start", b"agent_Start", 1)
    first.write_bytes(damaged)
    with pytest.raises(TraceDamaged):
        await project.review.diff()


def read_agents(project: Project) -> Iterator[Path]:
    return (project.state_dir / f"{info.stream_id}.jsonl" for info in project.library.agents())


async def test_while_the_index_is_made_someone_is_told_how_far_it_is(project: Project) -> None:
    told: list[tuple[int, int]] = []
    project.indexing = lambda done, total: told.append((done, total))
    assert project.library.agents()
    assert told[-1][0] == told[-1][1] == sum(path.stat().st_size for path in project.state_dir.glob("*/*.jsonl"))
    told.clear()
    assert project.library.agents()
    assert told == []


@pytest.mark.parametrize("name", ["../../outside", "/etc/passwd", "a/b", ""])
async def test_a_run_that_names_an_agent_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside.jsonl"
    project = remora.open_project(tmp_path, {"server.server": "scripted"})
    async with project.writer() as writer:
        await writer.append("runs/01RUN", [RunStartEvent(format=1), AgentScheduledEvent(agent_id=name)])
        await writer.append("traces/a", [AgentStartEvent(format=1)])
    outside.write_bytes((project.state_dir / "traces" / "a.jsonl").read_bytes())
    with pytest.raises(TraceError, match="is not valid"):
        await project.review.diff()
