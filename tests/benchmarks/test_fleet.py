"""The benchmark of the fleet runs to its end on an empty database: without Ray, and too short for figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from postgres import Server

pytestmark = pytest.mark.fleet
ROOT = Path(__file__).parents[2]


def test_agents_without_ray_are_measured_in_a_database_without_a_store(postgres: Server, tmp_path: Path) -> None:
    with postgres.connect() as connection:
        connection.execute("CREATE DATABASE empty")
    url, out = postgres.url().replace("/postgres", "/empty"), tmp_path / "fleet.json"
    options = ["--url", url, "--nodes", "0", "--agent-seconds", "0.1", "--rounds", "1", "--out", str(out)]
    argv = [sys.executable, "-m", "benchmarks.fleet", *options]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(out.read_text())["nodes"]["rows"]
    assert (row["nodes"], row["agents"]) == (0, 8) and row["events"] > 8
