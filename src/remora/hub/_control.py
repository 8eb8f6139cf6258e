"""Starting, stopping and asking about the daemon."""

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
    """How the Hub of a project is."""

    daemon: str
    """`running`, `silent` where its process shows no sign of life, `none`; `index` while someone indexes on demand."""
    pid: int | None
    since: str
    index: str
    """`ready`, `absent`, or what is wrong with it."""
    files: int
    nodes: int
    bytes: int
    path: str


def start_daemon(root: Path, state_dir: Path, exclude: Sequence[str] = (), *, module: str = "remora.hub") -> Holder:
    """A daemon runs, and no change is missed any more. Raises `HubError` if one runs already or none comes up.

    `module` is what is run: it may give the daemon more than its arguments can.
    """
    make_state_dir(state_dir)
    lock = WriterLock(state_dir)
    if (holder := lock.holder()) and holder.role == "daemon":
        raise HubError(f"A daemon is running already: process {holder.pid}", hint="`remora hub stop` ends it")
    heard, told = os.pipe()
    log = os.open(state_dir / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _spawn([module, str(told), str(root), str(state_dir), *exclude], told, log)
    finally:
        os.close(log)
        os.close(told)
    said = _hear(heard)
    if said != "ready":
        raise HubError(f"The daemon did not start: {said}", hint=f"See `{state_dir / LOG}`")
    found = lock.holder()
    if found is None:
        raise HubError("The daemon ended at once", hint=f"See `{state_dir / LOG}`")
    return found


def _spawn(arguments: Sequence[str], told: int, log: int) -> None:
    """A process in a session of its own: it outlives the terminal and gets none of its signals."""
    subprocess.run(
        [sys.executable, "-P", "-m", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=[told],
        start_new_session=True,
        cwd="/",
        check=True,
    )


def _hear(heard: int) -> str:
    try:
        ready, _, _ = select.select([heard], [], [], READY_S)
        said = os.read(heard, 4096).decode("utf-8", "replace") if ready else f"no word from it in {READY_S:.0f} s"
    finally:
        os.close(heard)
    return said or "it ended"


def stop_daemon(state_dir: Path) -> int | None:
    """No daemon runs; gives the process that was stopped. One that does not answer is killed."""
    lock = WriterLock(state_dir)
    holder = lock.holder()
    if holder is None or holder.role != "daemon":
        return None
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(holder.pid, number)
            os.kill(holder.pid, signal.SIGCONT)  # a stopped process hears nothing else
        until = time.monotonic() + STOP_S
        while time.monotonic() < until:
            found = lock.holder()
            if found is None or found.pid != holder.pid:
                return holder.pid
            time.sleep(0.01)
    raise HubError(f"The daemon (process {holder.pid}) does not end")


async def status(state_dir: Path) -> HubStatus:
    """Whether a daemon runs, and what the index holds."""
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
