"""`remora bench` as a user types it: killed and gone on with, cancelled, and told what is wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.tiny import DOCS, LINT, task, write_suite
from remora.bench.page import BEGIN, END
from remora.bench.results import Result, read_results
from remora.cli._main import app

COMMAND = [sys.executable, "-c", "from remora.cli import main; main()", "bench"]
MANY = [task(f"lint-{number}") for number in range(6)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a suite in the usual place."""
    write_suite(tmp_path / "benchmarks" / "tasks", [LINT, DOCS])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["bench", *words])
    return done.exit_code, done.stdout, done.stderr


def results(path: Path) -> tuple[Result, ...]:
    return read_results([path]).results


def test_rows_are_tried_told_and_put_on_a_page(here: Path) -> None:
    code, told, _ = bench("--row", "first-candidate", "--row", "oracle", "--quick", "--out", "r.jsonl", "--json")
    assert code == 0
    lines = json.loads(told)["lines"]
    assert {(line["row"], line["operation"]) for line in lines} >= {("oracle", ""), ("first-candidate", "lint")}
    (here / "tasks.md").write_text(f"# Tasks\n\n{BEGIN}\n{END}\n", encoding="utf-8")
    code, told, _ = bench("report", "r.jsonl", "--keep", "kept.jsonl", "--page", ".")
    assert code == 0
    assert "oracle, two tracks" in told
    page = (here / "tasks.md").read_text(encoding="utf-8")
    assert "| oracle, two tracks | 2 × 1 |" in page
    assert (here / "tasks-solved.svg").is_file()
    assert bench("report", "kept.jsonl", "--page", ".")[0] == 0
    assert (here / "tasks.md").read_text(encoding="utf-8") == page  # what is kept says the same


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """The command, some results after its start."""
    run = subprocess.Popen([*COMMAND, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, deadline = folder / "r.jsonl", time.monotonic() + 60
    while not out.exists() or out.read_bytes().count(b"\n") < 3:
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return run


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_bench_that_was_ended_goes_on_where_it_stopped(how: signal.Signals, tmp_path: Path) -> None:
    write_suite(tmp_path / "suite", MANY)
    words = ["--suite", "suite", "--row", "first-candidate", "--out", "r.jsonl"]
    run = started(tmp_path, *words)
    run.send_signal(how)
    _, talk = run.communicate(timeout=60)
    if how is signal.SIGINT:
        assert run.returncode == 130
        assert b"Traceback" not in talk
    before = results(tmp_path / "r.jsonl")
    assert 2 <= len(before) < len(MANY)
    subprocess.run([*COMMAND, *words, "--resume"], cwd=tmp_path, check=True, capture_output=True)
    after = results(tmp_path / "r.jsonl")
    assert after[: len(before)] == before  # not tried again
    assert sorted(one.task for one in after) == sorted(each.id for each in MANY)


def test_a_task_that_changed_is_tried_again(here: Path) -> None:
    words = ["--row", "ruff-fix", "--out", "r.jsonl"]
    bench(*words)
    write_suite(here / "benchmarks" / "tasks", [LINT.model_copy(update={"level": "hard"})])
    assert bench(*words, "--resume")[0] == 0
    assert [one.level for one in results(here / "r.jsonl")] == ["easy", "hard"]


def test_failures_can_be_looked_at(here: Path) -> None:
    lost = task("lint-9", check={"kind": "lint", "gone": ["F541"], "stays": ["F999"]})
    write_suite(here / "benchmarks" / "tasks", [lost])
    bench("--row", "random", "--control", "planted", "--out", "r.jsonl")
    code, told, _ = bench("blind", "r.jsonl")
    assert code == 0
    assert "3 failed trials on two tracks" in told
    assert "<h1>Blindness check of r.jsonl</h1>" in (here / "r.blind.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--suite", "nowhere"], "`nowhere` holds no tasks"),
        (["--suite", "bad"], "`bad/x.jsonl`:1 is no task"),
        (["--half", "third"], "There is no half `third`"),
        (["--row", "magic"], "There is no row `magic`: expected one of `first-candidate`"),
        (["--row", "server"], "Row `server` needs a server"),
        (["--row", "adapter"], "Row `adapter` needs an adapter"),
        (["--control", "magic"], "There is no control `magic`"),
        (["-o", "magic"], "There is no task for operation `magic`: expected one of `docstring`, `lint`"),
        (["--resume"], "`--resume` needs a file"),
        (["--row", "ruff-fix", "--out", "there.jsonl"], "`there.jsonl` is there already"),
        (["--row", "ruff-fix", "--out", "there.jsonl", "--resume"], "`there.jsonl` is no file of results"),
        (["report", "there.jsonl"], "`there.jsonl` is no file of results"),
        (["report", "empty.jsonl"], "`empty.jsonl` holds no results"),
        (["report", "lost.jsonl"], "`lost.jsonl` cannot be used"),
    ],
)
def test_mistakes_are_told_in_a_sentence(words: list[str], message: str, here: Path) -> None:
    (here / "bad").mkdir()
    (here / "bad" / "x.jsonl").write_text('{"id": 1}\n')
    (here / "there.jsonl").write_text("other\n")
    (here / "empty.jsonl").write_text("")
    code, _, talk = bench(*words)
    assert code in (1, 3)
    assert message in " ".join(talk.split())
