from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.errors import ConfigError, TraceError
from remora.events import (
    AgentEndEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    BlobRef,
    Event,
    FileChange,
    RunEndEvent,
    RunStartEvent,
    ToolCallEvent,
    ToolResultEvent,
    WorkspaceAcceptedEvent,
    digest,
    new_id,
    next_id,
)
from remora.trace import (
    Disk,
    FileBlobs,
    FileTrace,
    MemoryTrace,
    PrunePlan,
    Retention,
    TraceIndex,
    TraceStore,
    find_streams,
    plan_prune,
    prune,
    trace_key,
    verify,
)
from remora.trace.files import disk as disk_module
from remora.trace.retention.plan import decide
from remora.trace.retention.scan import BlobFacts, StreamFacts, is_locked

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Clock:
    def __init__(self, days_ago: float) -> None:
        self._now = NOW - timedelta(days=days_ago)

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return 0.0


class Project:
    """A state directory with streams of chosen age."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.blobs = FileBlobs(state_dir)

    async def write(self, stream_id: str, drafts: Sequence[Event], *, days_ago: float) -> Path:
        trace = MemoryTrace(Clock(days_ago))
        await trace.append(stream_id, drafts)
        path = self.state_dir / f"{stream_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in trace.lines(stream_id)))
        return path

    async def agent(
        self,
        name: str,
        *,
        days_ago: float,
        outcome: str | None = "success",
        operation: str = "lint",
        blobs: Sequence[str] = (),
        parent: str | None = None,
        run_id: str = "R",
    ) -> Path:
        who: dict[str, Any] = {"run_id": run_id, "agent_id": name, "operation": operation, "node_id": "n"}
        drafts: list[Event] = [AgentStartEvent(format=1, parent={"agent_id": parent} if parent else None, **who)]
        for number, blob in enumerate(blobs):
            reference = BlobRef(blob=blob, size=1, encoding="utf-8")
            call_id = str(number)
            drafts.append(ToolCallEvent(call_id=call_id, tool="t", turn=1, **who))
            drafts.append(
                ToolResultEvent(call_id=call_id, tool="t", outcome="success", raw_ref=reference, turn=1, **who)
            )
        drafts += [AgentEndEvent(outcome=outcome, **who)] if outcome else []
        return await self.write(f"traces/{name}", drafts, days_ago=days_ago)

    async def run(self, run_id: str, agents: str, *, days_ago: float, ended: bool = True, **more: Any) -> Path:
        drafts: list[Event] = [RunStartEvent(format=1, run_id=run_id)]
        drafts += [AgentScheduledEvent(run_id=run_id, agent_id=name) for name in agents]
        drafts += [RunEndEvent(run_id=run_id)] if ended else []
        drafts += [WorkspaceAcceptedEvent(run_id=run_id, **more)] if more else []
        return await self.write(f"runs/{run_id}", drafts, days_ago=days_ago)

    async def blob(self, text: str, *, days_ago: float = 365) -> str:
        name = await self.blobs.put(text.encode())
        path = self.blobs.path(name)
        assert path is not None
        then = (NOW - timedelta(days=days_ago)).timestamp()
        os.utime(path, (then, then))
        return name

    def plan(self, *, blobs_only: bool = False, **rules: Any) -> PrunePlan:
        return plan_prune(self.state_dir, Retention(**rules), NOW, blobs_only=blobs_only)

    def names(self) -> list[str]:
        return [path.stem for kind in ("traces", "runs") for path in find_streams(self.state_dir, kind)]


@pytest.fixture
def project(state_dir: Path) -> Project:
    return Project(state_dir)


def going(plan: PrunePlan) -> list[str]:
    return [stream.stream_id.split("/")[1] for stream in plan.streams]


# Which streams go


async def test_streams_older_than_the_age_go_and_the_plan_says_why(project: Project) -> None:
    for name, days in (("A", 40), ("B", 31), ("C", 29), ("D", 0)):
        await project.agent(name, days_ago=days)
    plan = project.plan(max_age_days=30)
    assert going(plan) == ["A", "B"]
    assert {stream.reason for stream in plan.streams} == {"it ended more than 30 days ago"}


async def test_a_plan_touches_nothing(project: Project) -> None:
    blob = await project.blob("x")
    await project.agent("A", days_ago=40, blobs=[blob])
    before = {path: path.stat().st_mtime_ns for path in project.state_dir.rglob("*")}
    assert project.plan(max_age_days=0).bytes_freed > 0
    assert {path: path.stat().st_mtime_ns for path in project.state_dir.rglob("*")} == before


async def test_without_a_rule_nothing_goes(project: Project) -> None:
    await project.agent("A", days_ago=4000)
    await project.run("R", "A", days_ago=4000)
    assert going(project.plan()) == []


async def test_alone_keep_last_keeps_the_newest_of_each_operation(project: Project) -> None:
    for number, name in enumerate("DCBA"):
        await project.agent(name, days_ago=number)
    await project.agent("E", days_ago=9, operation="test")
    assert going(project.plan(keep_last=2)) == ["A", "B"]
    assert going(project.plan(keep_last=0)) == ["A", "B", "C", "D", "E"]
    assert going(project.plan(keep_last=9)) == []


async def test_the_last_are_those_recorded_last_whatever_the_clock_said_and_age_is_by_the_clock(
    project: Project,
) -> None:
    first = new_id(NOW)
    second = next_id(NOW - timedelta(days=365), first)
    await project.agent(first, days_ago=0)
    path = await project.agent(second, days_ago=365)  # recorded after the first, with a clock set back
    assert going(project.plan(keep_last=1)) == [first]
    assert going(project.plan(max_total_bytes=path.stat().st_size)) == [first]
    assert going(project.plan(max_age_days=30)) == [second]


async def test_the_last_ones_stay_whatever_their_age(project: Project) -> None:
    for number, name in enumerate("CBA"):
        await project.agent(name, days_ago=40 + number)
    assert going(project.plan(max_age_days=30, keep_last=2)) == ["A"]
    assert going(project.plan(max_total_bytes=0, keep_last=2)) == ["A"]
    assert going(project.plan(max_age_days=300, keep_last=1)) == []


@pytest.mark.parametrize("outcome", ["success", "partial", "cancelled", "error", "degraded"])
async def test_failed_ones_stay_unless_told_otherwise(project: Project, outcome: str) -> None:
    await project.agent("A", days_ago=40, outcome=outcome)
    failed = outcome in ("error", "degraded")
    assert going(project.plan(max_age_days=30)) == ([] if failed else ["A"])
    assert going(project.plan(max_age_days=30, keep_failed=False)) == ["A"]


async def test_the_oldest_go_until_the_rest_fits(project: Project) -> None:
    sizes = {name: (await project.agent(name, days_ago=9 - ord(name))).stat().st_size for name in "ABCD"}
    total = sum(sizes.values())
    assert going(project.plan(max_total_bytes=total)) == []
    assert going(project.plan(max_total_bytes=total - 1)) == ["A"]
    assert going(project.plan(max_total_bytes=sizes["C"] + sizes["D"])) == ["A", "B"]
    assert "more than" in project.plan(max_total_bytes=0).streams[0].reason


async def test_a_blob_counts_once_and_only_while_somebody_names_it(project: Project) -> None:
    shared, own = await project.blob("s" * 900), await project.blob("o" * 900)
    sizes = {}
    for name, blobs in (("A", [shared, own]), ("B", [shared]), ("C", [])):
        sizes[name] = (await project.agent(name, days_ago=9 - ord(name), blobs=blobs)).stat().st_size
    assert going(project.plan(max_total_bytes=sum(sizes.values()) + 1800)) == []
    assert going(project.plan(max_total_bytes=sizes["B"] + sizes["C"] + 900)) == ["A"]
    assert going(project.plan(max_total_bytes=sizes["B"] + sizes["C"] + 899)) == ["A", "B"]


async def test_an_unsealed_stream_never_goes(project: Project) -> None:
    await project.agent("A", days_ago=4000, outcome=None)
    assert going(project.plan(max_age_days=0, keep_last=0, max_total_bytes=0, keep_failed=False)) == []


async def test_a_damaged_stream_never_goes(project: Project) -> None:
    path = await project.agent("A", days_ago=4000)
    path.write_bytes(path.read_bytes() + b"more\n")
    assert going(project.plan(max_age_days=0, keep_failed=False)) == []


async def test_a_locked_stream_never_goes(project: Project) -> None:
    path = await project.agent("A", days_ago=40)
    plan = project.plan(max_age_days=30)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert going(project.plan(max_age_days=30)) == []
        result = prune(plan)
        assert result.streams == ()
        assert "it is being written" in result.skipped[0]
    assert project.names() == ["A"]


async def test_looking_for_a_writer_makes_no_writer_fail(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = await project.agent("A", days_ago=40)
    disk = Disk()
    writer = disk.open_append(path)
    with path.open("rb") as looker:
        assert not disk.has_writer(looker.fileno())
        # The looker is still there at the writer's first try, and gone at the next.
        gone = SimpleNamespace(sleep=lambda _: fcntl.flock(looker, fcntl.LOCK_UN))
        monkeypatch.setattr(disk_module, "time", gone)
        disk.lock(writer, path)
        assert disk.has_writer(looker.fileno())
        assert is_locked(path)
    disk.close(writer)
    assert not is_locked(path)


async def test_a_stream_that_another_which_stays_goes_on_from_stays(project: Project) -> None:
    await project.agent("A", days_ago=50)
    await project.agent("B", days_ago=40, parent="A")
    await project.agent("C", days_ago=1, parent="B")
    await project.agent("D", days_ago=50)
    assert going(project.plan(max_age_days=30)) == ["D"]
    assert going(project.plan(max_total_bytes=0)) == ["A", "B", "C", "D"]
    assert going(project.plan(max_total_bytes=0, keep_last=1)) == ["D"]


async def test_a_run_goes_with_the_last_of_its_agents(project: Project) -> None:
    await project.agent("A", days_ago=40, run_id="R")
    await project.agent("B", days_ago=1, run_id="R")
    await project.agent("C", days_ago=40, run_id="S")
    await project.run("R", "AB", days_ago=40)
    await project.run("S", "C", days_ago=40)
    await project.run("T", "", days_ago=40)
    await project.run("U", "", days_ago=1)
    plan = project.plan(max_age_days=30)
    assert going(plan) == ["A", "C", "S", "T"]
    prune(plan)
    assert project.names() == ["B", "R", "U"]
    assert going(project.plan(keep_last=0)) == ["B", "R"]


async def test_a_run_that_is_not_over_never_goes(project: Project) -> None:
    await project.agent("A", days_ago=40)
    await project.run("R", "A", days_ago=40, ended=False)
    assert going(project.plan(max_age_days=30)) == ["A"]


@pytest.mark.parametrize("rule", ["max_age_days", "max_total_bytes", "keep_last"])
def test_a_negative_rule_is_a_config_error(rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        Retention(**{rule: -1})


@st.composite
def projects(draw: Callable[..., Any]) -> list[StreamFacts]:
    count = draw(st.integers(0, 8))
    return [
        StreamFacts(
            stream_id=f"traces/{number}",
            kind="traces",
            looks="",
            size=draw(st.integers(0, 100)),
            over=draw(st.booleans()),
            locked=draw(st.booleans()),
            outcome=draw(st.sampled_from(["success", "error"])),
            operation=draw(st.sampled_from("ab")),
            run_id=draw(st.sampled_from("RS")),
            agent_id=str(number),
            last_ts=f"2026-11-{draw(st.integers(10, 15))}T00:00:00.000000Z",
            parent=draw(st.sampled_from(["", *(str(other) for other in range(number))])),
            agents=frozenset(),
            blobs=frozenset(draw(st.sets(st.sampled_from("xyz")))),
        )
        for number in range(count)
    ] + [
        StreamFacts(f"runs/{run}", "runs", "", 1, True, False, "success", "", run, "", "2026-11-10", "", agents, blobs)
        for run, agents, blobs in (("R", frozenset("0"), frozenset("x")), ("S", frozenset(), frozenset()))
    ]


@given(
    projects(),
    st.builds(
        Retention,
        max_age_days=st.none() | st.integers(0, 5),
        max_total_bytes=st.none() | st.integers(0, 400),
        keep_last=st.none() | st.integers(0, 3),
        keep_failed=st.booleans(),
    ),
)
def test_whatever_the_rules_nothing_goes_that_must_stay(streams: list[StreamFacts], retention: Retention) -> None:
    blobs = {name: BlobFacts(name, (), 10, 0.0, False) for name in "xyz"}
    gone = decide(streams, blobs, retention, NOW)
    staying = [each for each in streams if each.stream_id not in gone]
    for each in streams:
        if each.stream_id in gone:
            assert each.over
            assert not each.locked
            assert each.outcome == "success" or not retention.keep_failed
            assert each.kind == "runs" or all(other.parent != each.agent_id for other in staying)
            assert each.kind == "traces" or all(other.run_id != each.run_id for other in staying if other != each)
    for operation in "ab":
        alike = sorted((s for s in streams if s.operation == operation), key=lambda s: (s.last_ts, s.stream_id))
        newest = alike[len(alike) - min(retention.keep_last or 0, len(alike)) :]
        assert all(each.stream_id not in gone for each in newest)
    if retention == Retention(keep_failed=retention.keep_failed):
        assert not gone


# What a prune does


async def test_a_prune_deletes_the_streams_and_the_blobs_that_only_they_named(project: Project) -> None:
    old, shared, new = [await project.blob(text) for text in ("old", "shared", "new" * 1000)]
    await project.agent("A", days_ago=40, blobs=[old, shared])
    await project.agent("B", days_ago=1, blobs=[shared, new])
    before = sum(path.stat().st_size for path in project.state_dir.rglob("*") if path.is_file())
    plan = project.plan(max_age_days=30)
    result = prune(plan)
    after = sum(path.stat().st_size for path in project.state_dir.rglob("*") if path.is_file())
    assert result.streams == ("traces/A",)
    assert result.blobs == (old,)
    assert result.skipped == ()
    assert result.bytes_freed == plan.bytes_freed == before - after
    assert project.names() == ["B"]
    assert [project.blobs.path(blob) is None for blob in (old, shared, new)] == [True, False, False]
    assert project.plan(max_age_days=30).bytes_freed == 0


async def test_every_way_of_naming_a_blob_keeps_it(project: Project) -> None:
    blobs = [await project.blob(f"blob {number}") for number in range(7)]
    await project.agent("A", days_ago=40, blobs=blobs)
    await project.run("Z", "", days_ago=1, files=(FileChange(path="a", before=blobs[0], after=blobs[1]),))
    message = {"role": "system", "content_ref": {"blob": blobs[2], "size": 1}}
    more = [
        ToolResultEvent(call_id="1", tool="t", outcome="success", attachments=({"ref": {"blob": blobs[3]}},)),
        AgentStartEvent(definition={"anything": [message]}),
        ToolResultEvent(call_id="1", tool="t", outcome="success", raw=f"inside {blobs[4]}."),
    ]
    path = await project.write("traces/B", more, days_ago=1)
    path.write_bytes(path.read_bytes() + b"torn " + blobs[5].replace("sha", "s\\u0068a").encode() + b' \\u00 {"broken')
    path.with_suffix(".torn").write_bytes(b"half a line with " + blobs[6].encode())
    result = prune(project.plan(max_age_days=30))
    assert result.streams == ("traces/A",)
    assert result.blobs == (blobs[5],)  # spelled in a way that is not even JSON: nobody can read it from there


async def test_an_escaped_digest_keeps_its_blob(project: Project) -> None:
    blob = await project.blob("x")
    await project.agent("A", days_ago=40, blobs=[blob])
    line = json.dumps({"v": 1, "seq": 0, "type": "notice", "data": {"blob": blob}}).replace("sha256", "\\u0073ha256")
    (project.state_dir / "traces" / "B.jsonl").write_text(line + "\n")
    assert project.plan(max_age_days=30).blobs == ()


async def test_a_blob_put_lately_stays_even_if_nobody_names_it_yet(project: Project) -> None:
    orphan, late = await project.blob("orphan", days_ago=2), await project.blob("late", days_ago=0.01)
    await project.agent("A", days_ago=40, blobs=[late])
    plan = project.plan(max_age_days=30)
    assert [blob.digest for blob in plan.blobs] == [orphan]
    prune(plan)
    assert project.blobs.path(late) is not None


async def test_a_blob_put_again_between_plan_and_prune_stays(project: Project) -> None:
    blob = await project.blob("x")
    await project.agent("A", days_ago=40, blobs=[blob])
    plan = project.plan(max_age_days=30)
    path = project.blobs.path(blob)
    assert path is not None
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    result = prune(plan)
    assert "written again" in result.skipped[0]
    assert await project.blobs.get(blob) == b"x"


class PutsAgain(Disk):
    """In the very moment in which a blob is set aside, somebody puts it again."""

    def rename(self, source: Path, target: Path) -> None:
        if target.name.endswith(".pruning"):
            os.utime(source, (NOW.timestamp(), NOW.timestamp()))
        super().rename(source, target)


async def test_a_blob_put_again_in_the_moment_of_its_deletion_comes_back(project: Project) -> None:
    blob = await project.blob("x")
    await project.agent("A", days_ago=40, blobs=[blob])
    assert prune(project.plan(max_age_days=30), disk=PutsAgain()).blobs == ()
    assert await project.blobs.get(blob) == b"x"


async def test_a_blob_that_a_new_stream_names_by_now_stays(project: Project) -> None:
    blob = await project.blob("x")
    await project.agent("A", days_ago=40, blobs=[blob])
    plan = project.plan(max_age_days=30)
    await project.agent("B", days_ago=0, outcome=None, blobs=[blob])
    assert "references it" in prune(plan).skipped[0]
    assert await project.blobs.get(blob) == b"x"


async def test_a_stream_that_changed_since_the_plan_stays_and_so_does_its_run(project: Project) -> None:
    path = await project.agent("A", days_ago=40, run_id="R")
    await project.run("R", "A", days_ago=40)
    plan = project.plan(max_age_days=30)
    path.write_bytes(path.read_bytes() + b"{")
    result = prune(plan)
    assert (result.streams, len(result.skipped)) == ((), 2)
    assert project.names() == ["A", "R"]


class Crash(Exception):
    pass


class Dies(Disk):
    """A disk on which the n-th step kills the process."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def _step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Crash

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)
        self._step()

    def sync_dir(self, path: Path) -> None:
        self._step()
        super().sync_dir(path)

    def write(self, handle: int, data: bytes) -> None:
        self._step()
        super().write(handle, data)


