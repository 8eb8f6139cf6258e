"""Describes the machine of a measurement. Standard library only: a benchmark of memory imports it."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe_machine() -> dict[str, str | int]:
    """Processor, cores and operating system, without host or user names."""
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
    }


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
