"""Row 23: a fork bomb, a daemon, a memory hog, endless output and a disk filler are dead at their limit, with all kin.

Every process of an attack has a mark in its command line, so that a survivor is found wherever it went.
"""

from __future__ import annotations

import asyncio
import os
import select
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from remora.errors import ToolLimitExceeded
from remora.sandbox import Limits, LocalSpawner
from sandbox.boxes import KINDS, NONE, any_box, box, no_plugins

pytestmark = pytest.mark.faults
MB = 1024 * 1024
LIMITS = Limits(memory=256 * MB, processes=64, disk=64 * MB)
LIMIT_S = 10.0
GRACE_S = 2.0
ARGV = ["pytest", "-q", "-s", "--no-header"]

ATTACKS: dict[str, tuple[str, str]] = {
    "fork bomb": ("import os\nwhile True:\n    os.fork()\n", "processes|s$"),
    "fork bomb of shells": (
        "import os, sys\nos.execv('/bin/sh', ['sh', '-c', 'b() { b | b & }; b; sleep 600', sys.argv[1]])\n",
        "processes|s$",
    ),
    "fork bomb of daemons": (
        "import os\nwhile True:\n    if os.fork() == 0:\n        os.setsid()\n",
        "processes|s$",
    ),
    "thread bomb": (
        "import threading, time\n"
        "while True:\n"
        "    try: threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    except RuntimeError: pass\n",
        "s$|memory",
    ),
    "daemon": (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "time.sleep(600)\n",
        "s$",
    ),
    "memory hog": ("kept = []\nwhile True:\n    kept.append(bytearray(b'x') * 10_000_000)\n", "MB of memory"),
    "memory hog of many": (
        "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n"
        "        kept = bytearray(b'x') * 30_000_000\n        time.sleep(600)\ntime.sleep(600)\n",
        "MB of memory",
    ),
    "shared memory hog": (
        "import mmap\nkept = []\nwhile True:\n"
        "    kept.append(mmap.mmap(-1, 10_000_000))\n    kept[-1].write(b'x' * 10_000_000)\n",
        "MB of memory",
    ),
    "endless output": ("import os\nwhile True:\n    os.write(1, b'x' * 65536)\n", "MB of output"),
    "endless errors": ("import os\nwhile True:\n    os.write(2, b'x' * 65536)\n", "MB of output"),
    "disk filler": (
        "n = 0\nwhile True:\n    n += 1\n"
        "    try: open(f'/tmp/{n % 1000}', 'wb').write(b'x' * 1_000_000)\n    except OSError: pass\n",
        "s$|MB of files|memory",
    ),
    "disk filler in the project": (
        "n = 0\nwhile True:\n    n += 1\n"
        "    try: open(f'fill{n % 1000}', 'wb').write(b'x' * 1_000_000)\n    except OSError: pass\n",
        "s$|MB of files|memory",
    ),
    "one endless file": ("import os\nwhile True:\n    os.write(file, b'x' * 65536)\n", "s$|MB of files|memory"),
    "deaf to signals": (
        "import signal, time\n"
        "for number in range(1, 65):\n"
        "    try: signal.signal(number, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
        "time.sleep(600)\n",
        "s$",
    ),
    "stopped": ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n", "s$"),
}


@pytest.fixture
def mark() -> str:
    """What every process of an attack has in its command line."""
    return f"remora-attack-{os.getpid()}-{time.monotonic_ns()}"


def project(tmp_path: Path, attack: str, mark: str) -> Path:
    (tmp_path / "pytest.ini").write_text(no_plugins())
    (tmp_path / "attack.py").write_text("file = open('/tmp/x', 'wb').fileno()\n" if "(file" in attack else "")
    with (tmp_path / "attack.py").open("a") as file:
        file.write(attack)
    # In a process of its own, whose command line is known and inherited by every fork of it.
    (tmp_path / "conftest.py").write_text(
        f"import subprocess, sys, time\nsubprocess.run([sys.executable, 'attack.py', {mark!r}])\ntime.sleep(600)\n"
    )
    return tmp_path


def survivors(mark: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_is_dead_at_its_limit_with_all_its_kin(
    name: str, kind: str, tmp_path: Path, mark: str, record_property: Callable[[str, object], None]
) -> None:
    attack, limit = ATTACKS[name]
    spawner = LocalSpawner(report=box(kind), limits=LIMITS, max_output=16 * MB)
    began = time.monotonic()
    with pytest.raises(ToolLimitExceeded, match=limit):
        await spawner.run(ARGV, cwd=project(tmp_path, attack, mark), limit_s=LIMIT_S)
    took = time.monotonic() - began
    assert survivors(mark) == []
    assert took < LIMIT_S + GRACE_S
    record_property(f"row 23 {kind} {name}", f"dead after {took:.1f} s (limit {LIMIT_S:g} s), 0 survived")


@pytest.mark.parametrize("name", ["daemon", "endless output", "memory hog", "deaf to signals"])
async def test_the_same_without_a_sandbox_leaves_no_one_either(name: str, tmp_path: Path, mark: str) -> None:
    attack, limit = ATTACKS[name]
    spawner = LocalSpawner(report=NONE, allow_unsandboxed=True, limits=LIMITS, max_output=16 * MB)
    with pytest.raises(ToolLimitExceeded, match=limit):
        await spawner.run(ARGV, cwd=project(tmp_path, attack, mark), limit_s=5)
    assert survivors(mark) == []


async def test_cancelling_leaves_no_daemon(tmp_path: Path, mark: str) -> None:
    spawner = LocalSpawner(report=any_box())
    root = project(tmp_path, ATTACKS["daemon"][0], mark)
    running = asyncio.ensure_future(spawner.run(ARGV, cwd=root, limit_s=600))
    while len(await asyncio.to_thread(survivors, mark)) < 2:
        assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert survivors(mark) == []


def test_when_remora_itself_is_killed_no_one_is_left(tmp_path: Path, mark: str) -> None:
    any_box()
    root = project(tmp_path, ATTACKS["daemon"][0], mark)
    read, write = os.pipe()
    remora = os.fork()
    if remora == 0:
        os.close(read)
        os.set_inheritable(write, False)
        asyncio.run(LocalSpawner().run(ARGV, cwd=root, limit_s=600))
        os._exit(0)
    os.close(write)
    while len(survivors(mark)) < 2:
        assert not select.select([read], [], [], 0)[0]
    os.kill(remora, 9)
    os.waitpid(remora, 0)
    until = time.monotonic() + 10
    while survivors(mark) and time.monotonic() < until:
        os.sched_yield()
    assert survivors(mark) == []
