"""What this machine offers to shut project code in. For telling only: nothing relies on it yet."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

BWRAP_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
_CREATE_RULESET = 444
_ASK_VERSION = 1


@dataclass(frozen=True)
class SandboxReport:
    """Which sandboxes work here, and which one would be used."""

    bwrap: Path | None
    bwrap_works: bool
    landlock_abi: int
    """0 where the kernel has no Landlock."""

    @property
    def applies(self) -> Literal["bubblewrap", "landlock", "none"]:
        """The sandbox that project code would run in."""
        if self.bwrap_works:
            return "bubblewrap"
        return "landlock" if self.landlock_abi else "none"


def probe() -> SandboxReport:
    """What works now, found by trying."""
    bwrap = next((path for folder in BWRAP_FOLDERS if (path := Path(folder) / "bwrap").is_file()), None)
    return SandboxReport(bwrap, bwrap is not None and _works(bwrap), _landlock_abi())


def _works(bwrap: Path) -> bool:
    argv = [str(bwrap), "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "/bin/true"]
    try:
        return subprocess.run(argv, capture_output=True, timeout=5, env={}, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _landlock_abi() -> int:
    if sys.platform != "linux":
        return 0
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        version = libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    except (OSError, AttributeError):
        return 0
    return max(0, int(version))
