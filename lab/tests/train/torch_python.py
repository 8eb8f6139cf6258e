"""A Python that has torch: this one, or the one that `REMORA_TORCH_PYTHON` names; else the test is skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def torch_python() -> str:
    """The Python that has torch."""
    python = os.environ.get("REMORA_TORCH_PYTHON") or (sys.executable if find_spec("torch") else "")
    if not python:
        pytest.skip("torch is not installed; `REMORA_TORCH_PYTHON` may name a Python that has it")
    return python


def with_torch(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python with these words, with the source of both packages on its path."""
    python = torch_python()
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "lab" / "src")])}
    return subprocess.run([python, *map(str, words)], env=env, capture_output=True, text=True, timeout=900, check=False)
