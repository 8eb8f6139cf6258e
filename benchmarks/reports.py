"""A report over many runs: what `remora trace report` takes, beside reading and parsing the same bytes.

    python -m benchmarks.reports [RUNS]

Prints one line of JSON for each way to report. Needs only the base install.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from benchmarks.many import write_store
from benchmarks.measure import folder
from benchmarks.workload import Case
from remora import analysis
from remora.app import Project
from remora.config import Config
from remora.trace import Filter

CASE = Case(30, 4.0)
RUNS = 1000
EVERYTHING = Filter(since="2020-01-01")


def main(runs: int = RUNS) -> None:
    """Measure on a folder with one agent of 30 turns in each run."""
    with folder() as root:
        events = write_store(root / ".agentfs", CASE, runs, runs)
        print(json.dumps({"runs": runs, "turns": CASE.turns, "events": events}))
        for name, work in _ways(root).items():
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            took = {"wall_s": round(time.perf_counter() - wall, 2), "cpu_s": round(time.process_time() - cpu, 2)}
            print(json.dumps({"what": name} | took))


def _ways(root: Path) -> dict[str, Callable[[], Any]]:
    project = Project(root, root / ".agentfs", Config())
    return {
        "index": lambda: project.library.agents(EVERYTHING),
        "floor: hash and parse every line": lambda: _floor(root / ".agentfs" / "traces"),
        "report without lost words": lambda: asyncio.run(project.streams.report((), EVERYTHING, losses=False)),
        "report": lambda: asyncio.run(project.streams.report((), EVERYTHING)),
        "report as HTML": lambda: analysis.html(asyncio.run(project.streams.report((), EVERYTHING))),
    }


def _floor(traces: Path) -> None:
    for path in traces.iterdir():
        for line in path.read_bytes().splitlines():
            hashlib.sha256(line).hexdigest()
            orjson.loads(line)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