@pytest.mark.parametrize("blobs_only", [False, True])
async def test_after_a_crash_anywhere_nothing_is_named_that_is_gone_and_a_rerun_finishes(
    tmp_path: Path, blobs_only: bool
) -> None:
    for steps in range(100):
        crashed = False
        project = Project(tmp_path / str(steps))
        old = [await project.blob(f"old {number}" * 300) for number in range(2)]
        kept = await project.blob("kept")
        await project.agent("A", days_ago=40, blobs=[*old, kept])
        await project.run("R", "A", days_ago=40)
        await project.agent("B", days_ago=1, blobs=[kept], run_id="S")
        try:
            prune(project.plan(max_age_days=30, blobs_only=blobs_only), disk=Dies(steps))
        except Crash:
            crashed = True
        if not blobs_only and "A" in project.names():
            assert [await project.blobs.get(blob) for blob in old]
        prune(project.plan(max_age_days=30, blobs_only=blobs_only))
        assert project.names() == (["A", "B", "R"] if blobs_only else ["B"])
        assert await project.blobs.get(kept) == b"kept"
        left = {path.suffix for path in (project.state_dir / "blobs").rglob("*") if path.is_file()}
        assert left - {".tmp"} == ({".raw", ".gone"} if blobs_only else {".raw"})
        if not crashed:
            break
    assert 5 < steps < 99


