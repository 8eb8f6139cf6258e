"""Ctrl-C in `fork`, `trace import` and `trace report` leaves nothing half-written. Real processes, real signals."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import PATIENT, Remora
from remora.cli._console import whole_file
from remora.trace import find_streams, read_events


def start(cwd: Path, *args: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", PATIENT, *args]
    return subprocess.Popen(argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def interrupt(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
    """Press Ctrl-C as soon as the process is in the middle of its work."""
    deadline = time.monotonic() + 120
    while not ready() and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"Cancelled" in said
    assert b"Traceback" not in said


def last_types(state: Path, kind: str) -> list[str]:
    return [list(read_events(path))[-1].type for path in find_streams(state, kind)]


def conversation(turns: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Do {turns} things"}]
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"thing {number}"})
    return {"messages": messages}


def test_an_interrupted_import_has_whole_conversations_only_and_goes_on_where_it_was(
    tmp_path: Path, remora: Remora
) -> None:
    (tmp_path / "remora.yaml").touch()
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(conversation(turns)) for turns in (1, 800, 2)))
    state = tmp_path / ".agentfs"
    process = start(tmp_path, "trace", "import", "log.jsonl", "--packets")
    interrupt(process, lambda: len(list((state / "traces").glob("*.jsonl"))) == 2)
    assert last_types(state, "traces") == ["agent_end"]
    assert not [row for row in json.loads(remora("trace", "ls", "--json", cwd=tmp_path).stdout) if not row["sealed"]]
    assert remora("trace", "verify", cwd=tmp_path).returncode == 0
    done = json.loads(remora("trace", "import", "log.jsonl", "--json", cwd=tmp_path).stdout)
    assert ([item["turns"] for item in done["streams"]], len(done["earlier"])) == ([800, 2], 1)


def test_an_interrupted_fork_is_sealed_and_its_run_has_ended(
    shop: Path, remora: Remora, analyzed: Callable[[str], Any]
) -> None:
    agent = next(one["agent_id"] for one in analyzed("shop/cart.py")["agents"] if one["files"])
    state = shop / ".agentfs"
    before = len(find_streams(state, "traces"))
    process = start(shop, "fork", agent, "--at", "0", "--times", "90")
    interrupt(process, lambda: len(find_streams(state, "traces")) > before + 2)
    assert set(last_types(state, "traces")) == {"agent_end"}
    assert set(last_types(state, "runs")) == {"run_end"}
    assert remora("trace", "verify").returncode == 0


def test_an_interrupted_report_leaves_the_old_file(tmp_path: Path, remora: Remora) -> None:
    (tmp_path / "remora.yaml").touch()
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(conversation(20)) for _ in range(60)))
    assert remora("trace", "import", "log.jsonl", cwd=tmp_path).returncode == 0
    out = tmp_path / "report.md"
    out.write_text("the old report")
    process = start(tmp_path, "trace", "report", "--operation", "import", "-O", "report.md")

    def reads_a_stream() -> bool:
        opened = Path(f"/proc/{process.pid}/fd")
        with suppress(OSError):
            return any("/.agentfs/traces/" in os.readlink(opened / handle) for handle in os.listdir(opened))
        return False

    interrupt(process, reads_a_stream)
    assert out.read_text() == "the old report"
    assert not list(tmp_path.glob(".report*"))


def test_a_file_appears_only_as_a_whole(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    for before in (None, "old"):
        if before is not None:
            out.write_text(before)
            out.chmod(0o640)
        with pytest.raises(KeyboardInterrupt), whole_file(out) as file:
            file.write("half")
            raise KeyboardInterrupt
        assert (out.read_text() if out.exists() else None) == before
        assert len(os.listdir(tmp_path)) == (before is not None)
    with whole_file(out) as file:
        file.write("new")
    assert (out.read_text(), out.stat().st_mode & 0o777) == ("new", 0o640)
    (tmp_path / "link").symlink_to(out)
    with whole_file(tmp_path / "link") as file:
        file.write("through the link")
    assert (out.read_text(), (tmp_path / "link").is_symlink()) == ("through the link", True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
def test_an_error_of_the_disk_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught, whole_file(Path("/dev/full")) as file:
        file.write("x")
    assert (caught.value.filename, caught.value.errno) == ("/dev/full", errno.ENOSPC)
    out = tmp_path / f"{'x' * 300}.html"
    with pytest.raises(OSError) as caught, whole_file(out) as file:
        file.write("x")
    assert caught.value.filename == str(out)
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "a") as file:
        (tmp_path / "folder" / "other").read_text()
    assert caught.value.filename == str(tmp_path / "folder" / "other")
