"""The header of a file of results: date, command, machine and versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from remora._version import __version__
from remora.events import digest
from remora_lab.bench.results import Header
from remora_lab.bench.suite import task_digest
from remora_lab.bench.tasks import Task
from remora_lab.machine import describe_machine


def make_header(command: str, tasks: Sequence[Task], temperature: float) -> Header:
    """What heads the results of a bench that begins now."""
    return Header(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        command=command,
        machine=_machine(),
        versions=_versions(),
        suite=digest(" ".join(sorted(task_digest(task) for task in tasks)).encode()),
        tasks=len(tasks),
        temperature=temperature,
    )


def _machine() -> dict[str, Any]:
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    return {**describe_machine(), "load": load}


def _versions() -> dict[str, str]:
    found = {"remora": __version__, "python": platform.python_version()}
    for package in ("ruff", "xllamacpp"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
