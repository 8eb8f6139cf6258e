"""Row 17: Ctrl-C, TERM and HUP at random moments of a real `remora analyze`.

A nursery process imports Remora once and forks a command for every interrupt. Orphans come to the nursery, whatever
session they are in, so a child that is left behind cannot hide.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from projects import leave_out_plugins
from remora.trace import Library

TIMES = int(os.environ.get("TEST_INTERRUPTS", "500"))
LIMIT_S = 2.0
CODES = {0: (0,), 1: (130, 0), 2: (130, 0, -1, -2, -15)}
"""By how often it was interrupted. Zero where it had ended anyway; the system's own where it ended in between."""

NURSERY = """
import ctypes, json, os, signal, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
import asyncio, pydantic_monty, rich, tree_sitter, typer, yaml
import remora.cli._analyze, remora.discovery, remora.engines, remora.inference, remora.sandbox, remora.scripts

def mark():
    os.write(begun[1], b".")

def command(order):
    os.setsid()
    os.chdir(order["cwd"])
    for number, path in ((1, os.devnull), (2, order["stderr"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.argv = ["remora", *order["argv"]]
    exec(order["first"])
    from remora.cli import main
    mark()
    main()

def wait(pid, until):
    'The exit status, if it ended by then.'
    while time.perf_counter() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.0005)
    return None

def left(until):
    'The children that have not ended by then. They are killed, so that the next play is not blamed for them.'
    while time.perf_counter() < until:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return []
    pids = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    names = [open(f"/proc/{pid}/cmdline").read().replace("\\0", " ")[:300] for pid in pids]
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)
        os.waitpid(int(pid), 0)
    return names

def play(pid, signals):
    began = sent = time.perf_counter()
    told = {"sent": 0}
    status = None
    for delay, name, everyone in signals:
        status = wait(pid, sent + delay)
        if status is not None:
            break
        sent = time.perf_counter() if told["sent"] == 0 else sent
        (os.killpg if everyone else os.kill)(pid, getattr(signal, name))
        told["sent"] += 1
    if status is None:
        status = wait(pid, time.perf_counter() + 60)
    ended = time.perf_counter()
    if status is None:
        os.killpg(pid, signal.SIGKILL)
        return told | {"code": None, "seconds": ended - sent, "left": left(ended + 1)}
    # A child that is left behind never ends. One that is ending may have to wait for a busy processor.
    still = left(ended + 20)
    return told | {"code": os.waitstatus_to_exitcode(status), "seconds": ended - sent, "left": still}

print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    begun = os.pipe()
    pid = os.fork()
    if pid == 0:
        command(order)  # and ends by itself, as a program does
        sys.exit(0)
    os.close(begun[1])
    for _ in range(order["marks"]):
        os.read(begun[0], 1)  # nothing once it has ended
    print(json.dumps(play(pid, order["signals"])), flush=True)
    os.close(begun[0])
"""

Signals = list[tuple[float, str, bool]]


