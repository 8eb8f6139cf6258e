"""The benchmark of runs works, and its page shows what was stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from inference.real import smollm2

ROOT = Path(__file__).parents[2]


@pytest.mark.faults
def test_a_small_measurement_has_every_figure(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.runs", "--quick", "--out", str(tmp_path / "runs.json")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    rows = json.loads((tmp_path / "runs.json").read_text())["runs"]
    assert all(rows[name] > 0 for name in ("wall_ms_a_turn", "cpu_ms_a_turn", "cpu_together_to_alone", "help_ms"))


@pytest.mark.faults
def test_a_small_measurement_of_decisions_has_every_figure(tmp_path: Path) -> None:
    smollm2()
    command = [sys.executable, "-m", "benchmarks.decisions", "--tasks", "1", "--threads", "1"]
    subprocess.run(
        [*command, "--out", str(tmp_path / "d.json")], cwd=ROOT, check=True, capture_output=True, timeout=240
    )
    rows = json.loads((tmp_path / "d.json").read_text())["decisions"]
    assert rows[0]["operation"] == "all"
    assert rows[0]["decisions"] == sum(row["decisions"] for row in rows[1:]) > 0
    assert all(row[name] > 0 for row in rows for name in ("fetched_s", "served_s", "served_p90_s", "faster"))


def test_the_page_holds_the_stored_figures() -> None:
    code = "from benchmarks.tools_page import PAGE, figures; assert figures() in PAGE.read_text(encoding='utf-8')"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
