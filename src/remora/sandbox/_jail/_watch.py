"""Watches over the program and all it starts: ends them when one is done, or when together they take too much."""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

EVERY_MS = 40
KILL, STOP = 9, 19
MAX_SWEEPS = 200
_PAGE = os.sysconf("SC_PAGE_SIZE")
MB = 1024 * 1024


def watch(main: int, limits: dict[str, Any], areas: Sequence[str], *, everyone: bool) -> dict[str, Any]:
    """How `main` ended, or which limit was reached. `everyone`: all visible processes count, else our children."""
    end = select.poll()
    end.register(os.pidfd_open(main), select.POLLIN)
    while True:
        status = _reap(main)
        if status is not None:
            return {"returncode": os.waitstatus_to_exitcode(status)}
        reached = _reached(limits, areas, everyone=everyone)
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


def _reached(limits: dict[str, Any], areas: Sequence[str], *, everyone: bool) -> str | None:
    pids = list(_visible() if everyone else descendants(os.getpid()))
    if len(pids) > limits["processes"]:
        return f"{limits['processes']} processes"
    written = _written(areas)
    if written > limits["disk"]:
        return f"{limits['disk'] // MB} MB of files"
    if _resident(pids) + written > limits["memory"] and _shared_out(pids) + written > limits["memory"]:
        return f"{limits['memory'] // MB} MB of memory"
    return None


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


def _resident(pids: Iterable[int]) -> int:
    return sum(_resident_of(pid) for pid in pids)


def _resident_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _shared_out(pids: Iterable[int]) -> int:
    """Memory with each page counted once, however many have it. Slower, so only asked when it matters."""
    return sum(_proportional(pid) for pid in pids)


def _proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(b"Pss:")) * 1024
    except (OSError, StopIteration):
        return _resident_of(pid)


def _written(areas: Sequence[str]) -> int:
    """Bytes in the private file systems."""
    total = 0
    for area in areas:
        usage = os.statvfs(area)
        total += (usage.f_blocks - usage.f_bfree) * usage.f_frsize
    return total
