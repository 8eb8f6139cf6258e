"""Durable events a second from many writers into Postgres, and into files beside it.

`streams` writers share one process and one connection, as the agents of `remora analyze` do. `processes` writers have a
process and a connection each, as workers on many machines do. Each append waits for its acknowledgement. A batch of one
event is the hardest case; an agent's turn appends one to three at a time.

Beside the rate, each row has the CPU time of an event, of the writers and of the server: others who use the machine
change it less.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from remora.app import SystemClock
from remora.events import ToolResultEvent, new_id
from remora.trace import FileTrace, PostgresTrace

RAW = {"rows": ["x" * 60] * 34}
"""Makes a line of about 2.4 KB, as in a real run."""


@dataclass(frozen=True)
class Taken:
    """What one process of writers took."""

    events: int
    wall: float
    cpu: float


@dataclass(frozen=True)
class Load:
    """How many writers append how many events, and how many at a time."""

    writers: int
    events: int
    """Of each writer."""
    batch: int


def measure(url: str, load: Load, kinds: Sequence[str], server: int | None = None) -> list[dict[str, Any]]:
    """One row for each way to write. `server` is the process of the database, if it is on this machine."""
    ways: dict[str, Callable[[str], Sequence[Taken]]] = {
        "streams": lambda where: [_run(where, load)],
        "processes": lambda where: _processes(where, load),
    }
    with tempfile.TemporaryDirectory() as folder:
        return [
            row
            for kind in kinds
            for row in (
                _row("postgres", kind, load, partial(ways[kind], url), server),
                _row("files", kind, load, partial(ways[kind], folder)),
            )
        ]


def _row(
    store: str, kind: str, load: Load, write: Callable[[], Sequence[Taken]], server: int | None = None
) -> dict[str, Any]:
    before = cpu_below(server) if server else 0.0
    taken = write()
    events = sum(each.events for each in taken)
    row = {"store": store, "writers": load.writers, "as": kind, "batch": load.batch, "events": events}
    row |= {"events_s": round(sum(each.events / each.wall for each in taken))}
    row |= {"writer_us": round(1e6 * sum(each.cpu for each in taken) / events)}
    return row | ({"server_us": round(1e6 * (cpu_below(server) - before) / events)} if server else {})


def cpu_below(pid: int) -> float:
    """Seconds of CPU of a process and of all that it started, those that have ended included."""
    total = 0.0
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if not folder.name.isdigit():
                continue
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if pid in (int(folder.name), int(fields[1])):
                ticks = fields[11:15] if int(folder.name) == pid else fields[11:13]
                total += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return total


def _processes(where: str, load: Load) -> list[Taken]:
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(load.writers), context.Queue()
    children = [context.Process(target=_child, args=(barrier, queue, where, load)) for _ in range(load.writers)]
    for child in children:
        child.start()
    found = [queue.get(timeout=3600) for _ in children]
    for child in children:
        child.join()
    return found


def _child(barrier: Any, queue: Any, where: str, load: Load) -> None:
    queue.put(_run(where, replace(load, writers=1), barrier))


def _run(where: str, load: Load, barrier: Any = None) -> Taken:
    return asyncio.run(_write(where, load, barrier))


async def _write(where: str, load: Load, barrier: Any) -> Taken:
    """Append; return the acknowledged events and what they took."""
    clock = SystemClock()
    writer = PostgresTrace(where, clock=clock) if "://" in where else FileTrace(Path(where), clock=clock)
    draft = ToolResultEvent(call_id="c1", tool="run_linter", outcome="success", raw=RAW)
    async with writer as trace:
        names = [f"traces/{new_id(clock.now())}" for _ in range(load.writers)]
        await asyncio.gather(*(trace.append(name, [draft]) for name in names))
        if barrier is not None:
            await asyncio.to_thread(barrier.wait)
        start, cpu = time.perf_counter(), time.process_time()

        async def one(name: str) -> int:
            done = 0
            while done < load.events:
                done += len(await trace.append(name, [draft] * load.batch))
            return done

        counts = await asyncio.gather(*map(one, names))
        return Taken(sum(counts), time.perf_counter() - start, time.process_time() - cpu)
