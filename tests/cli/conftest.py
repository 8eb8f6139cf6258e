from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.warm import WarmCommand
from projects import copy_shop
from remora.trace import claim


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


PATIENT = "import remora.cli._signals as signals; signals.STOP_S = 60; from remora.cli import main; main()"
"""The command with a minute to seal its streams: a busy machine may take longer than the limit of users."""

Remora = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A copy of the example project, without what earlier runs left in it."""
    return copy_shop(tmp_path / "shop")


@pytest.fixture
def remora(shop: Path, warm: WarmCommand) -> Remora:
    """The real command, in the example project."""

    def run(
        *args: str, cwd: Path = shop, env: dict[str, str] | None = None, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return warm.run(args, cwd, os.environ | (env or {}), text)

    return run


@pytest.fixture(scope="session")
def runs(warm: WarmCommand) -> Callable[[str], Path]:
    """The example project after `remora analyze PATH --json`, which is run once for the tests of all workers."""

    def run(path: str) -> Path:
        folder = Path(os.environ["REMORA_TESTS"]) / "analyzed" / path.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "told.json").exists():
                done = warm.run(("analyze", path, "--json"), copy_shop(folder / "shop"), dict(os.environ), "")
                assert done.returncode == 0, done.stderr
                (folder / "told.json").write_text(done.stdout)
        return folder / "shop"

    return run


@pytest.fixture
def analyzed(shop: Path, runs: Callable[[str], Path]) -> Callable[[str], Any]:
    """The example project as after `remora analyze PATH --json`, which is what it gives."""

    def prepare(path: str) -> Any:
        project = runs(path)
        shutil.copytree(project / ".agentfs", shop / ".agentfs")
        claim(shop / ".agentfs")
        return json.loads((project.parent / "told.json").read_bytes())

    return prepare


@pytest.fixture
def remora_json(remora: Remora) -> Callable[..., Any]:
    """What the command gives with `--json`."""

    def run(*args: str) -> Any:
        done = remora(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
