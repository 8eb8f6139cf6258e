"""The bench runs and its results have the shape that its page is made from. Nothing here is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("turns", "reading", "memory", "together", "index", "many")


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *argv], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    out = tmp_path_factory.mktemp("bench")
    done = run("-m", "benchmarks", "--quick", "--only", *OURS, "--out", str(out))
    assert done.returncode == 0, done.stderr
    return json.loads((out / "long-track.json").read_text(encoding="utf-8")), done.stdout


@pytest.mark.faults
def test_the_results_say_where_they_come_from(ran: tuple[dict[str, Any], str]) -> None:
    results, _ = ran
    assert results["command"].startswith("python -m benchmarks --quick")
    assert {"cpu", "cores", "system", "filesystem"} <= results["machine"].keys()
    assert {"python", "remora-agents", "pydantic", "orjson"} <= results["versions"].keys()


@pytest.mark.faults
@pytest.mark.parametrize("section", OURS)
def test_every_column_of_the_page_has_its_figure(ran: tuple[dict[str, Any], str], section: str) -> None:
    results, _ = ran
    told = run("-c", "from benchmarks import page; import json; print(json.dumps(page.COLUMNS))").stdout
    assert not json.loads(told)[section][1].keys() - results[section][0].keys()


@pytest.mark.faults
def test_every_aim_is_judged_and_shown(ran: tuple[dict[str, Any], str]) -> None:
    results, shown = ran
    assert len(results["aims"]) == 11
    assert all({"aim", "target", "figure", "met"} == verdict.keys() for verdict in results["aims"])
    assert all(verdict["aim"] in shown for verdict in results["aims"])


def test_the_page_shows_the_stored_results() -> None:
    done = run("-c", "from benchmarks import page; text = page.PAGE.read_text(); print(page.filled(text) == text)")
    assert done.stdout.strip() == "True", f"{done.stderr}\nRun `python -m benchmarks.page`"
