"""Row 23: memory that tests hold in the kernel, where no process has it, stays near the limit, however it is held."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faults.kernel_memory import ATTACKS, PRELUDE
from remora.errors import ToolLimitExceeded
from remora.sandbox import Limits, LocalSpawner
from sandbox.boxes import KINDS, box, no_plugins

pytestmark = pytest.mark.faults
MB = 1024 * 1024
LIMIT_MB = 256
MOST_MB = 4 * LIMIT_MB
"""What may be taken at the worst moment: the watch looks every 40 ms."""
WATCH = 208
"""Bytes of one `epoll` watch: 128 for the item, 80 for its entry in the file's wait queue."""
ARGV = ["pytest", "-q", "-s", "--no-header"]
END = "\nprint(len(kept), flush=True)\ntime.sleep(600)\n"


def available_mb() -> int:
    return int(re.search(r"MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text())[1]) // 1024  # type: ignore[index]


def memory_of_others() -> dict[int, int]:
    """The memory in bytes that each process has for itself, but for this one and those that descend from it."""
    parents, own = {}, {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            parents[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            size, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
        except OSError:
            continue  # it has ended
        own[pid] = (size - shared) * os.sysconf("SC_PAGE_SIZE")
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {pid: size for pid, size in own.items() if pid not in ours}


def allowed_mb(attack: str) -> int:
    """`epoll` watches are bounded by the kernel for each user, at 4% of the machine's memory, and by nothing else."""
    if "epoll" not in attack:
        return MOST_MB
    watches = int(Path("/proc/sys/fs/epoll/max_user_watches").read_text())
    return MOST_MB + watches * WATCH // MB


class Taken:
    """The most memory that was taken from this machine meanwhile, without what other processes took."""

    def __init__(self) -> None:
        self._available, self._others = available_mb(), memory_of_others()
        self.most_mb = 0

    def look(self) -> None:
        taken = self._available - available_mb()
        if taken > MOST_MB:  # counting the others takes longer than the kernel's own answer
            taken -= sum(size - self._others.get(pid, 0) for pid, size in memory_of_others().items()) // MB
        self.most_mb = max(self.most_mb, taken)


@contextmanager
def looking() -> Iterator[Taken]:
    """Looks all the time."""
    taken, ended = Taken(), threading.Event()

    def look() -> None:
        while not ended.wait(0.01):
            taken.look()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()


def test_memory_that_another_process_takes_is_not_counted() -> None:
    hoard = "import sys; input(); kept = bytearray(b'x') * 13 * 10**8; print(1, flush=True); sys.stdin.read()"
    orphaned = f"import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', {hoard!r}]); os._exit(0)"
    with subprocess.Popen([sys.executable, "-c", orphaned], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        parent.wait()  # from now on the other is no descendant of ours
        assert parent.stdin is not None
        assert parent.stdout is not None
        with looking() as taken:
            parent.stdin.write(b"\n")
            parent.stdin.flush()
            assert parent.stdout.readline()
            taken.look()
    assert taken.most_mb < MOST_MB


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ATTACKS)
async def test_memory_in_the_kernel_stays_near_the_limit(
    name: str, kind: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    report = box(kind)
    (tmp_path / "pytest.ini").write_text(no_plugins())
    (tmp_path / "attack.py").write_text(PRELUDE + ATTACKS[name] + END)
    (tmp_path / "conftest.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'attack.py'])\n")
    with looking() as taken, pytest.raises(ToolLimitExceeded) as stopped:
        await LocalSpawner(report=report, limits=Limits(memory=LIMIT_MB * MB)).run(ARGV, cwd=tmp_path, limit_s=10)
    told = f"+{taken.most_mb} MB at a limit of {LIMIT_MB} MB, ended by {stopped.value.limit}"
    record_property(f"row 23 {kind} {name}", told)
    assert taken.most_mb <= allowed_mb(ATTACKS[name])
