"""A cgroup for each command, if available: the kernel then counts all memory, its own included.

Requires cgroup version 2, which counts kernel memory. The cgroup is created in the nearest ancestor of ours that
delegates the memory controller and is writable: as root, or if one was delegated to the user.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from remora.sandbox._plan import MB, Limits

ROOT = Path("/sys/fs/cgroup")
CONTROLLER = "memory"
NAME = "remora"
OWN_PROCESSES = 8
"""Processes of the sandbox itself, which count too."""
EMPTY_S = 2.0
"""How long to wait for killed processes to disappear."""
_TRIAL = 'echo 0 > "$0/cgroup.procs"'


class Cgroup:
    """The cgroup of one command."""

    def __init__(self, place: Path, limits: Limits) -> None:
        """Raises `OSError` if it cannot be created."""
        self._limits = limits
        self.folder = place / f"{NAME}-{os.getpid()}-{secrets.token_hex(4)}"
        self.folder.mkdir()
        try:
            self._write("memory.max", limits.memory)
            self._write("memory.oom.group", 1)
            # Both files are optional: swap accounting may be off, and processes are limited in other ways too.
            for name, bound in (("memory.swap.max", 0), ("pids.max", limits.processes + OWN_PROCESSES)):
                if (self.folder / name).exists():
                    self._write(name, bound)
            self.procs_fd = os.open(self.folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
            """Writing `0` to this descriptor moves the writing process, and all its children, into the cgroup."""
        except OSError:
            self.folder.rmdir()
            raise

    def reached(self) -> str | None:
        """The limit for which the kernel killed the processes, if it did."""
        events = dict(line.split() for line in (self.folder / "memory.events").read_text().splitlines())
        return f"{self._limits.memory // MB} MB of memory" if int(events.get("oom_kill", 0)) else None

    def close(self) -> None:
        """Kill the processes and remove the cgroup."""
        os.close(self.procs_fd)
        with contextlib.suppress(OSError):
            self._write("cgroup.kill", 1)
        until = time.monotonic() + EMPTY_S
        while not _remove(self.folder) and time.monotonic() < until:
            time.sleep(0.002)

    def _write(self, name: str, value: int) -> None:
        (self.folder / name).write_text(str(value))


def find_place() -> tuple[Path | None, str]:
    """Find the folder where cgroups for commands can be created, or `None` and the reason."""
    if not (ROOT / "cgroup.controllers").exists():
        return None, "this system has no cgroup version 2 with the memory controller"
    problem = "no cgroup above ours delegates the memory controller"
    for place in _ancestors():
        if CONTROLLER not in _text(place / "cgroup.subtree_control").split():
            continue
        problem = _try(place)
        if not problem:
            _remove_stale(place)
            return place, ""
    return None, problem


def _ancestors() -> Iterator[Path]:
    """Our own cgroup and its ancestors, nearest first."""
    own = next((line[3:] for line in _text(Path("/proc/self/cgroup")).splitlines() if line.startswith("0::")), "/")
    folder = ROOT / own.strip("/")
    yield from (place for place in (folder, *folder.parents) if place.is_relative_to(ROOT))


def _try(place: Path) -> str:
    """Why no process can be moved into a cgroup there; empty if it works."""
    try:
        trial = Cgroup(place, Limits())
    except OSError as error:
        return f"cannot create a cgroup in `{place}`: {error.strerror}"
    try:
        # The process moves itself, as a command will.
        done = subprocess.run(["/bin/sh", "-c", _TRIAL, str(trial.folder)], capture_output=True, check=False, env={})
        return "" if done.returncode == 0 else f"cannot move a process into a cgroup in `{place}`"
    finally:
        trial.close()


def _remove_stale(place: Path) -> None:
    """Remove cgroups that a killed Remora left behind."""
    for folder in place.glob(f"{NAME}-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not Path("/proc", pid).exists():
            _remove(folder)


def _remove(folder: Path) -> bool:
    """Remove the cgroup. Returns False while it still has processes."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
