"""The guide to an agent of one's own, followed literally."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "write-an-agent.md"


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_every_command_of_the_guide_works_and_the_file_is_changed(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "remora").write_text(f'#!/bin/sh\nexec {sys.executable} -c "from remora.cli import main; main()" "$@"\n')
    (bin_ / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in bin_.iterdir():
        program.chmod(0o755)
    script = "set -eu\n" + "\n".join(commands())
    env = os.environ | {"PATH": f"{bin_}:{os.environ['PATH']}", "REMORA_CONFIG_DIR": str(tmp_path / "own")}
    done = subprocess.run(
        ["bash", "-c", script],  # noqa: S607
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "notes" / "load.py").read_text()
    assert "TODO(1) close the file" in text
    assert "TODO(2) check the path" in text
