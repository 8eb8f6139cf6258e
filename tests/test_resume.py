"""A run that is killed after any event goes on to the same packet, the same files and the same verdict."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import orjson
import pytest

from projects import leave_out_plugins
from remora.app import Project, open_project
from remora.context.projection import project as fold
from remora.errors import ConfigError, TraceNotFound, TracePoisoned
from remora.events import (
    AgentEndEvent,
    AgentResumedEvent,
    Event,
    NoticeEvent,
    RunEndEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    from_record,
    is_check,
)
from remora.ports import AgentResult, Draft
from remora.trace import Disk, FileTrace, claim, read_events
from remora.twotrack import resume_state

SOURCE = """import os
import json


def load(path):
    if path == None:
        return f"nothing"
    return json.loads(path)
"""


@pytest.fixture(autouse=True)
def _without_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REMORA_SERVER__SERVER", "scripted")
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "'off'")
    (root / "remora.yaml").touch()
    leave_out_plugins(root)
    (root / "load.py").write_text(SOURCE)
    (root / "ruff.toml").write_text('lint.select = ["E", "F"]\n')
    return root


def run(app: Project, path: Path) -> list[AgentResult]:
    async def all_of() -> list[AgentResult]:
        return [result async for result in app.runs.run(app.runs.plan([path], ["lint"]))]

    return asyncio.run(all_of())


def resume(app: Project) -> list[AgentResult]:
    async def all_of() -> list[AgentResult]:
        return [result async for result in app.runs.resume()[1]]

    return asyncio.run(all_of())


def cut(state: Path, agent_id: str, keep: int) -> None:
    """The state as a kill right after event `keep` of the agent leaves it: nothing later is on the disk."""
    stream = state / "traces" / f"{agent_id}.jsonl"
    lines = stream.read_bytes().splitlines(keepends=True)
    stream.write_bytes(b"".join(lines[:keep]))
    (run_stream,) = (state / "runs").glob("*.jsonl")
    said = [(line, orjson.loads(line)) for line in run_stream.read_bytes().splitlines(keepends=True)]
    ended = [record["agent_id"] for _, record in said if record["type"] == "agent_finished"]
    place = next(i for i, (_, each) in enumerate(said) if each["type"] == "agent_finished")
    run_stream.write_bytes(b"".join(line for line, _ in said[:place]))
    for other in set(ended) - {agent_id}:
        (state / "traces" / f"{other}.jsonl").unlink()
    (state / "heads.log").unlink()


def end_as_cancelled(stream: Path) -> None:
    """The stream as Ctrl-C leaves it: sealed, while the run's stream does not know of it."""
    last = stream.read_bytes().splitlines()[-1]
    record = orjson.loads(last)
    end = {"type": "agent_end", "data": {"outcome": "cancelled", "reason": "cancelled"}, "seq": record["seq"] + 1}
    prev = f"sha256:{hashlib.sha256(last).hexdigest()}"
    stream.write_bytes(stream.read_bytes() + orjson.dumps(record | end | {"prev": prev}) + b"\n")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Hub answers in time however busy the machine is: packets are compared here, not its time limit."""
    monkeypatch.setattr("remora.context.pulling.HUB_PATIENCE_S", 30.0)


def packet_of(events: list[Event]) -> dict[str, object]:
    """The packet without positions and times of its sources: a resumed stream has an event more, and is later."""
    packet = fold(events).model_dump(mode="json", exclude={"hub_freshness"})
    for entry in packet["knowledge"].values():
        entry.pop("seq", None)
    return packet


_RUN: list[tuple[Path, AgentResult]] = []
"""The project after the run from which tests begin, and its result: run once, then copied."""


def whole_run(project: Path) -> tuple[AgentResult, list[Event]]:
    """Make the project one that was analyzed. Its function's agent: the file's has nothing more to fix."""
    if not _RUN:
        folder = Path(tempfile.mkdtemp(dir=os.environ["REMORA_TESTS"])) / "project"
        shutil.copytree(project, folder)
        results = run(open_project(folder), folder)
        _RUN.append((folder, max(results, key=lambda one: (len(one.files), one.turns))))
    folder, result = _RUN[0]
    shutil.copytree(folder / ".agentfs", project / ".agentfs")
    claim(project / ".agentfs")
    return result, list(read_events(project / ".agentfs" / "traces" / f"{result.agent_id}.jsonl"))


def states(project: Path, tmp_path: Path, stride: int) -> Iterator[tuple[int, Path, AgentResult, list[Event]]]:
    """What a kill after every `stride`-th event leaves, the last event included."""
    result, events = whole_run(project)
    for keep in range(len(events), 0, -stride):
        copy = tmp_path / f"cut-{keep}"
        shutil.copytree(project, copy)
        claim(copy / ".agentfs")
        cut(copy / ".agentfs", result.agent_id, keep)
        yield keep, copy, result, events


@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.faults)])
def test_killed_after_any_event_it_ends_with_the_same_packet_files_and_verdict(
    project: Path, tmp_path: Path, stride: int
) -> None:
    boundaries = 0
    for keep, copy, result, events in states(project, tmp_path, stride):
        app = open_project(copy)
        # What the tool of the last call had half done before the kill must not survive it.
        upper = copy / ".agentfs" / "workspaces" / result.agent_id
        upper.mkdir(parents=True, exist_ok=True)
        (upper / "load.py").write_text("half written")
        (again,) = [one for one in resume(app) if one.agent_id == result.agent_id]
        after = list(read_events(app.state_dir / "traces" / f"{result.agent_id}.jsonl"))
        assert packet_of(after) == packet_of(events), keep
        assert (again.verdict, again.outcome, again.files) == (result.verdict, result.outcome, result.files), keep
        assert not [report for report in app.library.verify() if report.problem], keep
        assert any(isinstance(event, AgentResumedEvent) for event in after) == (keep < len(events)), keep
        boundaries += 1
    assert boundaries * stride > 15


MINE = "# saved by the user"


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.faults)])
def test_a_save_between_a_kill_and_the_resume_is_kept_or_is_a_conflict(
    project: Path, tmp_path: Path, stride: int, record_property: Callable[[str, object], None]
) -> None:
    moments = stopped = 0
    for keep, copy, result, _ in states(project, tmp_path, stride):
        file = copy / "load.py"
        saved = file.read_text().replace("    if path", f"    {MINE}\n    if path")
        file.write_text(saved)
        app = open_project(copy)
        (again,) = [one for one in resume(app) if one.agent_id == result.agent_id]
        stopped += again.reason == "TargetChanged"
        accepted = asyncio.run(app.review.accept(result.agent_id))
        now = file.read_text()
        assert MINE in now, keep
        assert now == saved or not [one for one in accepted if one.conflict], keep
        assert not [report for report in app.library.verify() if report.problem], keep
        moments += 1
    record_property("row 39", f"a save between a kill and the resume: {moments} kills, {stopped} stopped, 0 lost")
    assert stopped


def test_an_agent_whose_file_was_saved_while_it_was_interrupted_says_so_and_is_sealed(project: Path) -> None:
    result, _ = whole_run(project)
    app = open_project(project)
    cut(app.state_dir, result.agent_id, 4)
    (project / "load.py").write_text(f"{MINE}\n{SOURCE}")
    (again,) = [one for one in resume(app) if one.agent_id == result.agent_id]
    assert (again.outcome, again.reason) == ("error", "TargetChanged")
    assert "`load.py` was saved while the agent was interrupted" in again.summary
    assert list(read_events(app.state_dir / "traces" / f"{result.agent_id}.jsonl"))[-1].type == "agent_end"


def test_a_finished_run_has_nothing_to_go_on_with(project: Path) -> None:
    app = open_project(project)
    run(app, project)
    assert app.runs.resume()[0].jobs == ()


def test_a_run_that_could_not_record_its_start_is_not_the_latest_one(project: Path) -> None:
    result, events = whole_run(project)
    app = open_project(project)
    cut(app.state_dir, result.agent_id, len(events) - 3)
    (app.state_dir / "runs" / f"{app.library.new_id(app.clock.now())}.jsonl").touch()
    begun, empty = app.library.runs()
    assert (app.library.latest_run(), empty.stat().st_size) == (begun, 0)
    assert result.agent_id in [one.agent_id for one in resume(app)]
    assert asyncio.run(app.streams.report(())).agents
    for path in app.library.runs():
        path.write_bytes(b"")
    assert app.library.latest_run() is None
    with pytest.raises(TraceNotFound, match="no run to resume"):
        app.runs.resume()


def test_an_agent_that_was_cancelled_has_no_verdict_after_a_resume(project: Path) -> None:
    result, events = whole_run(project)
    app = open_project(project)
    cut(app.state_dir, result.agent_id, len(events) - 3)
    end_as_cancelled(app.state_dir / "traces" / f"{result.agent_id}.jsonl")
    (again,) = [one for one in resume(app) if one.agent_id == result.agent_id]
    assert (again.outcome, again.verdict, again.check, again.why) == ("cancelled", "", {}, "cancelled")
    assert resume(app) == []


@pytest.mark.parametrize("keep", [-3, 0])
def test_lines_that_a_full_disk_cut_do_not_stop_a_resume(project: Path, keep: int) -> None:
    result, events = whole_run(project)
    app = open_project(project)
    cut(app.state_dir, result.agent_id, len(events) - 3 if keep else 0)
    (run_stream,) = app.library.runs()
    streams = (run_stream, app.state_dir / "traces" / f"{result.agent_id}.jsonl")
    for path in streams:
        path.write_bytes(path.read_bytes() + b'{"v":1,"seq":')
    assert asyncio.run(app.review.diff(result.agent_id)) is not None
    again = next(one for one in resume(app) if one.agent_id == result.agent_id)
    assert (again.verdict, again.check["after"]) == (result.verdict, result.check["after"])
    assert all(path.with_suffix(".torn").read_bytes().endswith(b'{"v":1,"seq":') for path in streams)
    assert not app.library.verify().damaged


def test_agents_that_ran_when_the_disk_was_full_for_the_runs_stream_go_on_after_a_resume(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "save.py").write_text(SOURCE)
    write, append, ahead = Disk.write_some, FileTrace.append, list[str]()

    def refuse_ends(self: Disk, handle: int, data: memoryview) -> int:
        if b'"agent_finished"' in data.tobytes():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, handle, data)

    async def hold_all_but_one(self: FileTrace, stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
        if any(isinstance(draft, TurnStartEvent) for draft in drafts):
            ahead.append(stream_id)
            if stream_id != ahead[0]:
                await asyncio.Event().wait()
        return await append(self, stream_id, drafts)

    app = open_project(project)
    with monkeypatch.context() as full:
        full.setattr(Disk, "write_some", refuse_ends)
        full.setattr(FileTrace, "append", hold_all_but_one)
        with pytest.raises(TracePoisoned, match="the disk is full"):
            run(app, project)
    held = [path for path in (app.state_dir / "traces").glob("*.jsonl") if f"traces/{path.stem}" != ahead[0]]
    assert held and not any(isinstance(event, AgentEndEvent) for path in held for event in read_events(path))
    results = resume(app)
    assert {result.agent_id for result in results} >= {path.stem for path in held}
    assert {result.outcome for result in results} == {"success"}
    assert not app.library.verify().damaged


def test_an_agent_that_had_not_begun_is_begun(project: Path) -> None:
    result, events = whole_run(project)
    app = open_project(project)
    cut(app.state_dir, result.agent_id, len(events))
    (app.state_dir / "traces" / f"{result.agent_id}.jsonl").unlink()
    (again,) = [one for one in resume(app) if one.agent_id == result.agent_id]
    assert (again.verdict, again.check) == (result.verdict, result.check)


def test_the_runs_own_stream_ends_as_if_nothing_had_happened(project: Path) -> None:
    result, events = whole_run(project)
    app = open_project(project)
    cut(app.state_dir, result.agent_id, len(events) - 3)
    resume(app)
    (path,) = app.library.runs()
    last = list(read_events(path))[-1]
    assert isinstance(last, RunEndEvent)
    assert last.outcome == "finished"


def test_a_call_with_effects_outside_is_never_run_again_by_itself(project: Path) -> None:
    result, events = whole_run(project)
    app = open_project(project)
    stream = app.state_dir / "traces" / f"{result.agent_id}.jsonl"
    place = next(i for i, event in enumerate(events) if isinstance(event, ToolCallEvent) and not is_check(event))
    cut(app.state_dir, result.agent_id, place + 1)
    *before, line = stream.read_bytes().splitlines(keepends=True)
    record = orjson.loads(line)
    record["data"]["effects"] = "outside"
    stream.write_bytes(b"".join(before) + orjson.dumps(record) + b"\n")
    resume(app)
    after = list(read_events(stream))
    closed = next(event for event in after if isinstance(event, ToolResultEvent) and not is_check(event))
    assert (closed.call_id, closed.outcome) == (record["data"]["call_id"], "unknown")
    assert not [event for event in after if isinstance(event, NoticeEvent) and event.code == "run_again"]
    assert "nobody knows" in str(fold(after[: after.index(closed) + 1]).last_error)


def test_an_interrupted_call_on_the_workspace_is_run_again_and_said_to_be(project: Path) -> None:
    result, events = whole_run(project)
    app = open_project(project)
    place = next(i for i, event in enumerate(events) if isinstance(event, ToolCallEvent) and not is_check(event))
    cut(app.state_dir, result.agent_id, place + 1)
    resume(app)
    after = list(read_events(app.state_dir / "traces" / f"{result.agent_id}.jsonl"))
    assert [event.code for event in after if isinstance(event, NoticeEvent)] == ["run_again"]


@pytest.mark.parametrize("effects", ["workspace", "outside"])
def test_an_interrupted_check_is_run_again_only_where_that_can_do_no_harm(project: Path, effects: str) -> None:
    result, events = whole_run(project)
    app = open_project(project)
    stream = app.state_dir / "traces" / f"{result.agent_id}.jsonl"
    place = max(i for i, event in enumerate(events) if isinstance(event, ToolCallEvent) and is_check(event))
    cut(app.state_dir, result.agent_id, place + 1)
    *before, line = stream.read_bytes().splitlines(keepends=True)
    record = orjson.loads(line)
    record["data"]["effects"] = effects
    stream.write_bytes(b"".join(before) + orjson.dumps(record) + b"\n")
    (again,) = [one for one in resume(app) if one.agent_id == result.agent_id]
    after = list(read_events(stream))
    closed = [event for event in after if isinstance(event, ToolResultEvent)][-1]
    notices = [event.code for event in after if isinstance(event, NoticeEvent)]
    if effects == "outside":
        assert (closed.outcome, again.verdict, notices) == ("unknown", "failed", [])
    else:
        assert (closed.check["count"], again.verdict, notices) == (result.check["after"], result.verdict, ["run_again"])


def test_a_turn_without_an_answer_stands_as_asked() -> None:
    lines = [{"type": "turn_start", "turn": 1}, {"type": "model_request", "turn": 1, "data": {"prompt_sha256": "x"}}]
    now = resume_state(from_record({"v": 1, "seq": seq, "data": {}, **line}) for seq, line in enumerate(lines))
    assert now.turn_begun
    assert now.asked is not None


def test_a_run_goes_on_with_who_began_it_unless_it_is_a_server_elsewhere(project: Path) -> None:
    app = open_project(project, settings={"server.server": "first-candidate", "runner.max_turns": 7})
    run(app, project)
    later = open_project(project)
    assert later.runs.settings_of()["server.server"] == "first-candidate"
    assert later.runs.settings_of()["runner.max_turns"] == 7
    (path,) = app.library.runs()
    record = orjson.loads(path.read_bytes().splitlines()[0])
    record["data"]["settings"] |= {"server.server": "http://elsewhere.example/v1", "sandbox.allow_unsandboxed": True}
    path.write_bytes(orjson.dumps(record) + b"\n")
    with pytest.raises(ConfigError, match="not yours by your own settings"):
        open_project(project).runs.settings_of()
    named = open_project(project, settings={"server.server": "http://elsewhere.example/v1"})
    assert "sandbox.allow_unsandboxed" not in named.runs.settings_of()