class Nursery:
    """Runs commands that are interrupted."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def play(self, project: Path, signals: Signals, *, first: str = "", paths: str = "src") -> dict[str, Any]:
        """How `remora analyze` ended. The time until a signal counts from its start, or with `first` from `mark()`."""
        argv = ["analyze", paths, "--policy", "scripted", "--quiet"]
        order = {"cwd": str(project), "stderr": str(project.parent / "stderr"), "argv": argv}
        order |= {"signals": signals, "first": first, "marks": 2 if first else 1}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline()) | {"stderr": (project.parent / "stderr").read_text()}


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    if sys.platform != "linux":
        pytest.skip("orphans can be taken in only on Linux")
    started = Nursery()
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "remora.yaml").touch()
    leave_out_plugins(folder)
    (folder / "src" / "a.py").write_text("import os\nimport sys\n\n\ndef a():\n    import json\n")
    (folder / "src" / "b.py").write_text("import os\n\n\ndef b():\n    import re\n    return 1\n")
    return folder


def sources(project: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (project / "src").rglob("*")}


class Checker:
    """Holds what each interrupt left behind against what must hold."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.before = sources(project)
        self.found: Counter[str] = Counter()
        self.slowest = 0.0
        self.wrong: list[str] = []

    def look(self, told: dict[str, Any]) -> None:
        state = self.project / ".agentfs"
        reports = Library(state).verify(None) if state.exists() else []
        self.found["interrupted"] += told["sent"] > 0
        self.found["sealed" if all(r.status == "sealed" for r in reports if r.kind == "traces") else "unsealed"] += 1
        self.found["before any stream"] += not reports
        if told["sent"]:
            self.slowest = max(self.slowest, told["seconds"])
        problems = {
            "a damaged stream": any(report.status == "damaged" for report in reports),
            "a child left": bool(told["left"]),
            f"exit code {told['code']}": told["code"] not in CODES[told["sent"]],
            f"{told['seconds']:.1f} s": told["sent"] > 0 and told["seconds"] > LIMIT_S,
            "a changed file": sources(self.project) != self.before,
            "a traceback": told["sent"] == 1 and _traceback(told["stderr"]),
        }
        self.wrong += [f"{name}: {told}" for name, is_so in problems.items() if is_so]


def _traceback(stderr: str) -> bool:
    """Whether one ended the command. Where asyncio was making its loop, it warns of half a loop: that ends nothing."""
    return "Traceback" in stderr and "Exception ignored in" not in stderr


def random_signals(chance: random.Random, whole_s: float) -> Signals:
    """One interrupt, as a terminal or a service manager sends it, and sometimes an impatient second one."""
    kind = chance.choice([("SIGINT", True), ("SIGINT", False), ("SIGTERM", False), ("SIGHUP", True)])
    first = [(chance.random() * whole_s, *kind)]
    return first if chance.random() < 0.7 else [*first, (chance.random() * 0.2, *kind)]


@pytest.mark.faults
def test_an_interrupt_at_any_moment_leaves_valid_streams_and_no_child(
    nursery: Nursery, project: Path, record_property: Callable[[str, object], None]
) -> None:
    chance, checker = random.Random(17), Checker(project)
    whole_s = nursery.play(project, [])["seconds"]
    for number in range(TIMES):
        checker.look(nursery.play(project, random_signals(chance, whole_s)))
        if number % 10 == 9:
            shutil.rmtree(project / ".agentfs", ignore_errors=True)  # to verify again what was verified takes long
    found = ", ".join(f"{count} {name}" for name, count in sorted(checker.found.items()))
    record_property("row 17", f"{TIMES}: {found}; slowest {checker.slowest:.2f} s; {len(checker.wrong)} wrong")
    assert not checker.wrong, "\n".join(checker.wrong)
    assert checker.found["interrupted"] > TIMES // 2, "most came too late: the test tests little"


STUCK = "import remora.app._session as s; s.Session.runner = lambda *_: [mark(), time.sleep(4)]"
"""Seeds what no care in the run could end: the main thread is stuck, and marks when."""


def test_one_that_is_stuck_ends_at_the_limit_and_at_once_when_told_twice(nursery: Nursery, project: Path) -> None:
    once = nursery.play(project, [(0.0, "SIGTERM", False)], first=STUCK)
    assert (once["code"], once["left"], "Traceback" in once["stderr"]) == (130, [], False)
    twice = nursery.play(project, [(0.0, "SIGINT", False), (0.1, "SIGINT", False)], first=STUCK)
    assert (twice["code"], twice["left"]) == (130, [])
    assert twice["seconds"] < once["seconds"]


@pytest.mark.faults
def test_without_the_second_thread_a_stuck_one_is_seen(nursery: Nursery, project: Path) -> None:
    deaf = "import remora.cli._signals as s; s._count = lambda *_: None; import remora.cli as c"
    told = nursery.play(project, [(0.0, "SIGTERM", False)], first=f"{deaf}; {STUCK}")
    assert told["seconds"] > LIMIT_S
