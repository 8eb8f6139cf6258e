"""All commands of `remora trace`."""

from __future__ import annotations

from remora.cli._compare import diff
from remora.cli._export import export
from remora.cli._report import report
from remora.cli._trace import trace

trace.command()(report)
trace.command()(diff)
trace.command()(export)

__all__ = ["trace"]
