"""No file of the current folder is imported, whatever it is called: it may be somebody else's repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from remora.inference import _fetch


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with modules that are named like those that a command imports or starts. Each leaves a mark."""
    for name in ("pip", "typer", "rich", "orjson", "pydantic", "yaml", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_m_remora_imports_nothing_of_the_current_folder(hostile: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "remora", "agents"], capture_output=True, text=True, check=False)
    assert (done.returncode, (hostile / "ran").exists()) == (0, False), done.stderr


def test_fetching_weights_starts_the_pip_of_this_python_and_no_other(hostile: Path) -> None:
    subprocess.run([*_fetch._pip(), "--version"], capture_output=True, check=False)
    assert not (hostile / "ran").exists()
