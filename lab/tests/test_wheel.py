"""The lab's wheel holds what its commands need at run time, and nothing of the core."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

LAB = Path(__file__).parents[1]


def test_the_wheel_holds_the_scenarios_the_trainer_and_the_entry_points(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=LAB, check=True, capture_output=True)
    (path,) = tmp_path.glob("*.whl")
    wheel = zipfile.ZipFile(path)
    names = wheel.namelist()
    scenarios = {file.name for file in (LAB / "src/remora_lab/train/synthetic/scenarios").iterdir()}
    held = {name.rpartition("/")[2] for name in names if "/scenarios/" in name}
    assert held == scenarios
    assert {"remora_lab/trainer/__main__.py", "remora_lab/train/synthetic/words.txt"} <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"remora_lab"}
    (entry_points,) = (name for name in names if name.endswith("entry_points.txt"))
    assert b"[remora.commands]\nbench = remora_lab.cli:bench" in wheel.read(entry_points)
