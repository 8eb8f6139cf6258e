"""Whether memory grows with the number of turns: each figure from a fresh process."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.contenders import Kept
from benchmarks.loop import new_track, take_turn
from benchmarks.measure import child, folder, peak_rss, say
from benchmarks.workload import Case, output
from remora.trace import read_events, verify

WARM_UP = 20


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """For each case, by how much the peak grew after the first turns: writing, reading, verifying."""
    return [_case(case) for case in cases]


def _case(case: Case) -> dict[str, Any]:
    say(f"memory: {case}")
    row: dict[str, Any] = {"turns": case.turns, "output_kb": case.kb}
    with folder() as path:
        for work in WORKS:
            told = child("-m", "benchmarks.memory", work, str(path), str(case.turns), str(case.kb))
            row[f"{work}_growth_mb"] = json.loads(told)
    return row


async def _write(path: Path, case: Case) -> float:
    kept = Kept(path, free=True)
    track = new_track(kept.writer, kept.blobs)
    await track.start()
    base = 0
    for turn in range(case.turns):
        base = peak_rss() if turn == min(WARM_UP, case.turns // 2) else base
        await take_turn(track, turn, output(turn, case.kb))
    await kept.close()
    return peak_rss() - base


def _read(path: Path) -> float:
    base = 0
    for event in read_events(path / "traces" / "agent.jsonl"):
        base = base or (peak_rss() if event.seq == 5 * WARM_UP else 0)
    return peak_rss() - (base or peak_rss())


def _verify(path: Path) -> float:
    base = peak_rss()
    verify(path / "traces" / "agent.jsonl")
    return peak_rss() - base


WORKS = {
    "write": lambda path, case: asyncio.run(_write(path, case)),
    "read": lambda path, case: _read(path),
    "verify": lambda path, case: _verify(path),
}


def main(work: str, path: str, turns: str, kb: str) -> None:
    """Print by how many megabytes the peak grew."""
    growth = WORKS[work](Path(path), Case(int(turns), float(kb)))
    print(round(max(0, growth) / 1e6, 2))  # the system counts pages in batches, so it may seem to shrink


if __name__ == "__main__":
    main(*sys.argv[1:])
