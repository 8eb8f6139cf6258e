"""What this machine offers to shut project code in, found by trying it out."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from remora.sandbox._bubblewrap import launch_in
from remora.sandbox._plan import Limits, Order, launch, make_plan, read_outcome
from remora.sandbox._python import Interpreter

BWRAP_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
TRY_S = 20.0
Kind = Literal["bubblewrap", "landlock", "none"]


@dataclass(frozen=True)
class SandboxReport:
    """Which sandboxes work here, and which one is used."""

    bwrap: Path | None = None
    bwrap_problem: str = "not found"
    """Why bubblewrap is of no use; empty where it works."""
    bwrap_overlay: bool = False
    """Whether it can lay one folder over another. Without that, the project is copied for every command."""
    landlock_abi: int = 0
    """0 where the kernel has no Landlock."""
    own_problem: str = "not tried"
    """Why namespaces of our own with Landlock are of no use; empty where they work."""

    @property
    def applies(self) -> Kind:
        """The sandbox that project code runs in."""
        if not self.bwrap_problem:
            return "bubblewrap"
        return "none" if self.own_problem else "landlock"


@cache
def probe() -> SandboxReport:
    """What works now. Tried once in a process."""
    if sys.platform != "linux":
        return SandboxReport(bwrap_problem="only on Linux", own_problem="only on Linux")
    bwrap = next((path for folder in BWRAP_FOLDERS if (path := Path(folder) / "bwrap").is_file()), None)
    return probe_with(bwrap)


def probe_with(bwrap: Path | None) -> SandboxReport:
    """What works with this bubblewrap, or without one."""
    from remora.sandbox._jail._walls import is_known_machine, landlock_version

    abi = landlock_version()
    if not is_known_machine():
        problem = "the system calls of this processor are not known"
        return SandboxReport(bwrap, problem, landlock_abi=abi, own_problem=problem)
    own = _try(lambda plan: launch(plan)) if abi else "this kernel has no Landlock"
    if bwrap is None:
        return SandboxReport(landlock_abi=abi, own_problem=own)
    for overlay in (True, False):
        problem = _try(lambda plan, overlay=overlay: launch_in(bwrap, plan, overlay=overlay))
        if not problem:
            return SandboxReport(bwrap, "", overlay, abi, own)
    return SandboxReport(bwrap, problem, landlock_abi=abi, own_problem=own)


def _try(command: Any) -> str:
    """Why a program could not be run so; empty if it could."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as status:
        order = Order(Path(folder).resolve(), None, Interpreter(Path("/bin/true")), (), {}, Limits())
        plan = {**make_plan(order, "namespaces", status.fileno()), "argv": ["/bin/true"]}
        try:
            said = _said(command(plan), status.fileno())
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        status.seek(0)
        facts = read_outcome(status.read()).facts
    if facts.get("returncode") == "0":
        return ""
    return facts.get("problem") or said or "it ended without a word"


def _said(argv: Sequence[str], status: int) -> str:
    done = subprocess.run(
        argv, capture_output=True, timeout=TRY_S, env={}, check=False, pass_fds=(status,), stdin=subprocess.DEVNULL
    )
    return done.stderr.decode(errors="replace").strip()[-300:]
