"""`FileTrace`: what holds on a disk, beyond the contract of every writer."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from remora.errors import TraceDamaged, TraceError, TraceLocked, TraceNotFound, TracePoisoned, TraceSealed
from remora.events import (
    AgentEndEvent,
    AgentFinishedEvent,
    AgentStartEvent,
    Event,
    ModelRequestEvent,
    NoticeEvent,
    ToolCallEvent,
    TurnStartEvent,
    digest,
)
from remora.trace import Disk, FileTrace, read_events, verify

STREAM = "traces/01TEST"
MakeStream = Callable[..., Awaitable[Path]]


class CountingDisk(Disk):
    """Counts the writes and syncs of stream files."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def write_some(self, handle: int, data: memoryview) -> int:
        self.calls.append("write")
        return super().write_some(handle, data)

    def sync(self, handle: int) -> None:
        self.calls.append("sync")
        super().sync(handle)

    def sync_dir(self, path: Path) -> None:
        self.calls.append("sync_dir")
        super().sync_dir(path)


class GateDisk(Disk):
    """A disk whose syncs wait until the gate is opened."""

    def __init__(self) -> None:
        self.waiting = threading.Semaphore(0)
        self.gate = threading.Event()
        self.armed = False

    def sync(self, handle: int) -> None:
        if self.armed:
            self.waiting.release()
            assert self.gate.wait(30)
        super().sync(handle)


class ShortDisk(Disk):
    """A system that takes seven bytes at once."""

    def write_some(self, handle: int, data: memoryview) -> int:
        return super().write_some(handle, data[:7])


class NoLockDisk(Disk):
    """The seeded mistake: nobody looks whether there is another writer."""

    def lock(self, handle: int, path: Path) -> None:
        pass


async def messages(trace: FileTrace, stream_id: str = STREAM) -> list[str]:
    return [event.message async for event in trace.read(stream_id) if isinstance(event, NoticeEvent)]


async def test_files_and_folders_are_for_their_owner_only_whatever_the_umask(state_dir: Path, clock: Any) -> None:
    before = os.umask(0o077 | 0o300)
    try:
        async with FileTrace(state_dir, clock=clock) as trace:
            await trace.append(STREAM, [AgentStartEvent()])
    finally:
        os.umask(before)
    assert state_dir.stat().st_mode & 0o777 == 0o700
    for path in state_dir.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


async def test_the_state_directory_hides_itself_from_git(state_dir: Path, clock: Any) -> None:
    async with FileTrace(state_dir, clock=clock) as trace:
        await asyncio.gather(*(trace.append(f"traces/{n}", [AgentStartEvent()]) for n in range(16)))
    assert (state_dir / ".gitignore").read_text() == "*\n"


async def test_nothing_is_made_before_the_first_append(state_dir: Path, clock: Any) -> None:
    async with FileTrace(state_dir, clock=clock) as trace:
        with pytest.raises(TraceNotFound):
            await trace.head(STREAM)
        with pytest.raises(TraceNotFound):
            await trace.reopen(STREAM)
    assert not state_dir.exists()


