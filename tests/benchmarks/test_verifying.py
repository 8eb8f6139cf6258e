"""The bench of `verify` runs, and what it goes over is whole: every stream and blob is really read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.faults
def test_the_bench_runs_and_every_stream_and_blob_was_read(tmp_path: Path) -> None:
    out = tmp_path / "verify.json"
    command = [sys.executable, "-m", "benchmarks.verifying", "--quick", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads(out.read_text())
    assert {"machine", "versions", "verify", "aims"} <= results.keys()
    row = results["verify"][0]
    assert (row["streams"], row["blobs"]) == (51, 101)
    assert row["verify_to_sha256sum"] > 0
