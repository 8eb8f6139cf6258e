from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def wait_until_gone(group: int) -> None:
    """Returns once no process of the group is left. Raises after a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError(f"a process of group {group} is still there")


@pytest.fixture
def gone() -> Callable[[int], None]:
    return wait_until_gone


SHOP = Path(__file__).parents[2] / "examples" / "shop"

Remora = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A copy of the example project, without what earlier runs left in it."""
    folder = tmp_path / "shop"
    shutil.copytree(SHOP, folder, ignore=shutil.ignore_patterns(".agentfs", "__pycache__", ".pytest_cache"))
    return folder


@pytest.fixture
def remora(shop: Path) -> Remora:
    """The real command, in the example project."""

    def run(*args: str, cwd: Path = shop, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from remora.cli import main; main()", *args],
            cwd=cwd,
            env=os.environ | (env or {}),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def remora_json(remora: Remora) -> Callable[..., Any]:
    """What the command gives with `--json`."""

    def run(*args: str) -> Any:
        done = remora(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
