"""With the lab installed, `remora` has its commands, and the versions of both fit together."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import remora
import remora_lab

LAB = Path(__file__).parents[1]


def run(*args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", "remora", *args]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_the_commands_of_the_lab_are_listed_without_importing_them() -> None:
    code = (
        "import sys; from remora.cli._main import app; from typer.testing import CliRunner\n"
        "print(CliRunner().invoke(app, ['--help']).output, *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "\n  bench " in done.stdout
    assert "\n  train " in done.stdout
    loaded = {name for name in done.stdout.split() if name.startswith("remora_lab")}
    assert loaded == {"remora_lab", "remora_lab._version", "remora_lab.cli"}


@pytest.mark.parametrize("command", [("bench",), ("bench", "report"), ("bench", "blind"), ("train", "run")])
def test_the_commands_of_the_lab_show_their_help(command: tuple[str, ...]) -> None:
    done = run(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"remora {' '.join(command)}" in done.stdout


def test_the_lab_requires_the_core_of_its_own_version() -> None:
    project = tomllib.loads((LAB / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"] == [f"remora-agents[agents,embedded]=={remora.__version__}"]
    assert remora_lab.__version__ == remora.__version__


def test_importing_the_lab_imports_no_part_of_the_core() -> None:
    code = "import remora_lab, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {name for name in done.stdout.split() if name.startswith("remora.")}
