"""Supervises the program and its descendants: kills them when it ends, or when together they exceed a limit."""

from __future__ import annotations

import os
import select
import time

from . import _kernel as kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

INTERVAL_MS = 40
KILL, STOP = 9, 19
MAX_SWEEPS = 200
MANY, NICE = 16, 10
"""With more than `MANY` processes, their nice value is raised by `NICE`, so that the supervisor still gets CPU time."""
SLOW_CHECK_S, MAPPINGS_S = 0.2, 0.04
"""Interval between checks of locks and mappings, and time for the mappings: they take longer than all other checks."""
SHARES_S = 2.0
"""Seconds for reading proportional set sizes. After that, resident sizes count instead."""
MB = 1024 * 1024


def watch(main: int, limits: dict[str, Any], areas: Sequence[str], *, everyone: bool) -> dict[str, Any]:
    """Wait for `main` to end or a limit to be reached.

    `everyone`: all visible processes count, else only descendants.
    """
    end = select.poll()
    end.register(os.pidfd_open(main), select.POLLIN)
    monitor = _UsageMonitor(limits, areas, everyone=everyone)
    while True:
        status = _reap(main)
        if status is not None:
            return {"returncode": os.waitstatus_to_exitcode(status)}
        reached = monitor.reached()
        if reached is not None:
            return {"limit": reached}
        end.poll(INTERVAL_MS)


def _reap(main: int) -> int | None:
    """Reap ended children. Returns the status of `main` if it is among them."""
    found = None
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return found
            if pid == main:
                found = status
    except ChildProcessError:
        return found


class _UsageMonitor:
    """Measures what the program and its descendants use together."""

    def __init__(self, limits: dict[str, Any], areas: Sequence[str], *, everyone: bool) -> None:
        self._limits = limits
        self._areas = areas
        self._everyone = everyone
        # Only in a private network namespace do all sockets belong to the program.
        self._sockets = kernel.Sockets() if everyone else None
        self._due = 0.0
        self._mapped: dict[int, int] = {}
        self._lowered: set[int] = set()

    def reached(self) -> str | None:
        """The limit that they have reached, if any."""
        limits = self._limits
        is_due = time.monotonic() >= self._due
        if is_due:
            self._due = time.monotonic() + SLOW_CHECK_S
        pids = list(_visible() if self._everyone else descendants(os.getpid()))
        if len(pids) > limits["processes"]:
            return f"{limits['processes']} processes"
        if len(pids) > MANY:
            self._lower_priority(pids)
        written, inodes = kernel.written(self._areas)
        if written > limits["disk"]:
            return f"{limits['disk'] // MB} MB of files"
        if self._everyone and is_due and kernel.too_many_locks():
            return f"{kernel.LOCKS} locks on files"
        beside = written + inodes + self._mappings(pids, is_due=is_due) + (self._sockets.held() if self._sockets else 0)
        return f"{limits['memory'] // MB} MB of memory" if _exceed(limits["memory"] - beside, pids) else None

    def _lower_priority(self, pids: Sequence[int]) -> None:
        for pid in set(pids) - self._lowered:
            try:
                os.setpriority(os.PRIO_PROCESS, pid, NICE)
            except OSError:
                continue
        self._lowered = set(pids)

    def _mappings(self, pids: Sequence[int], *, is_due: bool) -> int:
        """Kernel memory for their mappings, as far as measured: round-robin, for a short time per call."""
        now = set(pids)
        # Least recently measured first, new processes before them.
        known = {pid: held for pid, held in self._mapped.items() if pid in now}
        self._mapped = {pid: 0 for pid in pids if pid not in known} | known
        if is_due:
            until = time.monotonic() + MAPPINGS_S
            for pid in list(self._mapped):
                self._mapped.pop(pid)
                self._mapped[pid] = kernel.mappings(pid)
                if time.monotonic() > until:
                    break
        return sum(self._mapped.values())


def _exceed(room: int, pids: Sequence[int]) -> bool:
    """Whether the processes, with their kernel memory, use more than `room` bytes."""
    memory = [kernel.process_memory(pid) for pid in pids]
    room -= sum(kept for _, kept in memory)
    if sum(resident for resident, _ in memory) <= room:
        return False
    if max((resident for resident, _ in memory), default=0) > room:
        return True
    # Shared pages were counted for each process. Proportional sizes are exact but slow, so they are read only now.
    until = time.monotonic() + SHARES_S
    for pid, (resident, _) in zip(pids, memory, strict=True):
        room -= kernel.proportional(pid) if time.monotonic() < until else resident
        if room < 0:
            return True
    return False


def _visible() -> Iterator[int]:
    own = os.getpid()
    return (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own)


def descendants(root: int) -> list[int]:
    """All descendants of `root`, by current parent."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(int(name))
            children.setdefault(parent, []).append(int(name))
    found, rest = [], list(children.get(root, ()))
    while rest:
        pid = rest.pop()
        found.append(pid)
        rest += children.get(pid, ())
    return found


def end_descendants(root: int) -> None:
    """Kill all descendants of `root`. It must stay alive meanwhile: stopped, or a subreaper."""
    for _ in range(MAX_SWEEPS):
        if not _kill_found(root):
            return


def _kill_found(root: int) -> bool:
    """Kill the descendants found now. Returns False if there were none. All are stopped before the first is killed."""
    held: dict[int, int] = {}
    try:
        while new := [pid for pid in descendants(root) if pid not in held and _state(pid) not in (b"Z", b"X", b"")]:
            caught = {pid: process for pid in new if (process := _stop(pid, root)) is not None}
            held |= caught
            if not caught:
                break
        for process in held.values():
            _send(process, KILL)
    finally:
        for process in held.values():
            os.close(process)
    return bool(held or new)


def _stop(pid: int, root: int) -> int | None:
    """Stop the process and return a pidfd, if it is still below `root`: its pid may have been reused."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return None
    if _is_below(pid, root) and _send(process, STOP):
        return process
    os.close(process)
    return None


def _send(process: int, number: int) -> bool:
    import signal

    try:
        signal.pidfd_send_signal(process, number)
    except OSError:
        return False
    return True


def _is_below(pid: int, root: int) -> bool:
    while pid > 1:
        pid = _parent(pid)
        if pid == root:
            return True
    return False


def _state(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b""


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return -1
