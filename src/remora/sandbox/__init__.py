"""Starts programs, and probes what this machine offers to isolate them.

Names are imported on first use: commands that only read streams call git once and start nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remora.sandbox._git import changed_lines, is_tracked
    from remora.sandbox._guard import SummaryChild
    from remora.sandbox._jail._watch import end_descendants
    from remora.sandbox._plan import Limits
    from remora.sandbox._plugins import installed_summarizers
    from remora.sandbox._probe import SandboxReport, probe
    from remora.sandbox._spawner import LocalSpawner

__all__ = [
    "Limits",
    "LocalSpawner",
    "SandboxReport",
    "SummaryChild",
    "changed_lines",
    "end_descendants",
    "installed_summarizers",
    "is_tracked",
    "probe",
]

_HOMES = {
    "Limits": "_plan",
    "LocalSpawner": "_spawner",
    "SandboxReport": "_probe",
    "SummaryChild": "_guard",
    "changed_lines": "_git",
    "end_descendants": "_jail._watch",
    "installed_summarizers": "_plugins",
    "is_tracked": "_git",
    "probe": "_probe",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
