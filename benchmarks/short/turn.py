"""What one whole turn of `TwoTrack` takes: distil, validate, chain, fold, render, receipt; and its wall time beside a
floor that writes as many bytes with as many syncs."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

import orjson

from benchmarks.contenders import Kept
from benchmarks.loop import SystemClock, TallyDisk
from benchmarks.measure import folder, say
from benchmarks.short.run import Plan
from benchmarks.workload import NAMES, output
from remora.context.contracts import ToolSpec
from remora.events import Call
from remora.ports import Decision, TokenCounter
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

SLOW_SYNC_S = 0.004
"""What a sync takes on many disks of servers and laptops."""
GOAL = "Find out why orders of customer_7 take 900 ms in src/shop/order.py, and fix it"
PROPERTIES = {"path": {"type": "string"}, "line": {"type": "integer"}}
LOOK = ToolSpec(name="look", description="Look at a part.", parameters={"type": "object", "properties": PROPERTIES})


def measure(plan: Plan) -> list[dict[str, Any]]:
    """One row for each counter."""
    return [asyncio.run(_case(counter, **plan.sizes)) for counter in plan.counters]


def mixed_output(turn: int, kb: float) -> Any:
    """A tool's output of about `kb` kilobytes: JSON, numbered code and a log in turn."""
    chance = random.Random(f"mixed:{turn}")
    if turn % 3 == 0:
        return output(turn, kb)
    line = _code_line if turn % 3 == 1 else _log_line
    lines: list[str] = []
    size = 0
    while size < kb * 1000:
        lines.append(line(len(lines) + 1, chance))
        size += len(lines[-1]) + 1
    return "\n".join(lines)


def _code_line(number: int, chance: random.Random) -> str:
    name, other = chance.choice(NAMES), chance.choice(NAMES)
    return f"{number}:{' ' * 4 * chance.randrange(4)}{name}_{chance.randrange(99)} = load_{other}({name}, {number})"


def _log_line(number: int, chance: random.Random) -> str:
    path = f"/api/{chance.choice(NAMES)}/{chance.randrange(9999)}"
    at = f"2026-11-17 05:{number % 60:02}:{chance.randrange(60):02}"
    return f"{at} INFO worker-{number % 9} request {chance.randrange(10**8):08x} took {chance.randrange(900)} ms {path}"


async def _case(counter: TokenCounter, turns: int, kb: float, limit: int) -> dict[str, Any]:
    say(f"turn: {turns} turns of {kb:g} KB, {counter.name}")
    values = [mixed_output(turn, kb) for turn in range(turns)]
    with folder() as path:
        free = await _laps(Kept(path / "free", free=True, sync="turn"), path / "free", counter, limit, values)
        kept = await _laps(Kept(path / "kept", free=False, sync="turn"), path / "kept", counter, limit, values)
        disk = Kept(path / "slow", free=False, sync="turn", slow_s=SLOW_SYNC_S)
        slow = await _laps(disk, path / "slow", counter, limit, values)
    tenth = max(1, turns // 10)
    cpu = free["cpu"][tenth:]
    return {
        "counter": counter.name,
        "turns": turns,
        "output_kb": kb,
        "load": _round(os.getloadavg()[0]),
        "cpu_ms": _round(1000 * statistics.median(cpu)),
        "least_cpu_ms": _round(1000 * min(cpu)),
        "last_to_first": _round(statistics.median(cpu[-3 * tenth :]) / statistics.median(cpu[: 3 * tenth])),
        "cpu_to_floor": _round(statistics.median(cpu) / statistics.median(free["floor_cpu"][tenth:])),
        "syncs": _round(statistics.mean(kept["syncs"][tenth:])),
        "wall_ms": _round(1000 * statistics.median(kept["wall"])),
        "floor_wall_ms": _round(1000 * statistics.median(kept["floor_wall"])),
        "wall_to_floor": _round(statistics.median(map(_ratio, kept["wall"], kept["floor_wall"]))),
        "slow_wall_ms": _round(1000 * statistics.median(slow["wall"])),
        "slow_floor_wall_ms": _round(1000 * statistics.median(slow["floor_wall"])),
        "slow_wall_to_floor": _round(statistics.median(map(_ratio, slow["wall"], slow["floor_wall"]))),
    }


def _ratio(one: float, other: float) -> float:
    return one / other


async def _laps(
    kept: Kept, place: Path, counter: TokenCounter, limit: int, values: list[Any]
) -> dict[str, list[float]]:
    """Each turn, and beside it the floor: the records of that turn dumped, written and synced as often."""
    track = _track(kept, counter, limit)
    await track.start()
    stream = place / f"{track.identity.stream_id}.jsonl"
    floor = os.open(place / "floor.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    laps: dict[str, list[float]] = {name: [] for name in ("cpu", "wall", "floor_cpu", "floor_wall", "syncs")}
    gc.collect()
    gc.freeze()
    for turn, value in enumerate(values):
        syncs, size = kept.disk.syncs, stream.stat().st_size
        cpu, wall = time.process_time(), time.perf_counter()
        await _take_turn(track, turn, value)
        _add(laps, "", cpu, wall)
        laps["syncs"].append(kept.disk.syncs - syncs)
        with stream.open("rb") as file:
            file.seek(size)
            records = [orjson.loads(line) for line in file]
        cpu, wall = time.process_time(), time.perf_counter()
        _keep(floor, records, kept.disk, 0 if kept.disk.free else kept.disk.syncs - syncs)
        _add(laps, "floor_", cpu, wall)
    gc.unfreeze()
    os.close(floor)
    await kept.close()
    return laps


def _add(laps: dict[str, list[float]], prefix: str, cpu: float, wall: float) -> None:
    laps[f"{prefix}wall"].append(time.perf_counter() - wall)
    laps[f"{prefix}cpu"].append(time.process_time() - cpu)


def _keep(handle: int, records: list[Any], disk: TallyDisk, syncs: int) -> None:
    lines = [orjson.dumps(record) + b"\n" for record in records]
    part = -(-len(lines) // max(1, syncs))
    for start in range(0, len(lines), part):
        os.write(handle, b"".join(lines[start : start + part]))
        if syncs:
            os.fdatasync(handle)
            time.sleep(disk.slow_s)


def _track(kept: Kept, counter: TokenCounter, limit: int) -> TwoTrack:
    """`remora.TwoTrack` as anyone gets it, on a disk that counts its syncs."""
    wiring = Wiring(
        identity=Identity("agent"),
        goal=GOAL,
        tools=(LOOK,),
        prompts=PromptSettings(limit, style="chat", calling="native"),
        writer=kept.writer,
        blobs=kept.blobs,
        counter=counter,
        clock=SystemClock(),
    )
    return TwoTrack.of(wiring)


async def _take_turn(track: TwoTrack, turn: int, value: Any) -> None:
    await track.request()
    args = {"path": f"src/shop/{NAMES[turn % len(NAMES)]}_{turn % 17}.py", "line": turn * 3}
    call = Call(call_id=f"call_{turn}", tool="look", args=args)
    text = f"I look at part {turn} now, because its requests were slow."
    for chosen in await track.response(Decision(calls=(call,), text=text, model="scripted", finish="tool_calls")):
        await track.call(chosen, lambda **_: value)


def _round(figure: float) -> float:
    return round(figure, 2)
