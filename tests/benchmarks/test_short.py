"""The bench of the Short Track runs, and its results have the shape of its page. Nothing here is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *argv], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    out = tmp_path_factory.mktemp("bench")
    done = run("-m", "benchmarks.short", "--quick", "--out", str(out))
    assert done.returncode == 0, done.stderr
    return json.loads((out / "short-track.json").read_text(encoding="utf-8")), done.stdout


def test_a_slow_disk_takes_longer_for_every_sync_that_it_counts(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from benchmarks.loop import TallyDisk\n"
        "slept = []; time.sleep = slept.append\n"
        "disk, folder = TallyDisk(free=False, slow_s=0.004), Path(sys.argv[1])\n"
        "with (folder / 'a').open('wb') as file: disk.sync(file.fileno())\n"
        "disk.sync_dir(folder)\n"
        "print(disk.syncs, slept)"
    )
    assert run("-c", script, str(tmp_path)).stdout == "2 [0.004, 0.004]\n"


@pytest.mark.faults
def test_every_column_of_the_page_has_its_figure(ran: tuple[dict[str, Any], str]) -> None:
    results, _ = ran
    told = run("-c", "from benchmarks.short import page; import json; print(json.dumps(page.COLUMNS))").stdout
    for section, (_, columns) in json.loads(told).items():
        assert not columns.keys() - results[section][0].keys()


@pytest.mark.faults
def test_every_aim_is_judged_and_shown(ran: tuple[dict[str, Any], str]) -> None:
    results, shown = ran
    assert len(results["aims"]) == 12
    assert all(verdict["aim"] in shown for verdict in results["aims"])


@pytest.mark.faults
def test_without_a_tokenizer_everything_is_counted_by_the_estimate(ran: tuple[dict[str, Any], str]) -> None:
    results, _ = ran
    assert {row["counter"] for name in ("rendering", "prefix", "long") for row in results[name]} == {"estimate-1"}


def test_the_page_shows_the_stored_results() -> None:
    done = run(
        "-c", "from benchmarks.short import page; told = page.PAGE.read_text(); print(page.filled(told) == told)"
    )
    assert done.stdout.strip() == "True", f"{done.stderr}\nRun `python -m benchmarks.short.page`"
