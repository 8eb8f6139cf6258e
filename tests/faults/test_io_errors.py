"""Rows 3, 4 and 8: the disk refuses. No false acknowledgement, never a second try, and reopening always works."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.errors import TraceError, TracePoisoned
from remora.events import AgentEndEvent, NoticeEvent
from remora.trace import Disk, FileBlobs, FileTrace, read_events, verify

STREAM = "traces/01TEST"
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR)
CALLS = ("make_dir", "open_append", "write_some", "sync", "sync_dir", "rename", "truncate")


class FailingDisk(Disk):
    """A disk on which one call fails, or every call from then on."""

    def __init__(self, at: int, code: int, *, forever: bool, half: bool = True) -> None:
        self.count = 0
        self.at = at
        self.code = code
        self.forever = forever
        self.half = half
        self.failed = ""

    def _step(self, name: str) -> bool:
        self.count += 1
        due = self.count == self.at or (self.forever and self.count > self.at)
        if due:
            self.failed = self.failed or name
        return due

    def _refuse(self) -> OSError:
        return OSError(self.code, os.strerror(self.code))

    def write_some(self, handle: int, data: memoryview) -> int:
        if self._step("write"):
            if self.half:
                super().write_some(handle, data[: len(data) // 2])
            raise self._refuse()
        return super().write_some(handle, data)


def _failing(name: str) -> Callable[..., Any]:
    def call(self: FailingDisk, *args: Any) -> Any:
        if self._step(name):
            raise self._refuse()
        return getattr(Disk, name)(self, *args)

    return call


for _name in CALLS:
    if _name != "write_some":
        setattr(FailingDisk, _name, _failing(_name))


async def work(state: Path, disk: Disk, clock: Any) -> tuple[dict[str, list[str]], list[tuple[str, bytes]]]:
    """What was acknowledged in a session that meets errors, and goes on as long as it can."""
    acknowledged: dict[str, list[str]] = {STREAM: [], "runs/R": []}
    kept: list[tuple[str, bytes]] = []
    blobs = FileBlobs(state, disk=disk)
    trace = FileTrace(state, clock=clock, disk=disk)
    for number in range(4):
        for stream in acknowledged:
            data = f"{stream} {number}".encode() * 200
            drafts = [NoticeEvent(code=f"{stream} {number} {part}") for part in range(2)]
            try:
                kept.append((await blobs.put(data), data))
                await trace.append(stream, drafts)
                acknowledged[stream] += [draft.code for draft in drafts]
            except TraceError:
                continue
    with contextlib.suppress(TraceError):
        await trace.aclose()
    return acknowledged, kept


async def check(state: Path, acknowledged: dict[str, list[str]], kept: list[tuple[str, bytes]], clock: Any) -> None:
    """Everything acknowledged is there; the streams can be reopened and go on."""
    async with FileTrace(state, clock=clock, sync="off") as trace:
        for stream, codes in acknowledged.items():
            await trace.append(stream, [NoticeEvent(code="goes on")])
            there = [event.code for event in read_events(trace.path(stream)) if isinstance(event, NoticeEvent)]
            assert there[: len(codes)] == codes
            assert there[-1] == "goes on"
            assert len(there) == len(set(there))
    blobs = FileBlobs(state)
    for name, data in kept:
        assert await blobs.get(name) == data


def with_torn_tail(state: Path) -> None:
    """A stream that must be repaired first, so that this can fail as well."""
    (state / "traces").mkdir(parents=True)
    (state / f"{STREAM}.jsonl").write_bytes(b'{"v":1,"seq":')


async def try_every_call(tmp_path: Path, clock: Any, code: int, step: int) -> tuple[int, set[str]]:
    cases, failed = 0, set()
    for forever in (False, True):
        at = 0
        while True:
            at += step
            cases += 1
            state = tmp_path / f"{code}-{forever}-{at}"
            with_torn_tail(state)
            disk = FailingDisk(at, code, forever=forever)
            await check(state, *await work(state, disk, clock), clock)
            if not disk.failed:
                break
            failed.add(disk.failed)
    return cases, failed


async def test_some_calls_that_fail_lead_to_no_false_acknowledgement(tmp_path: Path, clock: Any) -> None:
    await try_every_call(tmp_path, clock, errno.EIO, step=7)


@pytest.mark.faults
@pytest.mark.parametrize("code", ERRORS, ids=[errno.errorcode[code] for code in ERRORS])
async def test_every_call_that_fails_leads_to_no_false_acknowledgement(
    tmp_path: Path, clock: Any, code: int, record_property: Callable[[str, object], None]
) -> None:
    cases, failed = await try_every_call(tmp_path, clock, code, step=1)
    record_property("row 3", f"{errno.errorcode[code]}: {cases} sessions, 0 false acknowledgements, all reopened")
    assert failed == {"write", *CALLS} - {"write_some"}


async def test_a_writer_that_swallows_errors_is_caught(tmp_path: Path, clock: Any) -> None:
    class SwallowingDisk(Disk):
        """The seeded mistake: a failed write is taken for a written one."""

        def write(self, handle: int, data: bytes) -> None:
            pass

    state = tmp_path / "state"
    acknowledged, kept = await work(state, SwallowingDisk(), clock)
    assert acknowledged[STREAM]
    with pytest.raises((AssertionError, TraceError)):
        await check(state, acknowledged, kept, clock)


async def test_after_one_failed_sync_nothing_is_acknowledged_and_no_sync_is_tried_again(
    state_dir: Path, clock: Any
) -> None:
    class SyncFailsOnce(Disk):
        syncs = 0
        writes = 0

        def sync(self, handle: int) -> None:
            self.syncs += 1
            if self.syncs == 4:
                raise OSError(errno.EIO, "Input/output error")

        def write_some(self, handle: int, data: memoryview) -> int:
            self.writes += 1
            return super().write_some(handle, data)

    disk = SyncFailsOnce()
    trace = FileTrace(state_dir, clock=clock, disk=disk)
    results = await asyncio.gather(
        *(trace.append(STREAM, [NoticeEvent(code=str(number))]) for number in range(10)), return_exceptions=True
    )
    assert [isinstance(result, TracePoisoned) for result in results] == [False] * 3 + [True] * 7
    assert disk.syncs == 4
    writes = disk.writes
    with pytest.raises(TracePoisoned):
        await trace.append(STREAM, [AgentEndEvent()])
    assert (disk.syncs, disk.writes) == (4, writes)
    assert [event.seq async for event in trace.read(STREAM)] == [0, 1, 2]
    await trace.aclose()


async def test_a_full_disk_is_named_stops_the_stream_and_is_left_behind_once_there_is_space(
    state_dir: Path, clock: Any
) -> None:
    class FillingDisk(Disk):
        left = 1000

        def write_some(self, handle: int, data: memoryview) -> int:
            if self.left == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            taken = super().write_some(handle, data[: self.left])
            self.left -= taken
            return taken

    disk = FillingDisk()
    acknowledged = 0
    trace = FileTrace(state_dir, clock=clock, disk=disk)
    with pytest.raises(TracePoisoned, match="the disk is full"):
        while True:
            await trace.append(STREAM, [NoticeEvent(code=str(acknowledged))])
            acknowledged += 1
    assert acknowledged > 0
    assert [event.seq async for event in trace.read(STREAM)] == list(range(acknowledged))
    report = verify(trace.path(STREAM))
    assert (report.status, report.events) == ("damaged", acknowledged)
    await trace.aclose()

    disk.left = 10_000
    async with FileTrace(state_dir, clock=clock, disk=disk) as resumed:
        assert await resumed.reopen(STREAM) == acknowledged - 1
        await resumed.append(STREAM, [AgentEndEvent()])
    assert verify(trace.path(STREAM)).status == "sealed"
