"""Row 1: SIGKILL at random moments during append. A real process, killed by the system.

A nursery process imports Remora once and forks a writer for every kill; the writer tells each acknowledged event on a
pipe, and the test looks whether it is in the stream.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remora.events import NoticeEvent
from remora.trace import FileTrace, read_events, verify

STREAMS = ("traces/A", "traces/B", "runs/C")
WRITER = '''
import asyncio, json, os, sys, time
from datetime import UTC, datetime
from pathlib import Path
from remora.events import NoticeEvent
from remora.trace import Disk, FileTrace

class Clock:
    def now(self): return datetime.now(UTC)

class SlowDisk(Disk):
    """Takes few bytes at once, and a while for each part, so that a kill often finds a line half written."""
    def write_some(self, handle, data):
        if len(data) > 200:
            time.sleep(0.0001)
        return super().write_some(handle, data[:200])

def tell(**what): os.write(1, json.dumps(what).encode() + b"\\n")

async def write(state, life, early):
    trace = FileTrace(Path(state), clock=Clock(), disk=SlowDisk())
    async def fill(stream):
        for number in range(100_000):
            drafts = [NoticeEvent(code=f"{life}.{number}.{part}", message="x" * 700) for part in range(number % 3 + 1)]
            if early:
                tell(stream=stream, codes=[draft.code for draft in drafts])
            await trace.append(stream, drafts)
            if not early:
                tell(stream=stream, codes=[draft.code for draft in drafts])
    await asyncio.gather(*(fill(stream) for stream in sys.argv[3:]))

for life, _ in enumerate(sys.stdin):
    pid = os.fork()
    if pid == 0:
        tell(pid=os.getpid())
        asyncio.run(write(sys.argv[1], life, sys.argv[2] == "early"))
        os._exit(0)
    os.waitpid(pid, 0)
    tell(dead=pid)
'''


class Nursery:
    """Starts writers that are killed after a while."""

    def __init__(self, state_dir: Path, mode: str) -> None:
        command = [sys.executable, "-c", WRITER, str(state_dir), mode, *STREAMS]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def live_and_die(self, acknowledgements: int, grace_s: float) -> Iterator[dict[str, Any]]:
        """Everything that one writer acknowledged until it was killed."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        pid = self._hear()["pid"]
        for _ in range(acknowledgements):
            yield self._hear()
        end = time.perf_counter() + grace_s
        while time.perf_counter() < end:  # a moment that no timer of the system rounds
            pass
        os.kill(pid, signal.SIGKILL)
        while "dead" not in (message := self._hear()):
            yield message

    def _hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            byte = self.process.stdout.read(1)
            assert byte, "the nursery ended"
            line += byte
        return json.loads(line)  # type: ignore[no-any-return]

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait(timeout=30)


@pytest.fixture
def nursery(state_dir: Path) -> Iterator[Callable[[str], Nursery]]:
    started: list[Nursery] = []

    def start(mode: str) -> Nursery:
        started.append(Nursery(state_dir, mode))
        return started[-1]

    yield start
    for each in started:
        each.close()


class Checker:
    """Holds what was acknowledged against what is in the streams."""

    def __init__(self, state_dir: Path, clock: Any) -> None:
        self.state_dir = state_dir
        self.clock = clock
        self.acknowledged: dict[str, set[str]] = {stream: set() for stream in STREAMS}
        self.lost = self.twice = self.damaged = self.torn = 0
        self.slowest = 0.0

    def hear(self, message: dict[str, Any]) -> None:
        self.acknowledged[message["stream"]].update(message["codes"])

    async def look(self) -> None:
        """Reopens every stream as a resume would, then reads it."""
        before = time.perf_counter()
        async with FileTrace(self.state_dir, clock=self.clock) as trace:
            for stream in STREAMS:
                if trace.path(stream).exists():
                    await trace.reopen(stream)
        self.slowest = max(self.slowest, time.perf_counter() - before)
        for stream in STREAMS:
            self._compare(stream, trace.path(stream))

    def _compare(self, stream: str, path: Path) -> None:
        codes = [e.code for e in read_events(path) if isinstance(e, NoticeEvent)] if path.exists() else []
        self.lost += len(self.acknowledged[stream] - set(codes))
        self.twice += len(codes) - len(set(codes))
        self.damaged += path.exists() and verify(path).status != "unsealed"
        self.torn += path.with_suffix(".torn").exists()
        path.unlink(missing_ok=True)  # the next writer begins anew, or the test would grow with its square
        path.with_suffix(".torn").unlink(missing_ok=True)
        self.acknowledged[stream].clear()


async def kill(times: int, writer: Nursery, checker: Checker, chance: random.Random) -> None:
    for _ in range(times):
        for _life in range(chance.choice((1, 1, 2))):  # some writers go on where another was killed
            for message in writer.live_and_die(chance.randrange(12), chance.random() * 0.003):
                checker.hear(message)
        await checker.look()


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.faults)])
async def test_a_killed_writer_loses_nothing_it_acknowledged(
    nursery: Callable[[str], Nursery],
    state_dir: Path,
    clock: Any,
    times: int,
    record_property: Callable[[str, object], None],
) -> None:
    checker = Checker(state_dir, clock)
    await kill(times, nursery("right"), checker, random.Random(times))
    found = f"{checker.lost} lost, {checker.twice} twice, {checker.damaged} damaged"
    record_property("row 1", f"{times} kills: {found}, {checker.torn} torn; slowest reopen {checker.slowest:.3f} s")
    assert (checker.lost, checker.twice, checker.damaged) == (0, 0, 0)
    assert checker.torn > 0, "no kill ever found a half-written line: the test tests nothing"


async def test_a_writer_that_acknowledges_too_early_is_caught(
    nursery: Callable[[str], Nursery], state_dir: Path, clock: Any
) -> None:
    checker = Checker(state_dir, clock)
    writer, chance = nursery("early"), random.Random(7)
    for _ in range(100):
        await kill(1, writer, checker, chance)
        if checker.lost:
            return
    pytest.fail("the seeded mistake was not seen")
