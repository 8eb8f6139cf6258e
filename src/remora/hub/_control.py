"""Starting and stopping the daemon, and its status."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from remora.errors import HubError, KVError
from remora.hub._catch_up import make_state_dir
from remora.hub._lock import Holder, WriterLock
from remora.hub._models import DB, FILE_KEY, LOG, FileIndex
from remora.kv import KVManager, TypedKVRepository

READY_S = 120.0
STOP_S = 5.0


@dataclass(frozen=True)
class HubStatus:
    """The status of a project's Hub."""

    daemon: str
    """`running`, `silent` if its process does not respond, `none`; `index` while another process indexes on demand."""
    pid: int | None
    since: str
    index: str
    """`ready`, `absent`, or the problem."""
    files: int
    nodes: int
    bytes: int
    path: str


def start_daemon(root: Path, state_dir: Path, exclude: Sequence[str] = (), *, module: str = "remora.hub") -> Holder:
    """Start a daemon and wait until it misses no change. Raises `HubError` if one is running or it does not start.

    `module` is the module to run. It may pass the daemon more than its arguments can.
    """
    make_state_dir(state_dir)
    lock = WriterLock(state_dir)
    if (holder := lock.holder()) and holder.role == "daemon":
        raise HubError(f"A daemon is running already: process {holder.pid}", hint="`remora hub stop` ends it")
    read_end, write_end = os.pipe()
    log = os.open(state_dir / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _spawn([module, str(write_end), str(root), str(state_dir), *exclude], write_end, log)
    finally:
        os.close(log)
        os.close(write_end)
    answer = _wait_until_ready(read_end)
    if answer != "ready":
        raise HubError(f"The daemon did not start: {answer}", hint=f"See `{state_dir / LOG}`")
    holder_now = lock.holder()
    if holder_now is None:
        raise HubError("The daemon ended at once", hint=f"See `{state_dir / LOG}`")
    return holder_now


def _spawn(arguments: Sequence[str], write_end: int, log: int) -> None:
    """Start a process in its own session: it outlives the terminal and gets none of its signals."""
    subprocess.run(
        [sys.executable, "-P", "-m", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=[write_end],
        start_new_session=True,
        cwd="/",
        check=True,
    )


def _wait_until_ready(read_end: int) -> str:
    try:
        ready, _, _ = select.select([read_end], [], [], READY_S)
        answer = os.read(read_end, 4096).decode("utf-8", "replace") if ready else f"no answer in {READY_S:.0f} s"
    finally:
        os.close(read_end)
    return answer or "it ended"


def stop_daemon(state_dir: Path) -> int | None:
    """Stop the daemon and return its process id. Kills it if it does not respond."""
    lock = WriterLock(state_dir)
    holder = lock.holder()
    if holder is None or holder.role != "daemon":
        return None
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(holder.pid, number)
            os.kill(holder.pid, signal.SIGCONT)  # a stopped process handles no other signal
        until = time.monotonic() + STOP_S
        while time.monotonic() < until:
            holder_now = lock.holder()
            if holder_now is None or holder_now.pid != holder.pid:
                return holder.pid
            time.sleep(0.01)
    raise HubError(f"The daemon (process {holder.pid}) does not end")


async def status(state_dir: Path) -> HubStatus:
    """Whether a daemon is running, and the size of the index."""
    holder = WriterLock(state_dir).holder() if state_dir.is_dir() else None
    path = state_dir / DB
    files: list[FileIndex] = []
    index = "ready" if path.exists() else "absent"
    try:
        async with KVManager(path, durable=False) as kv:
            files = await TypedKVRepository(kv, FILE_KEY, FileIndex).list_all()
    except KVError as error:
        index = error.message
    return HubStatus(
        _role(holder),
        holder.pid if holder else None,
        holder.since if holder else "",
        index,
        len(files),
        sum(len(file.nodes) + 1 for file in files),
        path.stat().st_size if path.exists() else 0,
        str(path),
    )


def _role(holder: Holder | None) -> str:
    if holder is None:
        return "none"
    if holder.role != "daemon":
        return "index"
    return "running" if holder.is_daemon else "silent"