# Blobs only


async def test_blobs_only_leaves_streams_that_verify_and_say_what_was_pruned(project: Project) -> None:
    text = "a nightingale " * 2000
    blob, kept = await project.blob(text), await project.blob("kept")
    path = await project.agent("A", days_ago=40, blobs=[blob, kept])
    await project.agent("B", days_ago=1, blobs=[kept])
    with TraceIndex(project.state_dir) as index:
        assert len(index.search("nightingale")) == 1
        plan = project.plan(max_age_days=30, blobs_only=True)
        assert [(each.digest, each.tombstone) for each in plan.blobs] == [(blob, True)]
        result = prune(plan)
        assert (result.streams, result.blobs, result.skipped) == ((), (blob,), ())
        assert result.bytes_freed == plan.bytes_freed > 0
        assert project.names() == ["A", "B"]
        assert verify(path).status == "sealed"
        assert b"nightingale" not in (project.state_dir / "index.db").read_bytes()
        assert index.search("nightingale") == []
    tombstone = project.state_dir / "blobs" / "sha256" / blob[7:9] / f"{blob[9:]}.gone"
    assert json.loads(tombstone.read_bytes()) == {"digest": blob, "size": len(text)}
    with pytest.raises(TraceError, match="was pruned"):
        await project.blobs.get(blob)
    assert project.plan(max_age_days=30, blobs_only=True).bytes_freed == 0


