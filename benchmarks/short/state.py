"""Where a run stands, asked by a process that has just begun, beside reading and parsing the same lines."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from benchmarks.contenders import floor_turns
from benchmarks.loop import record_tape
from benchmarks.measure import child, folder, say
from benchmarks.short.run import Plan
from benchmarks.workload import Case
from remora.context.projection import project
from remora.trace import read_changes, read_events


def measure(plan: Plan) -> list[dict[str, Any]]:
    """For each case one row for the middle and one for the end."""
    return [row for case in _cases(plan) for row in asyncio.run(_case(case, plan.sizes["passes"]))]


def _cases(plan: Plan) -> Iterator[Case]:
    return (Case(*case) for case in (*plan.sizes["cases"], *plan.sizes["blobs"]))


async def _case(case: Case, passes: int) -> list[dict[str, Any]]:
    say(f"state: {case}")
    with folder() as path:
        await floor_turns(path, await record_tape(case))
        stream = path / "traces" / "a.jsonl"
        return [_row(case, stream, turn, passes) for turn in (case.turns // 2, case.turns)]


def _row(case: Case, stream: Path, turn: int, passes: int) -> dict[str, Any]:
    lines = sum(1 for event in read_events(stream) if event.turn <= turn)
    argv = ("-m", "benchmarks.short.state", str(stream), str(turn), str(lines))
    told = [json.loads(child(*argv)) for _ in range(passes)]
    ours, floor = (statistics.median(row[name] for row in told) for name in ("state_ms", "orjson_ms"))
    return {
        "turns": case.turns,
        "output_kb": case.kb,
        "turn": turn,
        "events": lines,
        "state_ms": round(ours, 2),
        "orjson_ms": round(floor, 2),
        "to_orjson": round(statistics.median(row["state_ms"] / row["orjson_ms"] for row in told), 2),
        "imports_ms": round(statistics.median(row["imports_ms"] for row in told)),
    }


def main(stream: str, turn: str, lines: str) -> None:
    """Print what this fresh process took: CPU, each thing done for the first time."""
    imports = time.process_time()
    floor = _took(lambda: _parse(Path(stream), int(lines)))
    ours = _took(lambda: project(read_changes(Path(stream), to=int(turn))))
    print(json.dumps({"imports_ms": 1000 * imports, "orjson_ms": floor, "state_ms": ours}))


def _took(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return 1000 * (time.process_time() - began)


def _parse(stream: Path, lines: int) -> None:
    with stream.open("rb") as file:
        for line in islice(file, lines):
            orjson.loads(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
