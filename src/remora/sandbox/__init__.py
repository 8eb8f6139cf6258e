"""Starts programs, and probes what this machine offers to isolate them.

Names are imported on first use: commands that only read streams call git once and start nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remora._lazy import lazy_names

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

_MODULES = {
    "_git": "changed_lines is_tracked",
    "_guard": "SummaryChild",
    "_jail._watch": "end_descendants",
    "_plan": "Limits",
    "_plugins": "installed_summarizers",
    "_probe": "SandboxReport probe",
    "_spawner": "LocalSpawner",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
