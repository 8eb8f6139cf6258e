"""Lines, counted as Python counts them: ended by `\\n`, `\\r\\n` or `\\r`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from remora.nodes import LineRange

_LINE_END = re.compile(rb"\r\n|\r|\n")


class LineTable:
    """Where each line of a source begins."""

    def __init__(self, source: bytes) -> None:
        starts = [0, *(match.end() for match in _LINE_END.finditer(source))]
        if len(starts) > 1 and starts[-1] == len(source):
            starts.pop()
        self._source = source
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts)

    def line_of(self, offset: int) -> int:
        """The line that contains the byte at `offset`, counted from 1."""
        return bisect_right(self._starts, offset)

    def start(self, line: int) -> int:
        """Where a line begins. For the line after the last, the end of the source."""
        return self._starts[line - 1] if line <= len(self) else len(self._source)

    def text(self, lines: LineRange) -> str:
        """The lines as they are, line ends included."""
        end = self._starts[lines.last] if lines.last < len(self) else len(self._source)
        return self._source[self._starts[lines.first - 1] : end].decode()


def ranges(lines: Iterable[int]) -> tuple[LineRange, ...]:
    """The line numbers as ranges, in order."""
    runs: list[tuple[int, int]] = []
    for line in sorted(lines):
        if runs and runs[-1][1] + 1 == line:
            runs[-1] = (runs[-1][0], line)
        else:
            runs.append((line, line))
    return tuple(LineRange(first=first, last=last) for first, last in runs)
