"""Durable events a second from many writers into Postgres, and into files beside it.

`streams` writers share one process and one connection, as the agents of `remora analyze` do. `processes` writers have a
process and a connection each, as workers on many machines do. Each append waits for its acknowledgement. A batch of one
event is the hardest case; an agent's turn appends one to three at a time.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from remora.app import SystemClock
from remora.events import ToolResultEvent, new_id
from remora.trace import FileTrace, PostgresTrace

RAW = {"rows": ["x" * 60] * 34}
"""Makes a line of about 2.4 KB, as in a real run."""


def measure(url: str, *, writers: int, seconds: float, batch: int) -> list[dict[str, Any]]:
    """One row for each way to write."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            _row("postgres", "streams", writers, batch, [_run(url, writers, seconds, batch)], seconds),
            _row("postgres", "processes", writers, batch, _processes(url, writers, seconds, batch), seconds),
            _row("files", "streams", writers, batch, [_run(folder, writers, seconds, batch)], seconds),
            _row("files", "processes", writers, batch, _processes(folder, writers, seconds, batch), seconds),
        ]


def _row(
    store: str, kind: str, writers: int, batch: int, counts: Sequence[tuple[int, float]], seconds: float
) -> dict[str, Any]:
    rate = sum(count / took for count, took in counts)
    return {"store": store, "writers": writers, "as": kind, "batch": batch, "seconds": seconds, "events_s": round(rate)}


def _processes(where: str, writers: int, seconds: float, batch: int) -> list[tuple[int, float]]:
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(writers), context.Queue()
    children = [context.Process(target=_child, args=(barrier, queue, where, seconds, batch)) for _ in range(writers)]
    for child in children:
        child.start()
    found = [queue.get(timeout=seconds + 120) for _ in children]
    for child in children:
        child.join()
    return found


def _child(barrier: Any, queue: Any, where: str, seconds: float, batch: int) -> None:
    queue.put(_run(where, 1, seconds, batch, barrier))


def _run(where: str, streams: int, seconds: float, batch: int, barrier: Any = None) -> tuple[int, float]:
    return asyncio.run(_write(where, streams, seconds, batch, barrier))


async def _write(where: str, streams: int, seconds: float, batch: int, barrier: Any) -> tuple[int, float]:
    """Append for some seconds; return acknowledged events and the time they took."""
    clock = SystemClock()
    writer = PostgresTrace(where, clock=clock) if "://" in where else FileTrace(Path(where), clock=clock)
    draft = ToolResultEvent(call_id="c1", tool="run_linter", outcome="success", raw=RAW)
    async with writer as trace:
        names = [f"traces/{new_id(clock.now())}" for _ in range(streams)]
        await asyncio.gather(*(trace.append(name, [draft]) for name in names))
        if barrier is not None:
            await asyncio.to_thread(barrier.wait)
        start = time.perf_counter()

        async def one(name: str) -> int:
            done = 0
            while time.perf_counter() - start < seconds:
                done += len(await trace.append(name, [draft] * batch))
            return done

        counts = await asyncio.gather(*map(one, names))
        return sum(counts), time.perf_counter() - start
