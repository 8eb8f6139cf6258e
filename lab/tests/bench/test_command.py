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
from inference.fakes import FakeServer, Reply, Wire, answer, by_path, chooses
from inference.tiny import gguf, tokenizer_pairs
from remora.cli._main import app
from remora.config import ServerConfig
from remora.errors import ConfigError
from remora_lab.bench.bench import open_deciders
from remora_lab.bench.page import BEGIN
from remora_lab.bench.results import Result, read_results
from remora_lab.bench.rows import ROWS, Models, select_rows
from remora_lab.cli._models import models_of
from remora_lab.marks import END

COMMAND = [sys.executable, "-c", "from remora.cli import main; main()", "bench"]
MANY = [task(f"lint-{number}") for number in range(5)]


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


@pytest.mark.parametrize("how", [pytest.param(signal.SIGKILL, marks=pytest.mark.faults), signal.SIGINT])
def test_a_bench_that_was_ended_goes_on_where_it_stopped(how: signal.Signals, here: Path) -> None:
    write_suite(here / "suite", MANY)
    words = ["--suite", "suite", "--row", "first-candidate", "--out", "r.jsonl"]
    run = started(here, *words)
    run.send_signal(how)
    _, talk = run.communicate(timeout=60)
    if how is signal.SIGINT:
        assert run.returncode == 130
        assert b"Traceback" not in talk
    before = results(here / "r.jsonl")
    assert 2 <= len(before) < len(MANY)
    assert bench(*words, "--resume")[0] == 0
    after = results(here / "r.jsonl")
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
        (["--suite", "bad"], "bad/x.jsonl:1: $.check.gon: unknown key; did you mean `gone`?"),
        (["--suite", "worse"], "worse/x.jsonl:1: not JSON: "),
        (["--half", "third"], "There is no half `third`"),
        (["--row", "magic"], "There is no row `magic`: expected one of `first-candidate`"),
        (["--row", "server"], "Row `server` needs a server"),
        (["--row", "adapter", "--gguf", "other.gguf"], "Row `adapter` needs an adapter hint: Name its file with `--ad"),
        (
            ["--row", "adapter-cut"],
            "Row `adapter-cut` needs an adapter hint: Name its file with `--history-adapter FILE`",
        ),
        (["--control", "magic"], "There is no control `magic`"),
        (["-o", "magic"], "There is no task for operation `magic`: expected one of `docstring`, `lint`"),
        (["--resume"], "`--resume` needs a file"),
        (["--row", "ruff-fix", "--out", "there.jsonl"], "`there.jsonl` is there already"),
        (["--row", "ruff-fix", "--out", "there.jsonl", "--resume"], "`there.jsonl` is no file of results"),
        (["report", "there.jsonl"], "`there.jsonl` is no file of results"),
        (["report", "empty.jsonl"], "`empty.jsonl` holds no results"),
        (["report", "lost.jsonl"], "`lost.jsonl` cannot be read"),
        (["blind", "lost.jsonl"], "`lost.jsonl` cannot be read"),
    ],
)
def test_mistakes_are_told_in_a_sentence(words: list[str], message: str, here: Path) -> None:
    (here / "bad").mkdir()
    (here / "bad" / "x.jsonl").write_text(LINT.model_dump_json().replace("gone", "gon"))
    (here / "worse").mkdir()
    (here / "worse" / "x.jsonl").write_text("{\n")
    (here / "there.jsonl").write_text("other\n")
    (here / "empty.jsonl").write_text("")
    code, _, talk = bench(*words)
    assert code == 3
    assert message in " ".join(talk.split())


def test_the_adapter_row_asks_with_the_bundled_adapter_unless_another_is_named(here: Path) -> None:
    row = ROWS["adapter"]
    assert models_of(None, None, None, None).name(row) == "SmolLM2-135M + bundled"
    larger = models_of(None, "qwen2.5-coder-1.5b", None, None)
    assert (larger.name(row), larger.name(ROWS["embedded"])) == ("qwen2.5-coder-1.5b + bundled", "qwen2.5-coder-1.5b")
    assert models_of(None, "functiongemma-270m", None, None).adapters == {}
    assert models_of(None, None, None, "mine.gguf").name(row) == "SmolLM2-135M + mine.gguf"
    assert "adapter" in [each.name for each in select_rows([], models_of(None, None, None, None))]
    assert "adapter" not in [each.name for each in select_rows([], models_of(None, None, Path("other.gguf"), None))]


async def test_the_base_model_is_never_taken_for_one_with_an_adapter(tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(gguf(tokenizer_pairs()))
    models = Models(embedded=ServerConfig(gguf=other), adapters={"packet": "bundled"})
    with pytest.raises(ConfigError, match="the bundled one is not for these weights"):
        async with open_deciders(ROWS["adapter"], 0, models):
            pass


def served(answers: int) -> Reply:
    """A server that answers so many times, and then keeps silent."""
    left = iter(range(answers))

    def decide(wire: Wire) -> None:
        if next(left, None) is None:
            wire.over.wait(60)
        else:
            chooses("submit_result", summary="It is done")(wire)

    return by_path(v1__models=answer({"data": [{"id": "tiny"}]}), v1__chat__completions=decide)


@pytest.mark.faults
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_blindness_check_that_was_ended_keeps_what_was_asked_and_goes_on(
    how: signal.Signals, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = [task(f"lint-{number}", check={"kind": "lint", "gone": ["F541"], "stays": ["F999"]}) for number in range(2)]
    write_suite(here / "benchmarks" / "tasks", lost)
    bench("--row", "first-candidate", "--control", "planted", "--seeds", "1", "--out", "r.jsonl")
    monkeypatch.setenv("REMORA_SERVER__MODE", "json")
    kept, page = here / "r.blind.jsonl", here / "r.blind.html"

    def command(server: FakeServer) -> list[str]:
        return ["blind", "r.jsonl", "--server", server.url, "--model", "tiny"]

    with FakeServer(served(2)) as server:
        run = subprocess.Popen([*COMMAND, *command(server)], cwd=here, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not page.exists() or "asked again" not in page.read_text(encoding="utf-8"):
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        run.send_signal(how)
        _, talk = run.communicate(timeout=60)
    if how is signal.SIGINT:
        assert (run.returncode, b"Traceback" in talk) == (130, False)
        assert "1 was asked again" in page.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8").count("<h2>") == 1
    assert kept.read_bytes().count(b"\n") == 1
    with FakeServer(served(2)) as server:
        code, told, _ = bench(*command(server), "--resume")
        assert len([one for one in server.asked if one.path.endswith("completions")]) == 2
    assert code == 0
    assert "2 were asked again" in told
    assert page.read_text(encoding="utf-8").count("<h2>") == 2
