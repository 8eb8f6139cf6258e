"""Many agents that write at the same time, against one alone: they must not wait for each other's syncs in a row."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.contenders import Floor, Kept, Recording, Tape, floor_turns
from benchmarks.loop import record_tape
from benchmarks.measure import folder, say
from benchmarks.workload import Case

AGENTS = 64
THREADS = 32


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """One row for each case."""
    return [asyncio.run(_case(case, rounds)) for case in cases]


async def _case(case: Case, rounds: int) -> dict[str, Any]:
    tape = await record_tape(case)
    found: list[tuple[float, float, float, float]] = []
    for number in range(rounds):
        say(f"together: {AGENTS} agents, {case}, round {number + 1} of {rounds}")
        with folder() as path:
            found.append(await _round(path, case, tape))
    alone, together, cpu, floor = (statistics.median(column) for column in zip(*found, strict=True))
    return {
        "agents": AGENTS,
        "turns": case.turns,
        "output_kb": case.kb,
        "alone_s": round(alone, 3),
        "together_s": round(together, 3),
        "together_cpu_s": round(cpu, 3),
        "floor_together_s": round(floor, 3),
        "together_to_alone": round(statistics.median(each[1] / each[0] for each in found), 1),
        "together_to_floor": round(statistics.median(each[1] / each[3] for each in found), 2),
    }


async def _round(path: Path, case: Case, tape: Tape) -> tuple[float, float, float, float]:
    floor = await floor_turns(path / "dry", tape)
    gc.collect()
    alone, _ = await _agents(path / "alone", 1, case, tape)
    together, cpu = await _agents(path / "together", AGENTS, case, tape)
    return alone, together, cpu, _floors(path, case, floor)


async def _agents(path: Path, count: int, case: Case, tape: Tape) -> tuple[float, float]:
    """Wall and CPU seconds of `count` agents, each recording all turns, through one writer as in `remora analyze`."""
    kept = Kept(path, free=False)
    agents = [Recording("agent", tape, kept, agent=f"a{number}") for number in range(count)]
    for agent in agents:
        await agent.start()
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_all_turns(agent, case.turns) for agent in agents))
    took = time.perf_counter() - wall, time.process_time() - cpu
    await kept.close()
    return took


async def _all_turns(agent: Recording, turns: int) -> None:
    for number in range(turns):
        await agent.turn(number)


def _floors(path: Path, case: Case, turns: list[Any]) -> float:
    """Wall seconds of as many floors, on as many threads as Remora has for its disk."""
    floors = [Floor("floor", path / f"floor-{number}.jsonl", turns, sync=True) for number in range(AGENTS)]
    with ThreadPoolExecutor(THREADS) as pool:
        wall = time.perf_counter()
        list(pool.map(lambda floor: [floor.keep(turn) for turn in range(1, case.turns + 1)], floors))
        return time.perf_counter() - wall
