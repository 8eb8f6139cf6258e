"""Watches over the program and all it starts: ends them when one is done, or when together they take too much."""

from __future__ import annotations

import os
import select

from . import _kernel as kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

EVERY_MS = 40
KILL, STOP = 9, 19
MAX_SWEEPS = 200
LOOKS_BETWEEN = 5
"""Locks are looked at this seldom: few programs have any."""
MB = 1024 * 1024


def watch(main: int, limits: dict[str, Any], areas: Sequence[str], *, everyone: bool) -> dict[str, Any]:
    """How `main` ended, or which limit was reached. `everyone`: all visible processes count, else our children."""
    end = select.poll()
    end.register(os.pidfd_open(main), select.POLLIN)
    look = _Look(limits, areas, everyone=everyone)
    while True:
        status = _reap(main)
        if status is not None:
            return {"returncode": os.waitstatus_to_exitcode(status)}
        reached = look.reached()
        if reached is not None:
            return {"limit": reached}
        end.poll(EVERY_MS)


def _reap(main: int) -> int | None:
    """Every child that ended is gone; the main one's status, if it is among them."""
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


class _Look:
    """Looks at what the program and its kin use together."""

    def __init__(self, limits: dict[str, Any], areas: Sequence[str], *, everyone: bool) -> None:
        self._limits = limits
        self._areas = areas
        self._everyone = everyone
        # Only in a network of their own are all sockets theirs.
        self._sockets = kernel.Sockets() if everyone else None
        self._looks = 0

    def reached(self) -> str | None:
        """The limit that they have reached, if they have."""
        limits = self._limits
        self._looks += 1
        pids = list(_visible() if self._everyone else descendants(os.getpid()))
        if len(pids) > limits["processes"]:
            return f"{limits['processes']} processes"
        written, inodes = kernel.written(self._areas)
        if written > limits["disk"]:
            return f"{limits['disk'] // MB} MB of files"
        if self._everyone and self._looks % LOOKS_BETWEEN == 0 and kernel.too_many_locks():
            return f"{kernel.LOCKS} locks on files"
        beside = written + inodes + (self._sockets.held() if self._sockets else 0)
        return f"{limits['memory'] // MB} MB of memory" if _exceed(limits["memory"] - beside, pids) else None


def _exceed(room: int, pids: Sequence[int]) -> bool:
    """Whether the processes, and what the kernel keeps for them, take more than `room` bytes."""
    memory = [kernel.process_memory(pid) for pid in pids]
    room -= sum(kept for _, kept in memory)
    if sum(resident for resident, _ in memory) <= room:
        return False
    if max((resident for resident, _ in memory), default=0) > room:
        return True
    # Pages that several have were counted for each. Once for all takes far longer, so it is only asked now.
    for pid in pids:
        room -= kernel.proportional(pid)
        if room < 0:
            return True
    return False


def _visible() -> Iterator[int]:
    own = os.getpid()
    return (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own)


def descendants(root: int) -> list[int]:
    """Everyone below `root`, as their parents say now."""
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
    """No one is left below `root`, which must stay meanwhile: stopped, or taking in orphans."""
    for _ in range(MAX_SWEEPS):
        if not _end_those_found(root):
            return


def _end_those_found(root: int) -> bool:
    """Whether anyone was found below `root`. All are held still before the first one dies, so that none is orphaned."""
    held: dict[int, int] = {}
    try:
        while new := [pid for pid in descendants(root) if pid not in held and _state(pid) not in (b"Z", b"X", b"")]:
            caught = {pid: process for pid in new if (process := _hold(pid, root)) is not None}
            held |= caught
            if not caught:
                break
        for process in held.values():
            _send(process, KILL)
    finally:
        for process in held.values():
            os.close(process)
    return bool(held or new)


def _hold(pid: int, root: int) -> int | None:
    """A handle of the process, now stopped, if it is still below `root`: its number may be someone else's by now."""
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
