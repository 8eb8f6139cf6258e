"""Row 2: power loss. A kill does not test durability, as the page cache survives it; this does.

The writer's calls are recorded at its own I/O door. For every moment between two calls, states of the disk are made
that a power loss could leave: what was synced is there; what was written but not synced is there in part or not at
all; a name whose directory was not synced is gone, and all below it. Then each is reopened, as a resume would.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from remora.errors import TraceError
from remora.events import AgentEndEvent, NoticeEvent
from remora.trace import Disk, FileBlobs, FileTrace, read_events

TORN_TAIL = b'{"v":1,"seq":'


class RecordingDisk(Disk):
    """Does everything, and writes it down."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.open_files: dict[int, Path] = {}

    def make_dir(self, path: Path) -> None:
        new = not path.exists()
        super().make_dir(path)
        if new:
            self.log.append(("dir", path))

    def open_append(self, path: Path) -> int:
        new = not path.exists()
        handle = super().open_append(path)
        self.open_files[handle] = path
        if new:
            self.log.append(("file", path))
        return handle

    def write_some(self, handle: int, data: memoryview) -> int:
        taken = super().write_some(handle, data)
        self.log.append(("write", self.open_files[handle], bytes(data[:taken])))
        return taken

    def sync(self, handle: int) -> None:
        self.log.append(("sync", self.open_files[handle]))

    def sync_dir(self, path: Path) -> None:
        self.log.append(("sync_dir", path))

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self.log.append(("rename", source, target))

    def truncate(self, handle: int, size: int) -> None:
        super().truncate(handle, size)
        self.log.append(("truncate", self.open_files[handle], size))


class NoSyncDisk(RecordingDisk):
    """The seeded mistake: written is taken for durable."""

    def sync(self, handle: int) -> None:
        pass


class NoDirSyncDisk(RecordingDisk):
    """The seeded mistake: the file is synced, its name is not."""

    def sync_dir(self, path: Path) -> None:
        pass


@dataclass
class Node:
    """A file or a directory: as the running system sees it, and as the disk has it."""

    seen: bytes = b""
    synced: bytes = b""
    names: dict[str, Node] = field(default_factory=dict)
    synced_names: dict[str, Node] = field(default_factory=dict)
    is_dir: bool = False


class Model:
    """The disk after some of the recorded calls."""

    def __init__(self, root: Path, log: list[tuple[Any, ...]]) -> None:
        self.root = root
        self.top = Node(is_dir=True)
        for call, *rest in log:
            getattr(self, f"do_{call}", lambda *_: None)(*rest)

    def find(self, path: Path) -> Node:
        node = self.top
        for part in path.relative_to(self.root).parts:
            node = node.names[part]
        return node

    def do_dir(self, path: Path) -> None:
        self.find(path.parent).names[path.name] = Node(is_dir=True)

    def do_file(self, path: Path) -> None:
        self.find(path.parent).names[path.name] = Node()

    def do_write(self, path: Path, data: bytes) -> None:
        self.find(path).seen += data

    def do_truncate(self, path: Path, size: int) -> None:
        self.find(path).seen = self.find(path).seen[:size]

    def do_sync(self, path: Path) -> None:
        self.find(path).synced = self.find(path).seen

    def do_sync_dir(self, path: Path) -> None:
        node = self.find(path)
        node.synced_names = dict(node.names)

    def do_rename(self, source: Path, target: Path) -> None:
        self.find(target.parent).names[target.name] = self.find(source.parent).names.pop(source.name)

    def left(self, chance: Callable[[], float]) -> dict[Path, bytes | None]:
        """What a power loss leaves, None standing for a directory: the less, the smaller the numbers of `chance`."""
        return dict(self._left(self.top, Path(), chance))

    def _left(self, node: Node, path: Path, chance: Callable[[], float]) -> Iterator[tuple[Path, bytes | None]]:
        yield path, None if node.is_dir else _left_of(node, chance())
        names = node.names if chance() > 0.5 else node.synced_names
        for name, child in names.items():
            yield from self._left(child, path / name, chance)


def _left_of(node: Node, share: float) -> bytes:
    if not node.seen.startswith(node.synced):  # was cut: either both reached the disk, or neither
        return node.seen if share > 0.5 else node.synced
    return node.seen[: len(node.synced) + round(share * (len(node.seen) - len(node.synced)))]


async def work(root: Path, disk: RecordingDisk, clock: Any) -> None:
    """A session that uses every path of the writer. What was acknowledged stands in the log, too."""
    state = root / "project" / ".agentfs"
    for session in range(2):
        blobs = FileBlobs(state, disk=disk)
        async with FileTrace(state, clock=clock, disk=disk) as trace:
            for stream in ("traces/A", f"traces/S{session}", "runs/R"):
                for number in range(2):
                    data = os.urandom(200) if number % 2 else f"{session} {stream} {number} ".encode() * 200
                    disk.log.append(("blob", await blobs.put(data), data))
                    drafts = [NoticeEvent(code=f"{session}.{number}.{part}", message="x" * 99) for part in range(2)]
                    await trace.append(stream, drafts)
                    disk.log.append(("acknowledged", stream, [draft.code for draft in drafts]))
            await trace.append(f"traces/S{session}", [AgentEndEvent()])
        torn = disk.open_append(trace.path("traces/A"))  # as if killed in the middle of a line
        disk.write(torn, TORN_TAIL)
        disk.close(torn)


