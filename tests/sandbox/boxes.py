"""The sandboxes that tests go through: each one that works here, the others skipped by name."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from remora.sandbox import SandboxReport
from remora.sandbox._probe import BWRAP_FOLDERS, probe_with

KINDS = ("landlock", "bubblewrap")
NONE = SandboxReport(bwrap_problem="not here", own_problem="not here either")
"""A machine without any sandbox."""


@cache
def box(kind: str) -> SandboxReport:
    """A report in which `kind` applies. Skips the test where it does not work."""
    if kind == "landlock":
        report = probe_with(None)
        problem = report.own_problem
    else:
        named = os.environ.get("REMORA_TEST_BWRAP")
        folders = [Path(named)] if named else [Path(folder, "bwrap") for folder in BWRAP_FOLDERS]
        report = probe_with(next((path for path in folders if path.is_file()), None))
        problem = report.bwrap_problem
    if problem:
        pytest.skip(f"sandbox `{kind}` does not work here: {problem}")
    return report


def any_box() -> SandboxReport:
    """The first that works. Skips the test where none does."""
    report = probe_with(None)
    if report.applies == "none":
        pytest.skip(f"no sandbox works here: {report.own_problem}")
    return report


@cache
def without_plugins(*keep: str) -> str:
    """Options that leave out pytest's installed plugins but `keep`: loading them takes as long as pytest itself."""
    names = {point.name for point in entry_points(group="pytest11")} - set(keep)
    return " ".join(f"-p no:{name}" for name in sorted(names))


def no_plugins(*keep: str) -> str:
    """A `pytest.ini` with those options."""
    return f"[pytest]\naddopts = {without_plugins(*keep)}\n"


def alive(pid: int) -> bool:
    """Whether the process runs; one that waits to be reaped does not."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
