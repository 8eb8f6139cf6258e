"""Probes which sandboxes work on this machine, by running a program in each."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from remora.sandbox._bubblewrap import launch_in
from remora.sandbox._cgroup import find_place
from remora.sandbox._plan import Command, Limits, launch, make_plan, read_outcome
from remora.sandbox._python import Interpreter

BWRAP_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
TRY_S = 20.0
OLDEST_LINUX = (5, 14)
"""Since this version each user namespace counts a user's processes separately. Without it a fork bomb has no limit."""
Kind = Literal["bubblewrap", "landlock", "none"]


@dataclass(frozen=True)
class SandboxReport:
    """Which sandboxes work here, and which one is used."""

    bwrap: Path | None = None
    bwrap_problem: str = "not found"
    """Why bubblewrap cannot be used; empty if it works."""
    bwrap_overlay: bool = False
    """Whether it can mount an overlay. If not, the project is copied for every command."""
    landlock_abi: int = 0
    """0 if the kernel has no Landlock."""
    own_problem: str = "not tried"
    """Why our own namespaces with Landlock cannot be used; empty if they work.

    Tried only if bubblewrap does not work.
    """
    cgroup: Path | None = None
    """Where a cgroup is created for each command. It counts kernel memory too."""
    cgroup_problem: str = "not tried"
    """Why there is no cgroup; empty if there is."""

    @property
    def applies(self) -> Kind:
        """The sandbox that runs project code."""
        if not self.bwrap_problem:
            return "bubblewrap"
        return "none" if self.own_problem else "landlock"


@cache
def probe() -> SandboxReport:
    """Probe this machine, once per process."""
    if sys.platform != "linux":
        return SandboxReport(bwrap_problem="only on Linux", own_problem="only on Linux")
    bwrap = next((path for folder in BWRAP_FOLDERS if (path := Path(folder) / "bwrap").is_file()), None)
    return probe_with(bwrap)


def probe_with(bwrap: Path | None) -> SandboxReport:
    """Probe with this bubblewrap, or without one."""
    cgroup, problem = find_place()
    return replace(_probe_sandboxes(bwrap), cgroup=cgroup, cgroup_problem=problem)


def _probe_sandboxes(bwrap: Path | None) -> SandboxReport:
    from remora.sandbox._jail._walls import landlock_version

    abi = landlock_version()
    problem = _missing_requirement()
    if problem:
        return SandboxReport(bwrap, problem, landlock_abi=abi, own_problem=problem)
    problem = _problem_with(bwrap)
    for overlay in (True, False):
        if bwrap is None or problem:
            break
        tried = _try(partial(launch_in, bwrap, overlay=overlay))
        if not tried:
            return SandboxReport(bwrap, "", overlay, abi)
        problem = "" if overlay else tried
    own = _try(launch) if abi else "this kernel has no Landlock"
    return SandboxReport(bwrap, problem, landlock_abi=abi, own_problem=own)


def _missing_requirement() -> str:
    """Why no sandbox can work here at all; empty if one might."""
    from remora.sandbox._jail._walls import is_supported_machine, kernel

    if not is_supported_machine():
        return "this processor architecture is not supported"
    return "" if kernel() >= OLDEST_LINUX else f"Linux {OLDEST_LINUX[0]}.{OLDEST_LINUX[1]} or newer is needed"


def _problem_with(bwrap: Path | None) -> str:
    if bwrap is None:
        return SandboxReport.bwrap_problem
    return "it cannot limit the number of root's processes" if os.getuid() == 0 else ""


def _try(launcher: Callable[[dict[str, Any]], list[str]]) -> str:
    """Why a program could not run this way; empty if it could."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as status:
        command = Command(Path(folder).resolve(), None, Interpreter(Path("/bin/true")), (), {}, Limits())
        plan = {**make_plan(command, "namespaces", status.fileno()), "argv": ["/bin/true"]}
        try:
            stderr = _run_for_stderr(launcher(plan), status.fileno())
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        status.seek(0)
        facts = read_outcome(status.read()).facts
    if facts.get("returncode") == "0":
        return ""
    return facts.get("problem") or stderr or "it ended without a message"


def _run_for_stderr(argv: Sequence[str], status: int) -> str:
    done = subprocess.run(
        argv, capture_output=True, timeout=TRY_S, env={}, check=False, pass_fds=(status,), stdin=subprocess.DEVNULL
    )
    return done.stderr.decode(errors="replace").strip()[-300:]
