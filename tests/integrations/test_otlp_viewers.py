"""Spans that `remora trace export --endpoint` sends are read by viewers that others made, with their own servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from integrations.environments import python_with

pytestmark = pytest.mark.frameworks
ROOT = Path(__file__).parents[2]
STARTS_S = 180
TOKEN = "ghp_abcdefghij1234567890"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an agent of ours and an imported conversation."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "a.py").write_text("import os\n\n\ndef f(x):\n    return x == None\n")
    remora(folder, "analyze", "a.py", "-o", "lint", "--policy", "first-candidate", "--quiet")
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"where": "here"}'}}
    messages = [
        {"role": "user", "content": f"Find it with {TOKEN}"},
        {"role": "assistant", "content": "I look", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "nothing"},
        {"role": "assistant", "content": "There is none"},
    ]
    (folder / "chat.jsonl").write_text(json.dumps({"messages": messages, "model": "gpt-4o"}))
    remora(folder, "trace", "import", "chat.jsonl")
    return folder


def remora(folder: Path, *words: str, headers: str = "") -> str:
    env = os.environ | {"OTEL_EXPORTER_OTLP_HEADERS": headers, "REMORA_CONFIG_DIR": str(folder / "own")}
    argv = [sys.executable, "-c", "from remora.cli import main; main()", *words]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def send_all(project: Path, url: str, headers: str = "") -> int:
    """Send all agents with their content, and say how many spans there are."""
    everything = ("trace", "export", "--format", "otel", "--content", "--since", "2020-01-01")
    remora(project, *everything, "-O", "spans.jsonl")
    assert f"sent to {url}" in remora(project, *everything, "--endpoint", url, headers=headers)
    lines = (project / "spans.jsonl").read_text().splitlines()
    return sum(len(json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]) for line in lines)


@contextmanager
def serving(argv: list[str | Path], health: str, folder: Path, env: dict[str, str]) -> Iterator[None]:
    """Run a viewer's server until the block ends."""
    log = folder / "server.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            argv, cwd=folder, env=os.environ | env, stdout=said, stderr=said, start_new_session=True
        )
        try:
            deadline = time.monotonic() + STARTS_S
            while not answers(health):
                assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-2000:]
                time.sleep(0.2)
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:  # noqa: S310 (our own server)
            return bool(reply.status == 200)
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
        return json.load(reply)


def test_phoenix_reads_agents_replies_and_tools_with_their_texts(project: Path, tmp_path: Path) -> None:
    python, port = python_with("phoenix"), free_port()
    url = f"http://127.0.0.1:{port}"
    env = {
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with serving([python.parent / "phoenix", "serve"], f"{url}/healthz", tmp_path, env):
        sent = send_all(project, url)
        deadline = time.monotonic() + STARTS_S
        spans: list[Any] = []
        while len(spans) < sent and time.monotonic() < deadline:  # it writes them in the background
            spans = ask(f"{url}/v1/projects/default/spans?limit=1000")["data"]
    assert len(spans) == sent
    kinds = {span["name"].split()[0]: span["span_kind"] for span in spans}
    assert kinds == {"invoke_agent": "AGENT", "chat": "LLM", "execute_tool": "TOOL"}
    last = next(span for span in spans if "There is none" in json.dumps(span) and span["span_kind"] == "LLM")
    assert last["attributes"]["llm.output_messages.0.message.content"] == "There is none"
    assert last["attributes"]["llm.input_messages.0.message.content"] == "nothing"
    roots = {span["context"]["span_id"] for span in spans if span["parent_id"] is None}
    assert {span["parent_id"] for span in spans} == {None, *roots}
    assert TOKEN not in json.dumps(spans)


def test_mlflow_reads_agents_replies_and_tools_with_their_texts(project: Path, tmp_path: Path) -> None:
    python, port = python_with("mlflow"), free_port()
    url = f"http://127.0.0.1:{port}"
    argv: list[str | Path] = [python.parent / "mlflow", "server", "--port", str(port), "--workers", "1"]
    store = ["--backend-store-uri", f"sqlite:///{tmp_path}/m.db"]
    with serving([*argv, *store], f"{url}/health", tmp_path, {}):
        sent = send_all(project, url, headers="x-mlflow-experiment-id=0")
        where = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}]
        traces = ask(f"{url}/api/3.0/mlflow/traces/search", {"locations": where})["traces"]
        found = [ask(f"{url}/api/3.0/mlflow/traces/get?trace_id={each['trace_id']}")["trace"] for each in traces]
    assert len(traces) == 2  # a run of ours, and the imported conversation
    assert sum(len(trace["spans"]) for trace in found) == sent
    previews = [trace["trace_info"].get("request_preview", "") for trace in found]
    assert any("Find it with [redacted:github-token]" in preview for preview in previews)
    assert any("There is none" in trace["trace_info"].get("response_preview", "") for trace in found)
