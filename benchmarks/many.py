"""A state folder of many small streams: what the commands that look for some of them take."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from benchmarks.contenders import floor_turns
from benchmarks.loop import record_tape
from benchmarks.measure import ROOT, folder, say
from benchmarks.workload import Case
from remora.events import (
    FORMAT,
    AgentEndEvent,
    AgentFinishedEvent,
    AgentScheduledEvent,
    Event,
    RunEndEvent,
    RunStartEvent,
    digest,
    encode,
    ids_behind,
    new_id,
)
from remora.trace import make_own

STREAMS, RUNS = 10_000, 300
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
START = ("config",)
"""A command that reads no stream: what every one takes before it does anything."""
COMMANDS = (
    ("trace", "ls"),
    ("trace", "ls", "--all"),
    ("trace", "ls", "--json"),
    ("trace", "search", "linter"),
    ("diff",),
    ("undo",),
)


class Took(NamedTuple):
    """What one process took, in seconds."""

    cpu: float
    wall: float


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """One row for each command on the same folder, beside a plain look at all of its files."""
    return [row for case in cases for row in _case(case, rounds)]


def _case(case: Case, rounds: int) -> list[dict[str, Any]]:
    streams, runs, commands = (STREAMS, RUNS, COMMANDS) if rounds > 1 else (60, 6, COMMANDS[:1])
    with folder() as project:
        (project / "remora.yaml").touch()
        state = project / ".agentfs"
        size = {"streams": streams, "runs": runs, "events": write_store(state, case, streams, runs)}
        rows = [_row(("trace", "ls"), "none", project, 1), *(_row(each, "there", project, rounds) for each in commands)]
        return [size | row for row in rows]


def _row(command: Sequence[str], index: str, project: Path, rounds: int) -> dict[str, Any]:
    """The medians of some rounds, in each of which the command runs beside its start alone and beside the look."""
    say(f"many: remora {' '.join(command)}, index {index}")
    took = [(_run(command, project), _run(START, project), look(project / ".agentfs")) for _ in range(rounds)]
    beyond = statistics.median((own.cpu - start.cpu) / plain.cpu for own, start, plain in took)
    return {
        "command": f"`remora {' '.join(command)}`",
        "index": index,
        "cpu_s": round(statistics.median(own.cpu for own, _, _ in took), 2),
        "wall_s": round(statistics.median(own.wall for own, _, _ in took), 2),
        "start_cpu_s": round(statistics.median(start.cpu for _, start, _ in took), 2),
        "look_cpu_s": round(statistics.median(plain.cpu for _, _, plain in took), 3),
        "to_look": round(beyond, 1),
    }


def look(state: Path) -> Took:
    """What a plain `os.scandir` with a `stat` of each stream takes."""
    cpu, wall = time.process_time(), time.perf_counter()
    for kind in ("traces", "runs"):
        with os.scandir(state / kind) as entries:
            for entry in entries:
                entry.stat()
    return Took(time.process_time() - cpu, time.perf_counter() - wall)


def _run(command: Sequence[str], project: Path) -> Took:
    argv, env = [sys.executable, "-m", "remora", *command], os.environ | {"PYTHONPATH": str(ROOT / "src")}
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(argv, cwd=project, env=env, capture_output=True, check=False)
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.decode()}")
    ours = after.children_user - before.children_user + after.children_system - before.children_system
    return Took(ours, wall)


def write_store(state: Path, case: Case, streams: int, runs: int) -> int:
    """How many events are in the folder now: runs with sealed agents, none of which changed a file."""
    say(f"many: writing {streams:,} streams of {runs} runs")
    records = asyncio.run(_records(state.parent / "one", case))
    make_own(state)
    for kind in ("traces", "runs"):
        (state / kind).mkdir(parents=True)
    events = 0
    for run in range(runs):
        run_id = new_id(BEGAN + timedelta(hours=run))
        agents = list(islice(ids_behind(run_id), len(range(run, streams, runs))))
        for number, agent_id in enumerate(agents):
            own = {"run_id": run_id, "agent_id": agent_id, "node_id": f"src/shop/part_{number}.py:load"}
            events += _write(state / "traces" / f"{agent_id}.jsonl", [record | own for record in records])
        events += _write(state / "runs" / f"{run_id}.jsonl", _run_records(run_id, agents))
    return events


async def _records(path: Path, case: Case) -> list[dict[str, Any]]:
    """What one agent records, with its end."""
    await floor_turns(path, await record_tape(case))
    lines = (path / "traces" / "a.jsonl").read_bytes().splitlines()
    shutil.rmtree(path)
    found = [orjson.loads(line) for line in lines]
    return [*found, _record(AgentEndEvent(outcome="success", operation="lint", turn=case.turns))]


def _run_records(run_id: str, agents: Sequence[str]) -> list[dict[str, Any]]:
    start = RunStartEvent(format=FORMAT, operations=("lint",), policy="scripted")
    scheduled = [AgentScheduledEvent(agent_id=name, operation="lint", node_id="src/a.py:f") for name in agents]
    finished = [AgentFinishedEvent(agent_id=name, operation="lint", outcome="success", head="") for name in agents]
    events: list[Event] = [start, *scheduled, *finished, RunEndEvent(outcome="finished")]
    return [_record(event) | {"run_id": run_id} for event in events]


def _record(event: Event) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(encode(event))
    return found


def _write(path: Path, records: Sequence[dict[str, Any]]) -> int:
    """The records as a stream with a chain of its own."""
    prev, lines = None, []
    for seq, record in enumerate(records):
        lines.append(orjson.dumps(record | {"seq": seq, "ts": "2026-01-01T00:00:00.000000Z", "prev": prev}))
        prev = digest(lines[-1])
    path.write_bytes(b"\n".join([*lines, b""]))
    return len(lines)
