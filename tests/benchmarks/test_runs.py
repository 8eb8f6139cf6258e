"""The benchmark of runs works, and its page shows what was stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_small_measurement_has_every_figure(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.runs", "--quick", "--out", str(tmp_path / "runs.json")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    rows = json.loads((tmp_path / "runs.json").read_text())["runs"]
    assert all(rows[name] > 0 for name in ("wall_ms_a_turn", "cpu_ms_a_turn", "cpu_together_to_alone", "help_ms"))


def test_the_page_holds_the_stored_figures() -> None:
    code = "from benchmarks.tools_page import PAGE, figures; assert figures() in PAGE.read_text(encoding='utf-8')"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
