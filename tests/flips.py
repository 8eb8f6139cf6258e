"""Row 6: a stream with one bit flipped at a time, and what `verify` and reading make of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from remora.errors import TraceDamaged
from remora.events import (
    AgentEndEvent,
    AgentFinishedEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    NoticeEvent,
    RunEndEvent,
    RunStartEvent,
    WorkspaceRejectedEvent,
)
from remora.ports import Clock
from remora.trace import FileTrace, Library, StreamEmitter, read_events, verify


@dataclass
class Flips:
    """What came of them."""

    tried: int = 0
    missed: int = 0
    misnamed: int = 0
    """Detected, and another `seq` named than the one that was flipped."""
    read_on: int = 0
    """Read to the end as if nothing had happened."""


def flip_bits(path: Path, bits: Iterable[int], *, reading: bool = False) -> Flips:
    """Each of these bits of each byte flipped once. The stream is as it was afterwards."""
    whole, head, flips = path.read_bytes(), verify(path).head, Flips()
    last, bits = whole.rindex(b"\n", 0, -1), tuple(bits)
    with path.open("r+b", buffering=0) as file:
        for place, byte in enumerate(whole):
            seq = whole.count(b"\n", 0, place)
            for bit in bits:
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), place)
                report = verify(path, head=head)
                flips.tried += 1
                flips.missed += report.status != "damaged"
                flips.misnamed += report.status == "damaged" and report.seq != seq
                # No head is known while reading, so nothing vouches for the content of the very last line.
                flips.read_on += reading and place <= last and not _stops(path)
            os.pwrite(file.fileno(), bytes([byte]), place)
    return flips


def flip_bits_of(library: Library, path: Path, bits: Iterable[int], *, step: int = 1) -> Flips:
    """As `flip_bits`, judged by `library` with all that it knows from outside of the stream.

    With `step`, only in every so-manieth byte but for the last line, where no other line can tell.
    """
    whole, flips, bits = path.read_bytes(), Flips(), tuple(bits)
    last = whole.rindex(b"\n", 0, -1)
    with path.open("r+b", buffering=0) as file:
        for place, byte in enumerate(whole):
            if place < last and place % step:
                continue
            seq = whole.count(b"\n", 0, place)
            for bit in bits:
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), place)
                (report,) = [found for found in library.verify(path.stem) if found.file == path]
                flips.tried += 1
                flips.missed += report.status != "damaged"
                flips.misnamed += report.status == "damaged" and report.seq != seq
            os.pwrite(file.fileno(), bytes([byte]), place)
    return flips


async def closed_streams(state_dir: Path, clock: Clock) -> dict[str, Path]:
    """A small stream of every kind below `state_dir`, sealed or closed: by kind."""
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        await trace.append("traces/01AGENT", [AgentStartEvent(format=1, goal="g"), AgentEndEvent()])
        finished = AgentFinishedEvent(agent_id="01AGENT", last_seq=1, head=await trace.head("traces/01AGENT"))
        await trace.append("runs/01RUN", [RunStartEvent(), AgentScheduledEvent(agent_id="01AGENT")])
        await trace.append("runs/01RUN", [finished, RunEndEvent()])
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        await trace.append("runs/01RUN", [WorkspaceRejectedEvent(agent_id="01AGENT", paths=("rejected.py",))])
    own = StreamEmitter(state_dir, "01LOOP", clock=clock)
    unfinished = StreamEmitter(state_dir, "01OPEN", clock=clock)
    async with own, unfinished:
        await own.emit(AgentStartEvent(format=1, goal="own"))
        await own.emit(AgentEndEvent(summary="done"))
        await unfinished.emit(AgentStartEvent(format=1, goal="own"))
        await unfinished.emit(NoticeEvent(message="the last words"))
    run = state_dir / "runs" / "01RUN.jsonl"
    traces = {"agent": "01AGENT", "own loop": "01LOOP", "closed without an end": "01OPEN"}
    return {"run": run} | {kind: state_dir / "traces" / f"{name}.jsonl" for kind, name in traces.items()}


def _stops(path: Path) -> bool:
    try:
        for _ in read_events(path):
            pass
    except TraceDamaged:
        return True
    return False