async def test_reading_an_entry_whose_output_was_pruned_says_so(project: Project) -> None:
    blob = await project.blob("x" * 2000)
    await project.agent("A", days_ago=40, blobs=[blob])
    prune(project.plan(max_age_days=30, blobs_only=True))
    async with FileTrace(project.state_dir, clock=Clock(0)) as writer:
        with TraceIndex(project.state_dir) as index:
            store = TraceStore(writer, project.blobs, index)
            with pytest.raises(TraceError, match="was pruned"):
                await store.get(trace_key("R", "lint", "n", 1))


async def test_a_pruned_blob_can_be_put_again(project: Project) -> None:
    blob = await project.blob("x")
    await project.agent("A", days_ago=40, blobs=[blob])
    prune(project.plan(max_age_days=30, blobs_only=True))
    assert await project.blobs.put(b"x") == blob == digest(b"x")
    assert await project.blobs.get(blob) == b"x"


async def test_a_tombstone_goes_with_the_last_stream_that_names_it(project: Project) -> None:
    blob = await project.blob("x")
    await project.agent("A", days_ago=40, blobs=[blob])
    prune(project.plan(max_age_days=30, blobs_only=True))
    assert len(list((project.state_dir / "blobs").rglob("*.gone"))) == 1
    prune(project.plan(max_age_days=30))
    assert not list((project.state_dir / "blobs").rglob("*.gone"))


async def test_an_orphan_leaves_no_tombstone(project: Project) -> None:
    await project.blob("orphan")
    await project.agent("A", days_ago=1)
    plan = project.plan(max_age_days=30, blobs_only=True)
    assert [each.tombstone for each in plan.blobs] == [False]
    prune(plan)
    assert [path for path in (project.state_dir / "blobs").rglob("*") if path.is_file()] == []


async def test_what_was_pruned_is_gone_from_the_index(project: Project) -> None:
    await project.agent("A", days_ago=40)
    await project.agent("B", days_ago=1)
    with TraceIndex(project.state_dir) as index:
        assert len(index.find_streams_by()) == 2
        prune(project.plan(max_age_days=30))
        assert [stream.stream_id for stream in index.find_streams_by()] == ["traces/B"]


def test_where_there_is_nothing_nothing_goes(project: Project) -> None:
    assert prune(project.plan(max_age_days=0)).bytes_freed == 0
    assert not project.state_dir.exists()
