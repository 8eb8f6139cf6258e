"""What the agents of a run come to together is looked at before the run is over."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from projects import leave_out_plugins
from remora.app import Project, open_project
from remora.events import AgentScheduledEvent, NoticeEvent, RunEndEvent
from remora.ports import AgentResult
from remora.trace import claim, read_events

SOURCE = """from typing import List


def one(items: List[int]) -> int:
    return len(items)


def two(items: List[str]) -> int:
    return len(items)
"""
CLEAN = SOURCE.replace("from typing import List\n\n\n", "").replace("List[", "list[")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_SERVER__SERVER", "first-candidate")
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "remora.yaml").touch()
    leave_out_plugins(root)
    (root / "a.py").write_text(SOURCE)
    (root / "ruff.toml").write_text('target-version = "py311"\nlint.select = ["F", "UP006"]\n')
    return root


def run(app: Project) -> list[AgentResult]:
    return asyncio.run(app.runs.analyze([app.root / "a.py"], ["lint"]))


def last_of(app: Project) -> AgentScheduledEvent:
    (path,) = app.library.runs()
    (found,) = [e for e in read_events(path) if isinstance(e, AgentScheduledEvent) and e.stage == "last"]
    return found


def ruff_is_content(root: Path) -> bool:
    argv = [str(Path(sys.executable).parent / "ruff"), "check", "--no-cache", "-q", "a.py"]
    return subprocess.run(argv, cwd=root, check=False).returncode == 0


def test_an_import_that_the_functions_fixes_leave_unused_is_removed_in_the_same_run(project: Path) -> None:
    app = open_project(project)
    results = run(app)
    assert [(result.node_id, result.stage) for result in results] == [
        ("a.py", ""),
        ("a.py:one", ""),
        ("a.py:two", ""),
        ("a.py", "last"),
    ]
    last = results[-1]
    assert (last.verdict, last.check["before"], last.check["after"]) == ("clean", 1, 0)
    assert not [done.conflict for done in asyncio.run(app.review.accept()) if done.conflict]
    assert (project / "a.py").read_text() == CLEAN
    assert ruff_is_content(project)


def test_its_own_changes_are_all_that_it_shows_and_the_stream_says_what_it_builds_on(project: Path) -> None:
    app = open_project(project)
    results = run(app)
    (shown,) = asyncio.run(app.review.diff(results[-1].agent_id))
    assert [line for line in shown.text.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        "-from typing import List",
        "-",
        "-",
    ]
    scheduled = last_of(app)
    assert scheduled.after == (results[1].agent_id, results[2].agent_id)
    assert [change.path for change in scheduled.over] == ["a.py"]
    assert not [report for report in app.library.verify() if report.problem]
    (path,) = app.library.runs()
    end = list(read_events(path))[-1]
    assert isinstance(end, RunEndEvent)
    assert (end.outcome, sum(end.counts.values())) == ("finished", 4)


def test_where_the_whole_has_nothing_new_wrong_no_further_agent_runs(project: Path) -> None:
    (project / "ruff.toml").write_text('target-version = "py311"\nlint.select = ["UP006"]\n')
    again = run(open_project(project, state_dir=project.parent / "other"))
    assert [result.stage for result in again] == ["", "", ""]
    assert sorted((project.parent / "other" / "workspaces").iterdir()) == sorted(
        project.parent / "other" / "workspaces" / result.agent_id for result in again
    )


def test_it_is_not_accepted_without_the_changes_that_it_builds_on(project: Path) -> None:
    app = open_project(project)
    results = run(app)
    asyncio.run(app.review.reject(results[1].agent_id))
    *_, last = asyncio.run(app.review.accept())
    assert last.agent_id == results[-1].agent_id
    assert "are not accepted" in last.conflict
    assert "from typing import List" in (project / "a.py").read_text()


def cut_run(state: Path, keep: list[str]) -> None:
    """The run's stream as a kill leaves it: only its first records of these types, in order."""
    (path,) = (state / "runs").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(keep)]))
    assert [orjson.loads(line)["type"] for line in lines[: len(keep)]] == keep


FIRST = ["run_start", *["agent_scheduled"] * 3, *["agent_finished"] * 3]


def resume(root: Path) -> list[AgentResult]:
    async def all_of() -> list[AgentResult]:
        plan, results = open_project(root).runs.resume()
        assert not plan.is_over
        return [result async for result in results]

    return asyncio.run(all_of())


def test_a_run_that_was_killed_before_the_last_look_takes_it_when_it_is_resumed(project: Path) -> None:
    run(open_project(project))
    cut_run(project / ".agentfs", FIRST)
    (last,) = resume(project)
    assert (last.stage, last.verdict, last.check["before"]) == ("last", "clean", 1)
    assert open_project(project).runs.resume()[0].is_over


def proven(result: AgentResult) -> dict[str, Any]:
    """What the check said, without the numbers of its records: a run that was resumed has more of them."""
    return {name: value for name, value in result.check.items() if name != "evidence"}


def test_the_last_agent_killed_after_any_event_ends_the_same(project: Path, tmp_path: Path) -> None:
    results = run(open_project(project))
    agent = results[-1].agent_id
    lines = (project / ".agentfs/traces" / f"{agent}.jsonl").read_bytes().splitlines(keepends=True)
    for keep in range(0, len(lines) + 1, 4):
        copy = tmp_path / f"cut-{keep}"
        shutil.copytree(project, copy)
        claim(copy / ".agentfs")
        stream = copy / ".agentfs/traces" / f"{agent}.jsonl"
        stream.write_bytes(b"".join(lines[:keep])) if keep else stream.unlink()
        shutil.rmtree(copy / ".agentfs/workspaces" / agent)
        cut_run(copy / ".agentfs", [*FIRST, "agent_scheduled"])
        (again,) = resume(copy)
        assert (again.agent_id, again.stage, again.verdict) == (agent, "last", "clean"), keep
        assert (proven(again), again.files) == (proven(results[-1]), results[-1].files), keep
        asyncio.run(open_project(copy).review.accept())
        assert (copy / "a.py").read_text() == CLEAN, keep


def test_a_blob_that_is_gone_is_told_and_stops_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from remora.app import _merging
    from remora.errors import TraceError

    async def gone(*_args: object) -> None:
        raise TraceError("the blob is gone")

    monkeypatch.setattr(_merging.Merging, "_merge", gone)
    app = open_project(project)
    assert [result.stage for result in run(app)] == ["", "", ""]
    (path,) = app.library.runs()
    told = [event.message for event in read_events(path) if isinstance(event, NoticeEvent)]
    assert told == ["`a.py` was not looked at as a whole: the blob is gone"]
