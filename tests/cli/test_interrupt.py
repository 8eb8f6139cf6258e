from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import PATIENT


def test_ctrl_c_seals_what_runs_and_leaves_no_process(
    shop: Path, remora_json: Callable[..., Any], gone: Callable[[int], None]
) -> None:
    for number in range(8):
        shutil.copytree(shop / "shop", shop / f"copy{number}")
    command = [sys.executable, "-c", PATIENT, "analyze", "."]
    run = subprocess.Popen(command, cwd=shop, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    traces = shop / ".agentfs" / "traces"
    deadline = time.monotonic() + 60
    while len(list(traces.glob("*.jsonl"))) < 6 and time.monotonic() < deadline:
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, talk = run.communicate(timeout=60)
    assert run.returncode == 130
    assert b"Cancelled" in talk
    assert b"Traceback" not in talk

    reports = remora_json("trace", "verify")["streams"]
    assert {report["status"] for report in reports if report["kind"] == "traces"} == {"sealed"}
    (end,) = [
        json.loads(line)
        for path in (shop / ".agentfs" / "runs").glob("*.jsonl")
        for line in path.read_bytes().splitlines()
        if b'"type":"run_end"' in line
    ]
    assert end["data"]["outcome"] == "cancelled"
    gone(run.pid)


TWO_ENDINGS = """
import subprocess, threading
import remora.sandbox as sandbox
import remora.sandbox._jail._watch as watch
from remora.cli import _signals

stopped, never = threading.Event(), threading.Event()
send, sweep, main = watch._send, sandbox.end_descendants, threading.main_thread()
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)

def slow_send(process, number):
    if number == watch.KILL:
        never.wait()
    done = send(process, number)
    stopped.set()
    return done

def end_descendants(root):
    if threading.current_thread() is not main:
        return sweep(root)
    second.start()  # a second signal, when the first sweep has found no child yet
    stopped.wait(2)

watch._send, sandbox.end_descendants = slow_send, end_descendants
second = threading.Thread(target=_signals._end, daemon=True)
_signals._end()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="children are found through /proc")
def test_a_second_signal_while_the_command_ends_leaves_no_stopped_child() -> None:
    # The child holds our pipes, and ends with its own unless it was stopped.
    done = subprocess.run([sys.executable, "-c", TWO_ENDINGS], capture_output=True, timeout=30, check=False)
    assert done.returncode == 130, done.stderr
