"""The guide's commands work as written, and say what the guide says that they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "facts-from-other-files.md"


def test_the_guide_is_true(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shutil.copytree(ROOT / "examples" / "shop", shop, ignore=shutil.ignore_patterns(".agentfs", "__pycache__"))
    text, said = GUIDE.read_text(encoding="utf-8"), ""
    commands = re.findall(r"^    ((?:REMORA_\S+ )?remora .*)$", text, re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        words = command.split()
        settings = dict(word.split("=") for word in words if word.startswith("REMORA_"))
        argv = words[words.index("remora") + 1 :]
        if "AGENT" in argv:
            argv[argv.index("AGENT")] = next((shop / ".agentfs" / "traces").glob("*.jsonl")).stem
        done = subprocess.run(
            [sys.executable, "-c", "from remora.cli import main; main()", *argv],
            cwd=shop,
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        said += done.stdout
    for block in re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        assert block in said
