"""`python -m benchmarks.scripts`: what one call of a tool script costs over plain Monty's own time, and in memory.

Both sides take turns, call by call, on one worker each, so that a busy machine is busy for both. Plain Monty gets the
same code, limits and host function, and checks nothing. Aims: at most 2 ms more at the median; no growth of memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pydantic_monty

from benchmarks.measure import business, machine, say
from remora.scripts import DEFAULT, ScriptPool

AIM_MS = 2.0
TEXT = "import os\n\n\ndef total(items):\n    return sum(items)\n" * 40
SCRIPTS = {
    "constant": "1",
    "contract": "n = 3\n{'result': [n] * 5, 'summary': f'{n} found', 'knowledge_delta': {'found': n}}",
    "reads a file": (
        "import re\ntext = await read_file('a.py')\nnames = re.findall(r'def (\\w+)', text)\n"
        "{'result': names, 'summary': f'{len(names)} functions', 'knowledge_delta': {'functions': len(names)}}"
    ),
    "2,000 values": "{'result': [{'line': i, 'code': 'F401'} for i in range(1000)], 'summary': 'many'}",
}


async def read_file(path: str) -> str:
    return TEXT


async def compare(calls: int) -> dict[str, dict[str, float]]:
    """Medians in milliseconds, by script, and how far apart the best calls of both are."""
    found: dict[str, dict[str, float]] = {}
    async with ScriptPool(max_processes=1) as pool, pydantic_monty.AsyncMonty(max_processes=1) as monty:
        for name, source in SCRIPTS.items():
            ours: list[float] = []
            plain: list[float] = []
            for number in range(calls + 20):
                first = await _timed(lambda source=source: _ours(pool, source))
                second = await _timed(lambda source=source: _plain(monty, source))
                if number >= 20:
                    ours.append(first)
                    plain.append(second)
            more = statistics.median(one - other for one, other in zip(ours, plain, strict=True))
            found[name] = {
                "ours": statistics.median(ours),
                "plain": statistics.median(plain),
                "more": more,
                "least": min(ours) - min(plain),
            }
    return found


async def growth(calls: int) -> dict[str, float]:
    """Megabytes that our process and its worker have more after `calls` calls, a hundred having gone before."""
    async with ScriptPool(max_processes=1) as pool:
        for _ in range(100):
            await _ours(pool, SCRIPTS["reads a file"])
        before = _resident()
        for _ in range(calls):
            await _ours(pool, SCRIPTS["reads a file"])
        after = _resident()
    return {side: round(after[side] - before[side], 1) for side in before}


async def _timed(call: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1000


async def _ours(pool: ScriptPool, source: str) -> None:
    await pool.run("a.pym", source, inputs={}, externals={"read_file": read_file})


async def _plain(monty: pydantic_monty.AsyncMonty, source: str) -> None:
    limits: Any = {"max_feed_duration_secs": DEFAULT.seconds, "max_memory": DEFAULT.memory_mb * 1024 * 1024}
    async with monty.checkout(limits=limits, os_policy={"sleep": "zero"}) as session:
        await session.feed_run(
            source, external_lookup={"read_file": read_file}, print_callback=lambda stream, text: None
        )


def _resident() -> dict[str, float]:
    mine = Path("/proc/self")
    children = {pid for task in (mine / "task").iterdir() for pid in (task / "children").read_text().split()}
    worker = sum(_megabytes(Path("/proc") / pid) for pid in children)
    return {"ours": _megabytes(mine), "worker": worker}


def _megabytes(process: Path) -> float:
    found = re.search(r"VmRSS:\s*(\d+)", (process / "status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def main() -> None:
    """Measure, show, and keep the results where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scripts", description="Speed of tool scripts")
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--out", type=Path, help="keep the results as JSON")
    asked = parser.parse_args()
    say("scripts, beside plain Monty")
    results = {
        "machine": machine(),
        "busy": business(),
        "milliseconds": asyncio.run(compare(asked.calls)),
        "growth_mb": asyncio.run(growth(1000)),
    }
    if asked.out:
        asked.out.write_text(json.dumps(results, indent=2) + "\n")
    for name, row in results["milliseconds"].items():
        verdict = "within" if row["more"] <= AIM_MS else "OVER"
        figures = f"ours {row['ours']:6.2f}  plain {row['plain']:6.2f}  more {row['more']:6.2f} ms"
        print(f"{name:14} {figures} (at best {row['least']:.2f})  {verdict} {AIM_MS} ms")
    print(f"1,000 calls: our process {results['growth_mb']['ours']:+} MB, worker {results['growth_mb']['worker']:+} MB")


if __name__ == "__main__":
    main()
