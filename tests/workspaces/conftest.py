from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a file, beside a secret that must never be reached."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_bytes(b"one\ntwo\nthree\nfour\nfive\n")
    (tmp_path / "secret").write_text("secret")
    return root
