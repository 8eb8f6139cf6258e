"""A terminal that is closed ends a run like a polite kill: streams are sealed, nothing is left, nothing raises."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import PATIENT
from remora.trace import Library

COMMAND = [sys.executable, "-c", PATIENT, "analyze"]


@pytest.fixture
def long_run(shop: Path) -> Path:
    for number in range(8):
        shutil.copytree(shop / "shop", shop / f"copy{number}")
    return shop


def wait_for_streams(project: Path, process: subprocess.Popen[bytes], least: int = 6) -> None:
    deadline = time.monotonic() + 60
    while len(list((project / ".agentfs" / "traces").glob("*.jsonl"))) < least and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.01)


def kinds(project: Path) -> set[str]:
    return {report.status for report in Library(project / ".agentfs").verify(None) if report.kind == "traces"}


def test_a_terminal_that_is_closed_seals_what_runs(long_run: Path, gone: Callable[[int], None]) -> None:
    ours, theirs = pty.openpty()
    talk = long_run.parent / "talk"
    first = (
        "import fcntl, os, signal, sys, termios\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # also where the tests themselves run under `nohup`
        "os.setsid()\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"  # the terminal is its own, so closing it hangs up
        f"sys.excepthook = lambda *what: open({str(talk)!r}, 'a').write(repr(what))\n"
    )
    argv = [sys.executable, "-c", first + COMMAND[2], *COMMAND[3:], "."]
    run = subprocess.Popen(argv, cwd=long_run, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    wait_for_streams(long_run, run)
    os.close(ours)
    assert run.wait(60) == 130
    assert kinds(long_run) == {"sealed"}
    assert not talk.exists()
    gone(run.pid)


@pytest.mark.faults
def test_a_run_under_nohup_goes_on(shop: Path) -> None:
    argv = ["nohup", *COMMAND, "shop/cart.py", "shop/pricing.py", "--quiet"]
    run = subprocess.Popen(argv, cwd=shop, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_for_streams(shop, run, least=1)
    run.send_signal(signal.SIGHUP)
    _, talk = run.communicate(timeout=120)
    assert run.returncode != 130
    assert b"Cancelled" not in talk
    assert kinds(shop) == {"sealed"}
