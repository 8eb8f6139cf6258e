"""Logs of one record a line: every line that can be parsed, and a count of those that cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from remora.analysis.logs._source import MAX_RECORD, Line, LogFile, LogProblem, loads

LONG_LINE = f"line of more than {MAX_RECORD >> 20} MiB"
BROKEN_LINE = "line that is not JSON"
OTHER_LINE = "line that is no object"


def records(
    log: LogFile, unknown: Counter[str], start: int = 0, end: int | None = None
) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Every record between two offsets. A line that cannot be read is counted: a session may still be written."""
    for line in log.lines(start, end):
        if line.data is None:
            unknown[LONG_LINE] += 1
            continue
        try:
            record = loads(line.data)
        except LogProblem:
            unknown[BROKEN_LINE] += 1
            continue
        if isinstance(record, dict):
            yield line, record
        else:
            unknown[OTHER_LINE] += 1
