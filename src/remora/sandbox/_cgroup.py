"""A cgroup for each command, where one can be had: the kernel then counts all memory itself, its own included.

Only version 2, where memory of the kernel counts too. A cgroup is made in the nearest folder above ours that hands the
memory controller on and that we may write to: as root, or where one was delegated to the user.
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
"""Processes of the sandbox itself, which count in there too."""
EMPTY_S = 2.0
"""How long the killed may take to be gone."""
_TRIAL = 'echo 0 > "$0/cgroup.procs"'


class Cgroup:
    """One command's own."""

    def __init__(self, place: Path, limits: Limits) -> None:
        """Raises `OSError` where none can be made."""
        self._limits = limits
        self.folder = place / f"{NAME}-{os.getpid()}-{secrets.token_hex(4)}"
        self.folder.mkdir()
        try:
            self._write("memory.max", limits.memory)
            self._write("memory.oom.group", 1)
            # Swap may be off, and processes are limited in other ways too.
            for name, bound in (("memory.swap.max", 0), ("pids.max", limits.processes + OWN_PROCESSES)):
                if (self.folder / name).exists():
                    self._write(name, bound)
            self.door = os.open(self.folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
            """Who writes `0` into this descriptor is in it, and all that it starts."""
        except OSError:
            self.folder.rmdir()
            raise

    def reached(self) -> str | None:
        """The limit for which the kernel ended everyone in it, if it did."""
        events = dict(line.split() for line in (self.folder / "memory.events").read_text().splitlines())
        return f"{self._limits.memory // MB} MB of memory" if int(events.get("oom_kill", 0)) else None

    def close(self) -> None:
        """No one is left in it, and it is gone."""
        os.close(self.door)
        with contextlib.suppress(OSError):
            self._write("cgroup.kill", 1)
        until = time.monotonic() + EMPTY_S
        while not _remove(self.folder) and time.monotonic() < until:
            time.sleep(0.002)

    def _write(self, name: str, value: int) -> None:
        (self.folder / name).write_text(str(value))


def find_place() -> tuple[Path | None, str]:
    """The folder in which cgroups for commands can be made, or none and why."""
    if not (ROOT / "cgroup.controllers").exists():
        return None, "this system has no cgroup version 2 with the memory controller"
    problem = "no cgroup above ours hands on the memory controller"
    for place in _above():
        if CONTROLLER not in _text(place / "cgroup.subtree_control").split():
            continue
        problem = _try(place)
        if not problem:
            _clean(place)
            return place, ""
    return None, problem


def _above() -> Iterator[Path]:
    """Our own cgroup and all above it, the nearest first."""
    own = next((line[3:] for line in _text(Path("/proc/self/cgroup")).splitlines() if line.startswith("0::")), "/")
    folder = ROOT / own.strip("/")
    yield from (place for place in (folder, *folder.parents) if place.is_relative_to(ROOT))


def _try(place: Path) -> str:
    """Why a process cannot be put into a cgroup there; empty if it can."""
    try:
        trial = Cgroup(place, Limits())
    except OSError as error:
        return f"no cgroup can be made in `{place}`: {error.strerror}"
    try:
        # By itself, as a command will do it: through the folder's name only here.
        done = subprocess.run(["/bin/sh", "-c", _TRIAL, str(trial.folder)], capture_output=True, check=False, env={})
        return "" if done.returncode == 0 else f"no process can be moved into a cgroup in `{place}`"
    finally:
        trial.close()


def _clean(place: Path) -> None:
    """What a killed Remora left behind is gone."""
    for folder in place.glob(f"{NAME}-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not Path("/proc", pid).exists():
            _remove(folder)


def _remove(folder: Path) -> bool:
    """Whether the cgroup is gone. It stays while someone is in it."""
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
