"""Watches over the program and all it starts: ends them when one is done, or when together they take too much."""

from __future__ import annotations

import os
import select
import time

from . import _kernel as kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

EVERY_MS = 40
KILL, STOP = 9, 19
MAX_SWEEPS = 200
MANY, BEHIND = 16, 10
"""So many processes are made nicer than the watch: it must have its turn before hundreds of busy ones have theirs."""
SELDOM_S, MAPPINGS_S = 0.2, 0.04
"""How seldom locks and mappings are looked at, and how long mappings: it takes longer than all the rest."""
SHARES_S = 2.0
"""How long it may take to find what each has for itself: who makes that slow has its pages counted for each."""
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
        self._due = 0.0
        self._mapped: dict[int, int] = {}
        self._behind: set[int] = set()

    def reached(self) -> str | None:
        """The limit that they have reached, if they have."""
        limits = self._limits
        is_due = time.monotonic() >= self._due
        if is_due:
            self._due = time.monotonic() + SELDOM_S
        pids = list(_visible() if self._everyone else descendants(os.getpid()))
        if len(pids) > limits["processes"]:
            return f"{limits['processes']} processes"
        if len(pids) > MANY:
            self._put_behind(pids)
        written, inodes = kernel.written(self._areas)
        if written > limits["disk"]:
            return f"{limits['disk'] // MB} MB of files"
        if self._everyone and is_due and kernel.too_many_locks():
            return f"{kernel.LOCKS} locks on files"
        beside = written + inodes + self._mappings(pids, is_due=is_due) + (self._sockets.held() if self._sockets else 0)
        return f"{limits['memory'] // MB} MB of memory" if _exceed(limits["memory"] - beside, pids) else None

    def _put_behind(self, pids: Sequence[int]) -> None:
        for pid in set(pids) - self._behind:
            try:
                os.setpriority(os.PRIO_PROCESS, pid, BEHIND)
            except OSError:
                continue
        self._behind = set(pids)

    def _mappings(self, pids: Sequence[int], *, is_due: bool) -> int:
        """What the kernel keeps about their mappings, as far as was seen by now: in turn, for a short time each."""
        now = set(pids)
        # In the order in which they were last looked at, those that are new first.
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
    """Whether the processes, and what the kernel keeps for them, take more than `room` bytes."""
    memory = [kernel.process_memory(pid) for pid in pids]
    room -= sum(kept for _, kept in memory)
    if sum(resident for resident, _ in memory) <= room:
        return False
    if max((resident for resident, _ in memory), default=0) > room:
        return True
    # Pages that several have were counted for each. Once for all takes far longer, so it is only asked now.
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
