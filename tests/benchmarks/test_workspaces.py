"""The bench of workspaces runs, and what is no matter of time holds: opening copies nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.faults
def test_the_bench_runs_and_an_opened_workspace_has_copied_nothing(tmp_path: Path) -> None:
    out = tmp_path / "workspaces.json"
    command = [sys.executable, "-m", "benchmarks.workspaces", "--quick", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(out.read_text())
    assert {"machine", "versions", "workspaces", "aims"} <= results.keys()
    row = results["workspaces"][0]
    assert row["copied_bytes"] == 0
    assert row["open_ms"] > 0
    assert row["diff_ms"] > 0
    accepted = results["accepts"][0]
    assert accepted["changes"] == 20
    assert accepted["accept_s"] > 0
    assert accepted["undo_s"] > 0
