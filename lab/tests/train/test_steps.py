"""Training in steps: parts are joined, done steps are not done again, and what is made can be taken along."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.real import smollm2
from remora.inference import EstimatedCounter
from remora_lab.train import synthetic_rows, write_rows
from remora_lab.trainer import steps
from remora_lab.trainer.parts import join, split
from remora_lab.trainer.parts import main as parts
from remora_lab.trainer.steps import DONE, FAILED, TIME_OVER, Steps, arguments
from train.test_training import tiny_model
from train.torch_python import torch_python

UNSEEN = Path(__file__).parents[3] / "benchmarks" / "unseen"


@given(st.binary(max_size=400), st.integers(1, 150))
def test_a_file_that_was_split_is_joined_to_the_same_bytes(data: bytes, size: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        file, folder, again = Path(name, "a.gguf"), Path(name, "parts"), Path(name, "b", "a.gguf")
        file.write_bytes(data)
        made = split(file, folder, size)
        assert max((part.stat().st_size for part in made), default=0) <= size
        if len(data) > size:
            join(folder, again, hashlib.sha256(data).hexdigest())
            assert again.read_bytes() == data
        else:
            assert [part.read_bytes() for part in made] == [data]


def test_a_part_that_is_missing_or_wrong_is_told_and_nothing_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder, again = tmp_path / "a.gguf", tmp_path / "parts", tmp_path / "b" / "a.gguf"
    file.write_bytes(bytes(range(100)))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert parts(["split", str(file), str(folder), "--bytes", "30"]) == 0
    (folder / "a.gguf.001").write_bytes(bytes(30))
    assert parts(["join", str(folder), str(again), "--sha256", digest]) == 2
    assert "`a.joining` has SHA-256" in capsys.readouterr().err
    (folder / "a.gguf.001").unlink()
    assert parts(["join", str(folder), str(again), "--sha256", digest]) == 2
    assert "does not hold every part of `a.gguf`: it has 3" in capsys.readouterr().err
    assert list(again.parent.iterdir()) == []


# Stands in for the Python that trains: the first call is stopped by its time, the next one is done.
TRAINER = """#!{python}
import json, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True, exist_ok=True)
begun = out / "begun"
if not begun.exists():
    begun.touch()
    sys.exit(3)
(out / "adapter.gguf").write_bytes(out.name.encode())
(out / "metrics.json").write_text(json.dumps(sys.argv))
"""


def test_each_call_goes_on_where_the_last_one_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = tmp_path / "python"
    trainer.write_text(TRAINER.format(python=sys.executable))
    trainer.chmod(0o755)
    base, rows = tmp_path / "base.gguf", tmp_path / "rows.jsonl"
    base.write_bytes(b"GGUF")
    words = ["--work", str(tmp_path / "work"), "--base", str(base), "--rows", str(rows), "--chats", str(rows)]
    words += ["--trainer", str(trainer), "--", "--rank", "8"]
    assert [steps.main(words) for _ in range(3)] == [TIME_OVER, TIME_OVER, DONE]
    assert json.loads((tmp_path / "work" / "done.json").read_text()) == [
        "join", "train packet", "train history", "adapters", "results"
    ]  # fmt: skip
    out = tmp_path / "work" / "out"
    assert (out / "packet.gguf").read_bytes() == b"packet"
    assert json.loads((out / "history-metrics.json").read_text())[-2:] == ["--rank", "8"]
    trainer.unlink()
    assert steps.main(words) == DONE  # nothing is left to be done


def test_no_step_begins_when_the_time_is_over(tmp_path: Path) -> None:
    words = ["--work", str(tmp_path), "--base", str(tmp_path / "x.gguf"), "--rows", "rows.jsonl", "--minutes", "0.1"]
    assert Steps(arguments(words)).run() == TIME_OVER


def test_weights_that_are_not_there_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--work", str(tmp_path), "--base", str(tmp_path / "x.gguf"), "--rows", "rows.jsonl"]
    assert steps.main(words) == FAILED
    assert "`--parts` names no folder" in capsys.readouterr().err


@pytest.mark.faults
def test_a_tiny_model_is_joined_trained_and_measured_on_packets_and_history(tmp_path: Path) -> None:
    torch = torch_python()
    base = tiny_model(tmp_path / "tiny.gguf", like=smollm2())
    digest = hashlib.sha256(base.read_bytes()).hexdigest()
    split(base, tmp_path / "parts", 1_000_000)
    made = [*synthetic_rows(5, 8, EstimatedCounter())]
    for name in ("rows.jsonl", "chats.jsonl"):
        write_rows(tmp_path / name, made)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["--work", tmp_path / "work", "--base", tmp_path / "joined" / "tiny.gguf", "--parts", tmp_path / "parts"]
    words += ["--sha256", digest, "--rows", tmp_path / "rows.jsonl", "--chats", tmp_path / "chats.jsonl"]
    words += ["--suite", UNSEEN, "--tasks", "1", "--jobs", "1", "--slots", "2", "--port", port, "--trainer", torch]
    words += ["--", "--epochs", "1", "--batch-tokens", "8000", "--max-tokens", "20000", "--threads", "1", "--rank", "2"]
    assert steps.main([str(word) for word in words]) == DONE
    out = tmp_path / "work" / "out"
    rows = [orjson.loads(line) for line in (out / "unseen.jsonl").read_bytes().splitlines()]
    assert {row["row"] for row in rows if "row" in row} == {"adapter", "adapter-history", "adapter-cut"}
    assert (out / "packet.gguf").read_bytes()[:4] == b"GGUF"
