"""The one place that starts programs, and what this machine offers to shut them in."""

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
