"""The peer: LangGraph with its SQLite checkpointer, in an environment of its own, on the same workload."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import child, folder, say
from benchmarks.workload import Case

VENV = Path(__file__).parent / ".venv-langgraph"
PACKAGES = ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2")
VARIANTS = ("full", "delta", "delta-sync")
PATIENCE_S = 30
"""A variant is stopped after so long, and the row says how many turns it came to."""


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """One row for each case and variant."""
    python = _python()
    return [_case(case, variant, python) for case in cases for variant in VARIANTS]


def _case(case: Case, variant: str, python: Path) -> dict[str, Any]:
    say(f"peer: {case}, {variant}")
    with folder() as path:
        argv = (variant, str(path / "checkpoints.db"), str(case.turns), str(case.kb), str(PATIENCE_S))
        return json.loads(child("-m", "benchmarks.peer_langgraph", *argv, python=python))


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
