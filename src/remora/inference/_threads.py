"""How many threads a model may take. Its threads spin while they wait for each other, so on a busy machine one thread
too many makes a decision several times slower, for us and for everyone else."""

from __future__ import annotations

import os
import time
from pathlib import Path

MOST = 8
"""A small model gets no faster beyond these: memory is what it waits for."""
_SAMPLE_S = 0.1
_IDLE = 0.9


def threads_to_use() -> int:
    """The cores that are free now, at least one; all of them only where nothing else runs. Takes 0.1 s to find out."""
    return threads_for(cores(), _idle_share())


def threads_for(cores: int, idle: float) -> int:
    """Threads for so many cores, of which so large a share is idle."""
    free = cores if idle >= _IDLE else min(cores - 1, int(cores * idle))
    return max(1, min(free, MOST))


def cores() -> int:
    """Cores that this process may use, by its affinity and its control group."""
    have = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return max(1, min(have, int(quota) // int(period)))
    except (OSError, ValueError):
        return have


def _idle_share() -> float:
    """The share of all cores' time that nobody used just now."""
    before = _times()
    if before is None:
        return max(0.0, 1 - os.getloadavg()[0] / cores())
    time.sleep(_SAMPLE_S)
    after = _times() or before
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total > 0 else 1.0


def _times() -> tuple[int, int] | None:
    """Idle time and all time since the start, in ticks; None where the system does not tell."""
    try:
        line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
        ticks = [int(part) for part in line.split()[1:9]]
    except (OSError, ValueError):
        return None
    return ticks[3] + ticks[4], sum(ticks)
