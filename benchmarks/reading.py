"""How fast a stream is proven (`verify`) and read back as typed events."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import orjson

from benchmarks.contenders import floor_turns
from benchmarks.loop import record_tape
from benchmarks.measure import folder, rate, say
from benchmarks.workload import Case
from remora.trace import read_events, verify

PASSES = 9


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """One row for each size of output."""
    return [asyncio.run(_case(case, PASSES if rounds > 1 else 3)) for case in cases]


async def _case(case: Case, passes: int) -> dict[str, Any]:
    say(f"reading: {case}")
    tape = await record_tape(case)
    with folder() as path:
        await floor_turns(path, tape)
        return {"turns": case.turns, "output_kb": case.kb} | _rates(path / "traces" / "a.jsonl", passes)


def _rates(stream: Path, passes: int) -> dict[str, Any]:
    report = verify(stream)
    assert report.status == "unsealed"
    megabytes, events = report.bytes / 1e6, report.events
    proven, proven_wall = rate(lambda: verify(stream), passes)
    hashed, _ = rate(lambda: _hash_lines(stream), passes)
    read, _ = rate(lambda: sum(1 for _ in read_events(stream)), passes)
    loaded, _ = rate(lambda: _load_lines(stream), passes)
    return {
        "stream_mb": round(megabytes, 1),
        "events": events,
        "verify_mb_per_s": round(megabytes / proven),
        "verify_mb_per_s_wall": round(megabytes / proven_wall),
        "sha256_mb_per_s": round(megabytes / hashed),
        "read_events_per_s": round(events / read),
        "orjson_events_per_s": round(events / loaded),
    }


def _hash_lines(stream: Path) -> None:
    with stream.open("rb") as file:
        for line in file:
            hashlib.sha256(line).hexdigest()


def _load_lines(stream: Path) -> None:
    with stream.open("rb") as file:
        for line in file:
            orjson.loads(line)
