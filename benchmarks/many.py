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
from pathlib import Path
from typing import Any

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
    new_id,
)

STREAMS, RUNS = 10_000, 300
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
COMMANDS = {
    "ls": ("trace", "ls"),
    "ls_all": ("trace", "ls", "--all"),
    "search": ("trace", "search", "linter"),
    "diff": ("diff",),
    "undo": ("undo",),
}


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """One row: every command on the same folder, each beside a plain look at all of its files."""
    return [_case(case, rounds) for case in cases]


def _case(case: Case, rounds: int) -> dict[str, Any]:
    streams, runs = (STREAMS, RUNS) if rounds > 1 else (60, 6)
    with folder() as project:
        (project / "remora.yaml").touch()
        state = project / ".agentfs"
        row: dict[str, Any] = {"streams": streams, "runs": runs, "events": write_store(state, case, streams, runs)}
        row["ls_cold_s"] = round(_seconds(("trace", "ls"), project), 2)
        for name, command in COMMANDS.items():
            pairs = [(_seconds(command, project), look(state)) for _ in range(rounds)]
            say(f"many: {' '.join(command)}")
            row[f"{name}_s"] = round(statistics.median(took for took, _ in pairs), 2)
        row["help_s"] = round(statistics.median(_seconds(("--version",), project) for _ in range(rounds)), 2)
        row["look_s"] = round(statistics.median(look(state) for _ in range(rounds)), 3)
        row["ls_to_look"] = round((row["ls_s"] - row["help_s"]) / row["look_s"], 1)
        return row


def look(state: Path) -> float:
    """Seconds that a plain `os.scandir` with a `stat` of each stream takes."""
    began = time.perf_counter()
    for kind in ("traces", "runs"):
        with os.scandir(state / kind) as entries:
            for entry in entries:
                entry.stat()
    return time.perf_counter() - began


def _seconds(command: Sequence[str], project: Path) -> float:
    began = time.perf_counter()
    argv = [sys.executable, "-m", "remora", *command]
    done = subprocess.run(argv, cwd=project, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True)
    took = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.decode()}")
    return took


def write_store(state: Path, case: Case, streams: int, runs: int) -> int:
    """How many events are in the folder now: runs with sealed agents, none of which changed a file."""
    say(f"many: writing {streams:,} streams of {runs} runs")
    records = asyncio.run(_records(state.parent / "one", case))
    for kind in ("traces", "runs"):
        (state / kind).mkdir(parents=True)
    each, events = streams // runs, 0
    for run in range(runs):
        began = BEGAN + timedelta(hours=run)
        agents = [new_id(began + timedelta(seconds=1 + number)) for number in range(each)]
        run_id = new_id(began)
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
