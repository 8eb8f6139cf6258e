"""Many agents that each changed another function of one file: diff, accept, undo, beside `git merge-file`, `patch`."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

from benchmarks.measure import folder, say
from remora.app import Project
from remora.config import Config
from remora.events import (
    AgentEndEvent,
    AgentFinishedEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    FileChange,
    ModelResponseEvent,
    RunStartEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
)
from remora.trace import FileBlobs, FileTrace

FILE = "src/large.py"
TURNS = 3
AIM_S = 10
"""At most this many seconds for 1,000 changes."""


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return monotonic()


def function(number: int, *, documented: bool) -> str:
    """One function of the file, as it is before an agent or after."""
    text = f'    """Return the value of step {number}."""\n' if documented else ""
    body = f"    if value > {number}:\n        return value\n    return 0\n"
    return f"def step_{number}(value: int) -> int:\n{text}{body}"


def source(agents: int, documented: Callable[[int], bool]) -> bytes:
    """The file with the functions that the agents are at."""
    return "\n\n".join(function(number, documented=documented(number)) for number in range(agents)).encode()


def measure(agents: int, *, baselines: bool = True) -> dict[str, Any]:
    """One row: seconds for so many changes of one file."""
    say(f"accept: {agents:,} changes in one file")
    base, every = source(agents, lambda _: False), source(agents, lambda _: True)
    with folder() as root:
        file = root / FILE
        file.parent.mkdir()
        file.write_bytes(base)
        afters = [source(agents, number.__eq__) for number in range(agents)]
        asyncio.run(_record(root, base, afters))
        row: dict[str, Any] = {"changes": agents, "lines": base.count(b"\n"), "bytes": len(base)}
        row |= _timed("diff", lambda: asyncio.run(_app(root).review.diff()))
        row |= _timed("accept", lambda: asyncio.run(_app(root).review.accept()))
        if file.read_bytes() != every:
            raise AssertionError("not every change was accepted")
        row |= _timed("undo", lambda: asyncio.run(_app(root).review.undo()))
        if file.read_bytes() != base:
            raise AssertionError("an undo must give the old bytes")
    return row | (_baselines(base, afters, every) if baselines else {})


def _app(root: Path) -> Project:
    return Project(root, root / ".agentfs", Config())


def _timed(name: str, work: Callable[[], object]) -> dict[str, float]:
    """Seconds of wall and of CPU, children included."""
    wall, cpu = perf_counter(), os.times()
    work()
    spent = [round(after - before, 2) for before, after in zip(cpu[:4], os.times()[:4], strict=True)]
    return {f"{name}_s": round(perf_counter() - wall, 2), f"{name}_cpu_s": round(sum(spent), 2)}


async def _record(root: Path, base: bytes, afters: list[bytes]) -> None:
    """A run whose agents each took a few turns and changed the file once."""
    state_dir = root / ".agentfs"
    blobs = FileBlobs(state_dir)
    before = await blobs.put(base)
    async with FileTrace(state_dir, clock=Clock(), sync="off") as trace:
        run: list[Any] = [RunStartEvent(run_id="01RUN")]
        for number, after in enumerate(afters):
            ids = {"run_id": "01RUN", "agent_id": f"01A{number:05}", "node_id": f"{FILE}:step_{number}"}
            change = FileChange(path=FILE, before=before, after=await blobs.put(after))
            await trace.append(f"traces/{ids['agent_id']}", _stream(ids, change))
            await trace.close(f"traces/{ids['agent_id']}")
            run += [AgentScheduledEvent(**ids), AgentFinishedEvent(**ids, outcome="success")]
        await trace.append("runs/01RUN", run)


def _stream(ids: dict[str, str], change: FileChange) -> list[Any]:
    events: list[Any] = [AgentStartEvent(goal="Write what is missing", **ids)]
    for turn in range(1, TURNS + 1):
        files = (change,) if turn == TURNS else ()
        events += [
            TurnStartEvent(turn=turn, **ids),
            ModelResponseEvent(text="x" * 400, turn=turn, **ids),
            ToolCallEvent(call_id=f"c{turn}", tool="t", args={"path": FILE}, turn=turn, **ids),
            ToolResultEvent(
                call_id=f"c{turn}", tool="t", outcome="success", raw="y" * 2000, files=files, turn=turn, **ids
            ),
        ]
    return [*events, AgentEndEvent(outcome="success", **ids)]


def _baselines(base: bytes, afters: list[bytes], every: bytes) -> dict[str, float]:
    """The same changes by tools that know no runs: one process for each, no record, no undo, no sync."""
    patches = [_patch(after, base) for after in afters]
    found = _baseline("git_merge_file", ["git", "merge-file", "-q", "now", "base", "other"], base, afters, every)
    return found | _baseline("patch", ["patch", "-s", "now", "other"], base, patches, every)


def _baseline(name: str, command: list[str], base: bytes, others: list[bytes], every: bytes) -> dict[str, float]:
    if shutil.which(command[0]) is None:
        return {}
    with folder() as here:
        (here / "base").write_bytes(base)
        (here / "now").write_bytes(base)
        found = _timed(name, lambda: _one_after_the_other(here, others, command))
        if (here / "now").read_bytes() != every:
            raise AssertionError(f"`{command[0]}` made something else")
    return found


def _one_after_the_other(here: Path, others: list[bytes], command: list[str]) -> None:
    for other in others:
        (here / "other").write_bytes(other)
        subprocess.run(command, cwd=here, check=True)


def _patch(after: bytes, base: bytes) -> bytes:
    from remora.workspaces import Change, unified

    return unified([Change("now", base, after)]).encode()