async def losses(root: Path, log: list[tuple[Any, ...]], clock: Any, scratch: Path) -> tuple[int, list[str]]:
    """How many states were looked at until one had a loss, and what was lost."""
    dice = random.Random(2)
    states = 0
    seen: set[tuple[int, frozenset[tuple[Path, bytes | None]]]] = set()
    for moment in range(len(log) + 1):
        promised = sum(call[0] in ("acknowledged", "blob") for call in log[:moment])
        for chance in (lambda: 0.0, lambda: 1.0, dice.random, dice.random):
            left = Model(root, log[:moment]).left(chance)
            states += 1
            if (promised, frozenset(left.items())) in seen:
                continue
            seen.add((promised, frozenset(left.items())))
            _make(left, scratch)
            lost = await _lost(log[:moment], scratch, clock)
            shutil.rmtree(scratch)
            if lost:
                return states, lost
    return states, []


def _make(left: dict[Path, bytes | None], target: Path) -> None:
    for path, content in left.items():
        if content is None:
            (target / path).mkdir()
        else:
            (target / path).write_bytes(content)


async def _lost(log: list[tuple[Any, ...]], root: Path, clock: Any) -> list[str]:
    state, lost = root / "project" / ".agentfs", []
    blobs = FileBlobs(state)
    acknowledged: dict[str, list[str]] = {}
    for call, *rest in log:
        if call == "acknowledged":
            acknowledged.setdefault(rest[0], []).extend(rest[1])
        if call == "blob" and blobs.path(rest[0]) is None:
            lost.append(f"blob {rest[0]}")
    async with FileTrace(state, clock=clock, sync="off") as trace:
        for stream, codes in acknowledged.items():
            try:
                await trace.reopen(stream)
                there = [event.code for event in read_events(trace.path(stream)) if isinstance(event, NoticeEvent)]
            except TraceError as error:
                there = [error.message]
            if there[: len(codes)] != codes:
                lost.append(f"{stream}: {codes} became {there}")
    return lost


async def run_and_lose_power(disk: RecordingDisk, tmp_path: Path, clock: Any) -> tuple[int, list[str]]:
    (tmp_path / "real" / "project").mkdir(parents=True)
    disk.log = [("dir", tmp_path / "real" / "project"), ("true_sync", None)]
    await work(tmp_path / "real", disk, clock)
    # The project itself was there long before.
    disk.log.insert(1, ("sync_dir", tmp_path / "real"))
    return await losses(tmp_path / "real", disk.log, clock, tmp_path / "scratch")


async def test_nothing_acknowledged_is_lost_with_the_power(
    tmp_path: Path, clock: Any, record_property: Callable[[str, object], None]
) -> None:
    states, lost = await run_and_lose_power(RecordingDisk(), tmp_path, clock)
    record_property("row 2", f"{states} states: {len(lost)} lost")
    assert lost == []
    assert states >= 600


@pytest.mark.parametrize("mistake", [NoSyncDisk, NoDirSyncDisk])
async def test_a_writer_that_does_not_sync_is_caught(tmp_path: Path, clock: Any, mistake: type[RecordingDisk]) -> None:
    _, lost = await run_and_lose_power(mistake(), tmp_path, clock)
    assert lost


STRACED = """
import asyncio, os, sys
from datetime import UTC, datetime
from pathlib import Path
from remora.events import NoticeEvent
from remora.trace import FileTrace
class Clock:
    def now(self): return datetime.now(UTC)
async def main():
    async with FileTrace(Path(sys.argv[1]), clock=Clock()) as trace:
        for number in range(20):
            await trace.append("traces/A", [NoticeEvent(message=f"event {number}")])
            os.write(1, b"acknowledged\\n")
asyncio.run(main())
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="row 2: needs `strace`")
@pytest.mark.skipif(sys.platform != "linux", reason="row 2: needs Linux")
def test_the_system_itself_sees_a_sync_between_each_write_and_its_acknowledgement(
    tmp_path: Path, state_dir: Path, record_property: Callable[[str, object], None]
) -> None:
    log = tmp_path / "strace.log"
    command = ["strace", "-f", "-qq", "-y", "-e", "trace=write,fdatasync", "-o", str(log)]
    ran = subprocess.run([*command, sys.executable, "-c", STRACED, str(state_dir)], capture_output=True, timeout=120)
    if b"ptrace" in ran.stderr:
        pytest.skip("row 2: `strace` may not trace here")
    calls = re.findall(
        r"(write)\(\d+<[^>]*A\.jsonl>|(fdatasync)\(\d+<[^>]*A\.jsonl>|write\(1<.*(acknowledged)", log.read_text()
    )
    order = ["".join(call) for call in calls]
    record_property("row 2 (strace)", f"{order.count('acknowledged')} acknowledgements, each after its sync")
    assert order == ["write", "fdatasync", "acknowledged"] * 20