async def test_a_planted_link_leads_no_write_outside(state_dir: Path, clock: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    state_dir.mkdir()
    (state_dir / "traces").symlink_to(outside)
    (state_dir / "runs").mkdir()
    (state_dir / "runs" / "A.jsonl").symlink_to(outside / "file")
    async with FileTrace(state_dir, clock=clock) as trace:
        with pytest.raises(TraceError):
            await trace.append(STREAM, [AgentStartEvent()])
        with pytest.raises(TraceError):
            await trace.append("runs/A", [AgentStartEvent()])
    assert list(outside.iterdir()) == []


async def test_a_batch_is_one_write_and_one_sync(state_dir: Path, clock: Any) -> None:
    disk = CountingDisk()
    async with FileTrace(state_dir, clock=clock, disk=disk) as trace:
        await trace.append(STREAM, [AgentStartEvent()])
        disk.calls.clear()
        await trace.append(STREAM, [NoticeEvent(message=str(number)) for number in range(10)])
        assert disk.calls == ["write", "sync"]


@pytest.mark.parametrize(
    ("sync", "stream_id", "event", "synced"),
    [
        ("turn", STREAM, NoticeEvent(), False),
        ("turn", STREAM, TurnStartEvent(), True),
        ("turn", STREAM, ModelRequestEvent(), True),
        ("turn", STREAM, ToolCallEvent(call_id="a", tool="b"), True),
        ("turn", STREAM, AgentEndEvent(), True),
        ("turn", "runs/01TEST", AgentFinishedEvent(), True),
        ("always", STREAM, NoticeEvent(), True),
        ("off", STREAM, ToolCallEvent(call_id="a", tool="b"), False),
        ("off", "runs/01TEST", AgentFinishedEvent(), False),
    ],
)
async def test_syncs_follow_their_mode(
    state_dir: Path, clock: Any, sync: Literal["always", "turn", "off"], stream_id: str, event: Event, synced: bool
) -> None:
    disk = CountingDisk()
    async with FileTrace(state_dir, clock=clock, disk=disk, sync=sync) as trace:
        await trace.append(stream_id, [NoticeEvent()])
        disk.calls.clear()
        await trace.append(stream_id, [event])
        noted = ["write"] * isinstance(event, AgentEndEvent)  # into the ledger, which is not synced
        assert disk.calls == ["write"] + ["sync"] * synced + noted


async def test_off_means_never_synced(state_dir: Path, clock: Any) -> None:
    disk = CountingDisk()
    async with FileTrace(state_dir, clock=clock, disk=disk, sync="off") as trace:
        await trace.append(STREAM, [NoticeEvent()])
    assert set(disk.calls) == {"write"}


async def test_closing_syncs_what_the_last_turn_left(state_dir: Path, clock: Any) -> None:
    disk = CountingDisk()
    async with FileTrace(state_dir, clock=clock, disk=disk, sync="turn") as trace:
        await trace.append(STREAM, [NoticeEvent()])
        disk.calls.clear()
    assert disk.calls == ["sync", "write"]  # the last into the ledger


async def test_a_system_that_takes_few_bytes_at_once_still_gets_all(state_dir: Path, clock: Any) -> None:
    async with FileTrace(state_dir, clock=clock, disk=ShortDisk()) as trace:
        await trace.append(STREAM, [NoticeEvent(message="x" * 1000)])
        assert await messages(trace) == ["x" * 1000]


async def test_a_second_writer_is_refused_while_the_first_holds_the_stream(state_dir: Path, clock: Any) -> None:
    async with FileTrace(state_dir, clock=clock) as first, FileTrace(state_dir, clock=clock) as second:
        await first.append(STREAM, [NoticeEvent(message="first")])
        with pytest.raises(TraceLocked):
            await second.append(STREAM, [NoticeEvent(message="second")])
        await first.close(STREAM)
        await second.append(STREAM, [NoticeEvent(message="second")])
        with pytest.raises(TraceLocked):
            await first.append(STREAM, [NoticeEvent(message="third")])
        assert await messages(first) == ["first", "second"]


async def test_another_process_is_refused_while_this_one_holds_the_stream(state_dir: Path, clock: Any) -> None:
    code = f"""
import asyncio, pathlib
from remora.errors import TraceLocked
from remora.events import NoticeEvent
from remora.trace import FileTrace
async def main():
    try:
        await FileTrace(pathlib.Path({str(state_dir)!r}), clock=None).append({STREAM!r}, [NoticeEvent()])
    except TraceLocked:
        print("refused")
asyncio.run(main())
"""
    async with FileTrace(state_dir, clock=clock) as trace:
        await trace.append(STREAM, [NoticeEvent()])
        other = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
        assert (await other.communicate())[0] == b"refused\n"


async def test_of_two_racing_writers_exactly_one_gets_the_stream(
    state_dir: Path, clock: Any, record_property: Callable[[str, object], None]
) -> None:
    refused = interleaved = 0
    async with FileTrace(state_dir, clock=clock) as one, FileTrace(state_dir, clock=clock) as two:
        for number in range(1000):
            stream_id = f"traces/{number}"
            results = await asyncio.gather(
                one.append(stream_id, [NoticeEvent(message="one")]),
                two.append(stream_id, [NoticeEvent(message="two")]),
                return_exceptions=True,
            )
            refused += [type(result) for result in results].count(TraceLocked)
            report = verify(one.path(stream_id))
            interleaved += report.status == "damaged" or report.events != 1
            await one.close(stream_id)
            await two.close(stream_id)
    record_property("row 9", f"1000 races: {refused} refused, {interleaved} interleaved")
    assert (refused, interleaved) == (1000, 0)


async def test_without_the_lock_the_race_is_lost(state_dir: Path, clock: Any) -> None:
    async with (
        FileTrace(state_dir, clock=clock, disk=NoLockDisk()) as one,
        FileTrace(state_dir, clock=clock, disk=NoLockDisk()) as two,
    ):
        await one.append(STREAM, [NoticeEvent()])
        await two.append(STREAM, [NoticeEvent()])
        await one.append(STREAM, [NoticeEvent()])
        assert verify(one.path(STREAM)).status == "damaged"


async def test_a_sealed_stream_is_let_go_and_stays_sealed(state_dir: Path, clock: Any) -> None:
    async with FileTrace(state_dir, clock=clock) as first, FileTrace(state_dir, clock=clock) as second:
        await first.append(STREAM, [NoticeEvent(), AgentEndEvent()])
        with pytest.raises(TraceSealed):
            await second.append(STREAM, [NoticeEvent()])
        with pytest.raises(TraceSealed):
            await first.append(STREAM, [NoticeEvent()])
        assert verify(first.path(STREAM), head=await second.head(STREAM)).status == "sealed"


async def test_a_cancelled_append_still_ends_whole_and_the_next_one_follows(state_dir: Path, clock: Any) -> None:
    disk = GateDisk()
    async with FileTrace(state_dir, clock=clock, disk=disk) as trace:
        await trace.append(STREAM, [NoticeEvent(message="a")])
        disk.armed = True
        cancelled = asyncio.create_task(trace.append(STREAM, [NoticeEvent(message="b")]))
        await asyncio.to_thread(disk.waiting.acquire)
        next_one = asyncio.create_task(trace.append(STREAM, [NoticeEvent(message="c")]))
        never_begun = asyncio.create_task(trace.append(STREAM, [NoticeEvent(message="d")]))
        await asyncio.sleep(0)
        cancelled.cancel()
        never_begun.cancel()
        for task in (cancelled, never_begun):
            with pytest.raises(asyncio.CancelledError):
                await task
        # The sync still waits, so only what was acknowledged may be read.
        assert await messages(trace) == ["a"]
        disk.gate.set()
        assert [event.seq for event in await next_one] == [2]
        assert await messages(trace) == ["a", "b", "c"]
    assert verify(trace.path(STREAM)).status == "unsealed"


async def test_syncs_of_many_streams_wait_side_by_side(state_dir: Path, clock: Any) -> None:
    disk = GateDisk()
    async with FileTrace(state_dir, clock=clock, disk=disk) as trace:
        await asyncio.gather(*(trace.append(f"traces/{n}", [NoticeEvent()]) for n in range(64)))
        disk.armed = True
        all_of_them = asyncio.gather(*(trace.append(f"traces/{n}", [NoticeEvent()]) for n in range(64)))
        for _ in range(32):
            assert await asyncio.to_thread(disk.waiting.acquire, True, 30)
        disk.gate.set()
        await all_of_them


async def test_reopening_gives_the_last_seq_and_takes_the_stream(state_dir: Path, clock: Any) -> None:
    async with FileTrace(state_dir, clock=clock) as first:
        await first.append(STREAM, [NoticeEvent(), NoticeEvent()])
        async with FileTrace(state_dir, clock=clock) as second:
            with pytest.raises(TraceLocked):
                await second.reopen(STREAM)
            await first.close(STREAM)
            assert await second.reopen(STREAM) == 1
            with pytest.raises(TraceLocked):
                await first.append(STREAM, [NoticeEvent()])


async def test_a_closed_writer_takes_nothing_more(state_dir: Path, clock: Any) -> None:
    async with FileTrace(state_dir, clock=clock) as trace:
        await trace.append(STREAM, [NoticeEvent()])
    with pytest.raises(TraceError, match="closed"):
        await trace.append(STREAM, [NoticeEvent()])
    await trace.close(STREAM)


async def test_a_last_record_cut_at_every_byte_leaves_the_prefix_and_is_kept_aside(
    make_stream: MakeStream, clock: Any, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    whole = (await make_stream(4)).read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    prefix = list(read_events(tmp_path / ".agentfs" / f"{STREAM}.jsonl"))[:3]
    for cut in range(start + 1, len(whole)):
        state = tmp_path / str(cut)
        path = state / f"{STREAM}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(whole[:cut])
        async with FileTrace(state, clock=clock, sync="off") as trace:
            # Also before anyone has repaired it, the prefix can be read.
            assert [event async for event in trace.read(STREAM)] == prefix
            (event,) = await trace.append(STREAM, [NoticeEvent(message="goes on")])
        assert event.seq == 3
        assert path.with_suffix(".torn").read_bytes() == whole[start:cut]
        assert list(read_events(path)) == [*prefix, event]
    record_property("row 5", f"{len(whole) - start - 1} cuts: all set aside, prefix intact")


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\0" * 300 + b"\n", b"garbage\nmore\n", b'{"v":1,"seq":4\n', b"\n"])
async def test_what_never_was_a_record_is_set_aside(make_stream: MakeStream, clock: Any, tail: bytes) -> None:
    path = await make_stream(4)
    whole = path.read_bytes()
    for _ in range(2):
        with path.open("ab") as file:
            file.write(tail)
        async with FileTrace(path.parents[1], clock=clock) as trace:
            assert await trace.reopen(STREAM) == 3
        assert path.read_bytes() == whole
    assert path.with_suffix(".torn").read_bytes() == tail * 2


async def test_records_after_a_damage_are_never_cut_off(make_stream: MakeStream, clock: Any) -> None:
    path = await make_stream(6)
    damaged = path.read_bytes().replace(b"result 1", b"result X")
    path.write_bytes(damaged)
    async with FileTrace(path.parents[1], clock=clock) as trace:
        with pytest.raises(TraceDamaged) as error:
            await trace.append(STREAM, [NoticeEvent()])
    assert error.value.seq == 2
    assert path.read_bytes() == damaged
    assert not path.with_suffix(".torn").exists()


async def test_a_stream_of_a_newer_format_is_neither_cut_nor_continued(state_dir: Path, clock: Any) -> None:
    path = state_dir / f"{STREAM}.jsonl"
    path.parent.mkdir(parents=True)
    line = b'{"v":2,"seq":0,"type":"agent_start","data":{}}\n'
    path.write_bytes(line)
    async with FileTrace(state_dir, clock=clock) as trace:
        with pytest.raises(TraceDamaged, match="format 2"):
            await trace.append(STREAM, [NoticeEvent()])
    assert path.read_bytes() == line


async def test_an_empty_file_is_a_stream_that_has_not_begun(state_dir: Path, clock: Any) -> None:
    path = state_dir / f"{STREAM}.jsonl"
    path.parent.mkdir(parents=True)
    path.touch()
    async with FileTrace(state_dir, clock=clock) as trace:
        with pytest.raises(TraceNotFound):
            await trace.head(STREAM)
        (event,) = await trace.append(STREAM, [NoticeEvent()])
    assert event.seq == 0


async def test_damage_ends_reading_after_all_that_is_intact(make_stream: MakeStream, clock: Any) -> None:
    path = await make_stream(200)
    path.write_bytes(path.read_bytes().replace(b"result 150", b"result XXX"))
    seen = []
    async with FileTrace(path.parents[1], clock=clock) as trace:
        with pytest.raises(TraceDamaged) as error:
            async for event in trace.read(STREAM):
                seen.append(event.seq)
    assert seen == list(range(151))
    assert error.value.seq == 151


async def test_the_head_of_a_stream_that_is_not_open_is_read_from_its_file(make_stream: MakeStream, clock: Any) -> None:
    path = await make_stream(3)
    async with FileTrace(path.parents[1], clock=clock) as trace:
        assert await trace.head(STREAM) == digest(path.read_bytes().splitlines()[-1])


async def test_a_poisoned_stream_stays_poisoned_after_close(state_dir: Path, clock: Any) -> None:
    class FailsOnce(Disk):
        syncs = 0

        def sync(self, handle: int) -> None:
            self.syncs += 1
            if self.syncs == 2:
                raise OSError(5, "Input/output error")

    disk = FailsOnce()
    async with FileTrace(state_dir, clock=clock, disk=disk) as trace:
        await trace.append(STREAM, [NoticeEvent(message="a")])
        for _ in range(3):
            with pytest.raises(TracePoisoned, match="Input/output error"):
                await trace.append(STREAM, [NoticeEvent(message="b")])
            await trace.close(STREAM)
        assert disk.syncs == 2
        assert await messages(trace) == ["a"]
        await trace.append("traces/OTHER", [NoticeEvent()])


async def test_a_file_deleted_between_opening_and_locking_takes_no_event(
    state_dir: Path, clock: Any, draft: Callable[..., Event]
) -> None:
    class PrunedMeanwhile(Disk):
        def lock(self, handle: int, path: Path) -> None:
            super().lock(handle, path)
            path.unlink()

    async with FileTrace(state_dir, clock=clock, disk=PrunedMeanwhile()) as trace:
        with pytest.raises(TraceLocked, match="was deleted by another process"):
            await trace.append("traces/01GONE", [draft()])


class ThreadDisk(Disk):
    """Notes the threads that sync."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def sync(self, handle: int) -> None:
        self.threads.append(threading.current_thread().name)


@pytest.mark.parametrize(("seconds", "here"), [(0.0, True), (1.0, False)])
async def test_one_stream_hands_over_only_syncs_that_take_long(
    state_dir: Path, clock: Any, monkeypatch: pytest.MonkeyPatch, seconds: float, here: bool
) -> None:
    times = itertools.count()
    timer = SimpleNamespace(perf_counter=lambda: next(times) * seconds)
    monkeypatch.setattr("remora.trace.files.stream.time", timer)
    disk = ThreadDisk()
    async with FileTrace(state_dir, clock=clock, sync="turn", disk=disk) as trace:
        await trace.append(STREAM, [TurnStartEvent(turn=1)])
        disk.threads.clear()
        await trace.append(STREAM, [TurnStartEvent(turn=2)])
        assert [name.startswith("remora-disk") for name in disk.threads] == [not here]
