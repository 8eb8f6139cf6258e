from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from integrations.environments import python_with
from remora.analysis import CompleteStream, otlp
from remora.otlp_protobuf import encode
from remora.trace import read_events

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.frameworks


def test_a_run_is_spans_while_it_happens(tmp_path: Path) -> None:
    script = ROOT / "tests" / "integrations" / "scenarios" / "otel.py"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([python_with("otel"), script, tmp_path], check=True, env=env)
    text = (tmp_path / "spans.json").read_text()
    spans = {span["name"]: span for span in json.loads(text)}
    assert list(spans) == [
        "chat",
        "execute_tool tool_b",
        "execute_tool tool_a",
        "execute_tool tool_c",
        "invoke_agent demo",
    ]
    run = spans["invoke_agent demo"]["context"]["span_id"]
    assert {span["parent_id"] for name, span in spans.items() if name != "invoke_agent demo"} == {run}
    status = {name: span["status"]["status_code"] for name, span in spans.items()}
    assert [name for name, code in status.items() if code == "ERROR"] == ["execute_tool tool_a", "execute_tool tool_c"]
    assert spans["chat"]["attributes"]["gen_ai.usage.input_tokens"] == 7
    assert spans["execute_tool tool_a"]["attributes"]["remora.seq"] == 5
    assert "hunter2" not in text


def test_an_export_is_what_the_schema_of_the_collector_reads(tmp_path: Path) -> None:
    export = tmp_path / "spans.jsonl"
    golden = sorted((ROOT / "tests" / "golden").glob("format-1-agent-*.jsonl"))
    streams = [CompleteStream(list(read_events(path))) for path in golden]
    requests = [otlp([stream], content=True) for stream in streams]
    export.write_text("".join(f"{json.dumps(each)}\t{encode(each).hex()}\n" for each in requests))
    script = ROOT / "tests" / "integrations" / "scenarios" / "otlp.py"
    done = subprocess.run([python_with("otel"), script, export], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = done.stdout.splitlines()
    assert sum(name.startswith("invoke_agent") for name in names) == len(streams) == 4
    assert sum(name.startswith("execute_tool") for name in names) > len(streams)
