from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from projects import copy_shop

ROOT = Path(__file__).parents[2]


def test_the_library_example_runs_agents_accepts_one_and_reads_its_trace(tmp_path: Path) -> None:
    shop = copy_shop(tmp_path / "shop", "tests", "inventory.py", "orders.py", "pricing.py")
    before = {path: path.read_bytes() for path in shop.rglob("*.py")}
    command = [sys.executable, ROOT / "examples" / "library" / "main.py", shop, "scripted"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    changed = [path.relative_to(shop).as_posix() for path, data in before.items() if path.read_bytes() != data]
    assert len(changed) == 1
    assert f"accepted {changed[0]}" in done.stdout
    for words in ("agents", "clean", "+++ ", "turn 1: ", "called ['run_linter']", "prompt user"):
        assert words in done.stdout
