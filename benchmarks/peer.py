"""The peer: LangGraph with its SQLite checkpointer, in an environment of its own, on the same workload."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.contenders import Kept, Track
from benchmarks.loop import outputs
from benchmarks.measure import child, disk_bytes, folder, race, say
from benchmarks.workload import Case

VENV = Path(__file__).parent / ".venv-langgraph"
PACKAGES = ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2")
VARIANTS = ("full", "delta", "delta-sync")
PATIENCE_S = 15
"""A variant is stopped after so long, and the row says how many turns it came to."""
MOST_GB = 10
"""A full copy of all messages in every checkpoint grows with the square of the turns: more than this is not tried."""


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """One row for each case and variant."""
    python = _python()
    return [_case(case, variant, python) for case in cases for variant in VARIANTS]


def _case(case: Case, variant: str, python: Path) -> dict[str, Any]:
    say(f"peer: {case}, {variant}")
    ours = asyncio.run(_ours(case))
    if variant == "full" and case.turns**2 * case.kb / 1e6 > MOST_GB:
        return {"variant": variant, "turns": case.turns, "turns_done": 0, "output_kb": case.kb} | ours
    with folder() as path:
        argv = (variant, str(path / "checkpoints.db"), str(case.turns), str(case.kb), str(PATIENCE_S))
        theirs = json.loads(child("-m", "benchmarks.peer_langgraph", *argv, python=python))
    return theirs | ours


async def _ours(case: Case) -> dict[str, Any]:
    """Our own loop, right before the peer's: with every sync, rendering and distilling included."""
    with folder() as path:
        laps = await race([Track("loop", outputs(case), Kept(path, free=False))], case.turns, case.turns)
        return {
            "remora_cpu_ms": round(1000 * laps["loop"].per_turn("cpu", case.turns), 3),
            "remora_wall_ms": round(1000 * laps["loop"].per_turn("wall", case.turns), 3),
            "remora_disk_bytes": round(disk_bytes(path) / case.turns),
        }


def _python() -> Path:
    python = VENV / "bin" / "python"
    ready = VENV / ".ready"
    if not ready.exists() or ready.read_text() != "\n".join(PACKAGES):
        say(f"peer: installing {' '.join(PACKAGES)} into {VENV.name}, once")
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PACKAGES], check=True, stderr=subprocess.PIPE)
        ready.write_text("\n".join(PACKAGES))
    return python
