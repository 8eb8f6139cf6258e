"""Which lines a node owns after its file was edited.

Discovery determines them once for the original file. Later, they are tracked through the diff between that text and the
current one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

Pairs = list[list[int]]
"""First and last line of each range, inclusive, counted from 1."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    """Lines with their ends, as Python and ruff count them: not split at form feeds or Unicode separators."""
    return _LINE.findall(text)


def follow(pairs: Pairs, before: list[str], after: list[str]) -> Pairs:
    """Where the lines of `pairs` are now. A changed or inserted line belongs to the owner of the lines around it."""
    if before == after:
        return pairs
    owned = {line for first, last in pairs for line in range(first, last + 1)}
    now: list[int] = []
    for tag, first, last, new_first, new_last in _changes(before, after):
        if tag == "equal":
            now += [new_first + step + 1 for step in range(last - first) if first + step + 1 in owned]
        elif _belongs(owned, first, last):
            now += range(new_first + 1, new_last + 1)
    return _to_ranges(now)


def _belongs(owned: set[int], first: int, last: int) -> bool:
    if first < last:
        return any(line in owned for line in range(first + 1, last + 1))
    return first in owned or (first == 0 and 1 in owned)


def _changes(before: list[str], after: list[str]) -> list[tuple[str, int, int, int, int]]:
    """Opcodes of the diff. Equal lines at both ends are set aside first, which keeps large files fast."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    middle = SequenceMatcher(None, before[start : len(before) - end], after[start : len(after) - end], autojunk=False)
    moved = [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in middle.get_opcodes()]
    head = ("equal", 0, start, 0, start)
    tail = ("equal", len(before) - end, len(before), len(after) - end, len(after))
    return [head, *moved, tail]


def _to_ranges(lines: Iterable[int]) -> Pairs:
    ranges: Pairs = []
    for line in lines:
        if ranges and ranges[-1][1] == line - 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    return ranges
