"""The guide to an agent of one's own, followed literally."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from cli.warm import WarmCommand

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "write-an-agent.md"


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def run(command: str, cwd: Path, env: dict[str, str], warm: WarmCommand) -> subprocess.CompletedProcess[str]:
    """A command of ours as a forked process, any other by a shell."""
    if command.startswith("remora "):
        return warm.run(tuple(shlex.split(command)[1:]), cwd, env, "")
    shell = ["bash", "-euc", command]
    return subprocess.run(shell, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_every_command_of_the_guide_works_and_the_file_is_changed(tmp_path: Path, warm: WarmCommand) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (bin_ / "python").chmod(0o755)
    env = os.environ | {"PATH": f"{bin_}:{os.environ['PATH']}", "REMORA_CONFIG_DIR": str(tmp_path / "own")}
    cwd = tmp_path
    for command in commands():
        if command.startswith("cd "):
            cwd /= command.removeprefix("cd ")
            continue
        done = run(command, cwd, env, warm)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    text = (tmp_path / "notes" / "load.py").read_text()
    assert "TODO(1) close the file" in text
    assert "TODO(2) check the path" in text
