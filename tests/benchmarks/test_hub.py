"""The benchmark of the Hub works, and its page shows what was stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.faults
def test_a_small_measurement_has_every_figure(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.hub", "--quick", "--out", str(tmp_path / "hub.json")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    rows = json.loads((tmp_path / "hub.json").read_text())["hub"]
    assert rows["full"]["wall_ratio"] > 0
    assert rows["full"]["ast_nodes"] > 500
    assert rows["memory"]["nodes"] > 2000
    assert rows["asking"]["warm_ms"] > 0
    assert rows["visible"]["visible_ms"] > 0


def test_the_page_holds_the_stored_figures() -> None:
    code = "from benchmarks.hub_page import PAGE, figures; assert figures() in PAGE.read_text(encoding='utf-8')"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
