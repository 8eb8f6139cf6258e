"""Agents on 1, 2, 4 and 8 nodes of a Ray cluster on this machine, with tracks in Postgres.

The agents mostly wait, as for a model on another machine, so that eight nodes fit on few cores. The figures are agents
and events a second, the CPU of an agent in the worker and in the engine beside it, and the time until an agent's
place on a worker is free again, beside the time that the agent itself takes: the difference is the engine's. The first
agent starts when all workers are ready: how long that took is a figure of its own.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import sub
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.fleet.appends import cpu_below
from benchmarks.measure import ROOT, say
from remora.app import Project, make_store, open_project
from remora.engines import Workers

AT_ONCE = 8
TURNS = 5
"""Waits of each agent."""


@dataclass(frozen=True)
class Case:
    """So many nodes, 0 for the engine of one process without Ray, with agents that wait so long."""

    nodes: int
    wait_s: float

    @classmethod
    def parse(cls, text: str, wait_s: float) -> Case:
        """`8`, or `8x30` for agents that wait 30 s."""
        nodes, _, own = text.partition("x")
        return cls(int(nodes), float(own) if own else wait_s)


def measure(url: str, server: int | None, cases: Sequence[Case], *, rounds: int) -> list[dict[str, Any]]:
    """One row for each case."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"REMORA_CONFIG_DIR": f"{folder}/own", "REMORA_CACHE_DIR": f"{folder}/cache"}
        return [_row(url, server, case, rounds, Path(folder) / str(place)) for place, case in enumerate(cases)]


def _row(url: str, server: int | None, case: Case, rounds: int, folder: Path) -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "tests"))
    from ray_cluster import local_cluster, make_project

    nodes = case.nodes
    say(f"fleet: {nodes or 'no'} nodes, {AT_ONCE} agents of {case.wait_s:g} s at once on each")
    agents, known = max(nodes, 1) * AT_ONCE * rounds, {"nodes": nodes, "wait_s": case.wait_s}
    (folder / "head").mkdir(parents=True)
    make = partial(
        make_project, folder / "project", folder / "effects", agents=agents, wait_s=case.wait_s / (TURNS - 1)
    )
    store = f"{url}?schema=nodes_{int(time.time() * 1000)}"
    make_store(store)
    settings = {"server.server": "scripted", "runner.max_concurrent": AT_ONCE}
    if nodes == 0:
        make()
        return known | _run(open_project(folder / "project", settings, state_dir=store), server, [], rounds)
    with local_cluster(nodes, folder / "head") as cluster:
        make()
        pids = [node.all_processes["raylet"][0].process.pid for node in cluster.nodes]
        project = open_project(folder / "project", settings | {"engine.name": "ray"}, state_dir=store)
        with wait_for_all(nodes) as ready:
            row = _run(project, server, pids, rounds)
        return known | {"start_s": round(ready[0], 1)} | row


@contextmanager
def wait_for_all(nodes: int) -> Iterator[list[float]]:
    """Runs begin when so many workers are ready. The list gets the seconds until then."""
    plain, ready, began = Workers.wait_for_one, list[float](), time.perf_counter()

    async def wait(self: Workers) -> None:
        await plain(self)
        while len(self.ready) < nodes:
            self.changed.clear()
            await self.changed.wait()
        ready.append(time.perf_counter() - began)

    Workers.wait_for_one = wait  # type: ignore[method-assign]
    try:
        yield ready
    finally:
        Workers.wait_for_one = plain  # type: ignore[method-assign]


def _run(project: Project, server: int | None, raylets: Sequence[int], rounds: int) -> dict[str, Any]:
    plan = project.runs.plan([project.root / "a.py"], ["poster"])

    async def results() -> list[float]:
        return [time.perf_counter() async for _ in project.runs.run(plan)]

    before, database = _own_cpu(), cpu_below(server) if server else 0.0
    workers = sum(map(cpu_below, raylets))
    began = time.perf_counter()
    found = asyncio.run(results())
    agents = project.library.agents()
    starts, ends = ([_seconds(getattr(each, name)) for each in agents] for name in ("started", "ended"))
    took, whole = max(ends) - min(starts), found[-1] - began  # without and with the start of the workers
    events = sum(info.events for info in agents)
    row: dict[str, Any] = {"agents": len(found), "wall_s": round(whole, 2), "agents_s": round(len(found) / took, 2)}
    row |= {"load": round(os.getloadavg()[0], 1)}
    row |= {"events": events, "events_s": round(events / took, 1)}
    row |= {"agent_s": round(median(map(sub, ends, starts)), 3), "turnaround_s": round(took / rounds, 3)}
    row |= {"driver_ms": round(1000 * (_own_cpu() - before) / len(found), 1)}
    row |= {"nodes_ms": round(1000 * (sum(map(cpu_below, raylets)) - workers) / len(found), 1)}
    return row | ({"server_ms": round(1000 * (cpu_below(server) - database) / len(found), 1)} if server else {})


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
