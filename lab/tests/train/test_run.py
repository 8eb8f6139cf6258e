"""How the trainer is started."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from remora_lab.train._run import trainer_command


def test_the_trainer_imports_nothing_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "numpy", "tokenizers", "remora", "remora_lab"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    done = subprocess.run(trainer_command(["--help"]), capture_output=True, text=True, check=False)
    assert not (tmp_path / "ran").exists()
    assert "remora_lab.trainer" in done.stdout or "No module named 'torch'" in done.stderr
