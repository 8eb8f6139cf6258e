from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from remora.app import SystemClock
from remora.context.contracts import ToolSpec
from remora.events import Call, ToolResultEvent
from remora.inference import EstimatedCounter
from remora.ports import ToolOutput
from remora.sandbox import LocalSpawner
from remora.sandbox._spool import IN_MEMORY, Spool
from remora.trace import MAX_LINE, FileBlobs, FileTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

MB = 1024 * 1024
TALK = "import sys; part = b'x' * 1048576; [sys.stdout.buffer.write(part) for _ in range(int(sys.argv[1]))]"


def test_what_comes_out_is_what_came_in() -> None:
    spool = Spool()
    parts = [bytes([number]) * 700_000 for number in range(9)]
    for part in parts:
        spool.add(part)
    assert spool.is_large
    assert b"".join(spool) == b"".join(spool) == b"".join(parts)
    assert spool.head() == b"".join(parts)[:IN_MEMORY]


def test_a_small_output_is_whole() -> None:
    spool = Spool()
    spool.add(b"abc")
    assert (spool.head(), spool.is_large, list(spool)) == (b"abc", False, [b"abc"])


@pytest.mark.parametrize("megabytes", [64, pytest.param(1024, marks=pytest.mark.faults)])
async def test_a_flood_on_one_line_reaches_the_blobs_and_not_our_memory(
    tmp_path: Path, megabytes: int, record_property: Callable[[str, object], None]
) -> None:
    clock = SystemClock()
    async with FileTrace(tmp_path, clock=clock) as writer:
        track = TwoTrack.of(
            Wiring(
                identity=Identity("01FLOOD"),
                goal="g",
                tools=[ToolSpec(name="talk")],
                system_prompt="",
                prompts=PromptSettings(1000),
                writer=writer,
                blobs=FileBlobs(tmp_path),
                counter=EstimatedCounter(),
                clock=clock,
            )
        )

        async def talk() -> ToolOutput:
            argv = [sys.executable, "-c", TALK, str(megabytes)]
            done = await LocalSpawner().execute(argv, cwd=tmp_path, stdin=b"", limit_s=300)
            return ToolOutput(done.returncode, outputs=(("stdout", done.full["stdout"]),))

        async with track:
            await track.request()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            result = await track.perform(Call(call_id="c", tool="talk"), talk)
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    record_property("row 12", f"{megabytes} MB on one line: memory grew by {grown} MB")
    assert isinstance(result, ToolResultEvent)
    assert result.attachments[0]["ref"]["size"] == megabytes * MB
    assert max(map(len, writer.path("traces/01FLOOD").read_bytes().splitlines())) <= MAX_LINE
    if sys.platform == "linux":
        assert grown <= 64
