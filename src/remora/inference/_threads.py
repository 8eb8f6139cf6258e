"""Chooses the number of threads for a model.

Its threads spin while they wait for each other, so on a busy machine one thread too many makes a decision several times
slower, and slows everything else down.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

MAX_THREADS = 8
"""Most threads. A small model gets no faster beyond this, because it is bound by memory."""
_SAMPLE_S = 0.1
_IDLE = 0.9


def threads_to_use() -> int:
    """The cores that are idle now, at least one; all of them only if nothing else runs. Takes 0.1 s."""
    return threads_for(cores(), idle_share())


def threads_for(cores: int, idle: float) -> int:
    """Threads for this number of cores with this idle share."""
    free = cores if idle >= _IDLE else min(cores - 1, int(cores * idle))
    return max(1, min(free, MAX_THREADS))


def cores() -> int:
    """Cores that this process may use, by its affinity and cgroup."""
    have = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return max(1, min(have, int(quota) // int(period)))
    except (OSError, ValueError):
        return have


def idle_share() -> float:
    """The idle share of all cores' time. Takes 0.1 s."""
    before = _cpu_times()
    if before is None:
        return max(0.0, 1 - os.getloadavg()[0] / cores())
    time.sleep(_SAMPLE_S)
    after = _cpu_times() or before
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total > 0 else 1.0


def _cpu_times() -> tuple[int, int] | None:
    """Idle time and total time since boot, in ticks; None if the system does not tell."""
    try:
        line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
        ticks = [int(part) for part in line.split()[1:9]]
    except (OSError, ValueError):
        return None
    return ticks[3] + ticks[4], sum(ticks)
