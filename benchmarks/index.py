"""The index over a large store: rebuilding it, and finding one turn by its key."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from pathlib import Path
from typing import Any

import orjson

from benchmarks.contenders import Kept, floor_turns
from benchmarks.loop import record_tape
from benchmarks.measure import folder, rate, say
from benchmarks.workload import SEED, Case
from remora.events import digest
from remora.trace import TraceIndex, TraceStore, trace_key

STREAMS = 200
GETS = 300


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """Two rows for each case: a tenth of the store, also with text, and all of it."""
    streams = STREAMS if rounds > 1 else 10
    return [row for case in cases for row in asyncio.run(_case(case, streams))]


async def _case(case: Case, streams: int) -> list[dict[str, Any]]:
    with folder() as path:
        await floor_turns(path / "one", await record_tape(case))
        records = [orjson.loads(line) for line in (path / "one" / "traces" / "a.jsonl").read_bytes().splitlines()]
        store = path / "store"
        (store / "traces").mkdir(parents=True)
        few = streams // 10
        _write_streams(store, records, range(few))
        small = await _row(store, case, few, len(records), text=True)
        _write_streams(store, records, range(few, streams))
        return [small, await _row(store, case, streams, len(records), text=False)]


def _write_streams(store: Path, records: list[dict[str, Any]], numbers: range) -> None:
    """The same run again and again, each as a stream of its own with a chain of its own."""
    say(f"index: writing {len(numbers) * len(records):,} events")
    for number in numbers:
        prev, lines = None, []
        for record in records:
            own = {"run_id": f"run{number % 10}", "agent_id": f"a{number:04}", "node_id": _node(number), "prev": prev}
            lines.append(orjson.dumps(record | own))
            prev = digest(lines[-1])
        (store / "traces" / f"a{number:04}.jsonl").write_bytes(b"\n".join([*lines, b""]))


async def _row(store: Path, case: Case, streams: int, events: int, *, text: bool) -> dict[str, Any]:
    row = {"streams": streams, "events": streams * events}
    if text:
        row |= _rebuilt(store, row["events"], text=True)
    row |= _rebuilt(store, row["events"], text=False)
    return row | await _gets(store, case, streams)


def _rebuilt(store: Path, events: int, *, text: bool) -> dict[str, Any]:
    name = "rebuild_text" if text else "rebuild"
    say(f"index: {name} of {events:,} events")
    with TraceIndex(store, text=text) as index:
        cpu, wall = rate(index.rebuild, 1)
    size = sum(file.stat().st_size for file in store.glob("index.db*"))
    return {
        f"{name}_events_per_s": round(events / wall),
        f"{name}_events_per_s_cpu": round(events / cpu),
        f"{name}_mb": round(size / 1e6, 1),
    }


async def _gets(store: Path, case: Case, streams: int) -> dict[str, Any]:
    """Turns by their keys, picked by chance, through the store as a user asks it."""
    kept, chance, took = Kept(store, free=True), random.Random(SEED), []
    with TraceIndex(store, text=False) as index:
        traces = TraceStore(kept.writer, kept.blobs, index)
        for _ in range(GETS):
            number = chance.randrange(streams)
            key = trace_key(f"run{number % 10}", "lint", _node(number), chance.randint(1, case.turns))
            began = time.perf_counter()
            (entry,) = await traces.get(key)
            took.append(time.perf_counter() - began)
            assert entry.raw_output is not None
    await kept.close()
    warm = sorted(took[GETS // 10 :])
    return {
        "get_ms": round(1000 * statistics.median(warm), 3),
        "get_ms_p95": round(1000 * warm[int(0.95 * len(warm))], 3),
    }


def _node(number: int) -> str:
    return f"src/shop/part_{number}.py:load"
