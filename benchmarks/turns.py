"""What a turn costs: CPU to record it, wall beside the floor, bytes on the disk."""

from __future__ import annotations

import asyncio
import gc
import statistics
from pathlib import Path
from typing import Any

from benchmarks.contenders import Contender, Floor, Kept, KeptInMemory, Recording, Tape, Track, floor_turns
from benchmarks.loop import Append, Put, outputs, record_tape
from benchmarks.measure import Laps, disk_bytes, folder, race, ratio, say
from benchmarks.workload import Case, size_of
from remora.events import ModelRequestEvent


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """One row for each case. A long run is one round: it has chunks enough to take medians of."""
    return [asyncio.run(_case(case, rounds if case.turns < 1000 else 1)) for case in cases]


async def _case(case: Case, rounds: int) -> dict[str, Any]:
    tape = await record_tape(case)
    found = []
    for number in range(rounds):
        say(f"turns: {case}, round {number + 1} of {rounds}")
        with folder() as path:
            found.append(await _round(case, tape, path))
    medians = {name: _round_off(statistics.median(row[name] for row in found)) for name in found[0]}
    return {"turns": case.turns, "output_kb": case.kb, **medians}


async def _round(case: Case, tape: Tape, path: Path) -> dict[str, float]:
    floor = await floor_turns(path / "dry", tape)
    syncs = sum(count for turn in floor[1:] for _, count in turn) / case.turns
    gc.collect()
    gc.freeze()  # a real run does not hold all of its turns in memory, so collecting must not look at them
    chunk = max(1, case.turns // 20)
    laps = await race(_contenders(path, case, tape, floor), case.turns, chunk)
    flat = statistics.median([await _last_to_first(path / f"flat{number}", case, tape) for number in range(3)])
    gc.unfreeze()
    return _times(laps, chunk) | {"cpu_last_to_first": flat, "syncs": syncs} | _bytes(path / "store", case, tape)


def _contenders(path: Path, case: Case, tape: Tape, floor: list[Any]) -> list[Contender]:
    return [
        Recording("events", tape, Kept(path / "events", free=True, sync="off"), blobs=False),
        Recording("handed over", tape, Kept(path / "handed", free=True), blobs=False),
        Recording("in memory", tape, KeptInMemory(), blobs=False),
        Recording("store", tape, Kept(path / "store", free=True)),
        Recording("durable", tape, Kept(path / "durable", free=False)),
        Track("loop", outputs(case), Kept(path / "loop", free=False)),
        Floor("floor", path / "floor.jsonl", floor, sync=False),
        Floor("durable floor", path / "durable-floor.jsonl", floor, sync=True),
    ]


async def _last_to_first(path: Path, case: Case, tape: Tape) -> float:
    """CPU of the last tenth of the turns against that of the first tenth, in two streams side by side."""
    tenth = max(1, case.turns // 10)
    last = Recording("last", tape, Kept(path / "last", free=True, sync="off"), blobs=False, begin=case.turns - tenth)
    first = Recording("first", tape, Kept(path / "first", free=True, sync="off"), blobs=False)
    chunk = max(1, tenth // 20)
    laps = await race([last, first], tenth, chunk)
    return ratio(laps["last"], laps["first"], "cpu", chunk)


def _times(laps: dict[str, Laps], chunk: int) -> dict[str, float]:
    cpu = {name: 1000 * lap.per_turn("cpu", chunk) for name, lap in laps.items()}
    wall = {name: 1000 * lap.per_turn("wall", chunk) for name, lap in laps.items()}
    return {
        "cpu_ms_events": cpu["events"],
        "cpu_ms_handed_over": cpu["handed over"],
        "cpu_ms_in_memory": cpu["in memory"],
        "cpu_ms_events_and_blobs": cpu["store"],
        "cpu_ms_loop": cpu["loop"],
        "cpu_ms_floor": cpu["floor"],
        "wall_ms_durable": wall["durable"],
        "wall_ms_loop": wall["loop"],
        "wall_ms_floor": wall["durable floor"],
        "wall_to_floor": ratio(laps["durable"], laps["durable floor"], "wall", chunk),
        "wall_to_floor_loop": ratio(laps["loop"], laps["durable floor"], "wall", chunk),
    }


def _bytes(store: Path, case: Case, tape: Tape) -> dict[str, float]:
    """What lies on the disk for a turn, and how much of it is neither tool output nor prompt."""
    events = [made for turn in tape for step in turn if isinstance(step, Append) for made in step.events]
    user = sum(size_of(fields["messages"][-1]) for kind, fields in events if kind is ModelRequestEvent)
    system = next(len(step.data) for step in tape[1] if isinstance(step, Put))
    payload = sum(map(size_of, outputs(case)))
    total = disk_bytes(store)
    return {
        "payload_bytes": payload / case.turns,
        "prompt_bytes": (user + system) / case.turns,
        "disk_bytes": total / case.turns,
        "overhead_bytes": (total - payload - user - system) / case.turns,
    }


def _round_off(figure: float) -> float:
    return round(figure, 3) if figure < 100 else round(figure)
