"""Line-by-line diff, with the same alignment as `git merge-file`.

If lines repeat, several alignments are equally short, and a merge that picks a different one than git can lose a line.
So the rules are git's: trim both ends, set aside lines that occur too often or not at all, take Myers' shortest script
("An O(ND) Difference Algorithm", 1986) by bisection, then slide every block as far down as it goes, or to where the
other side has a block too. The effort is bounded: beyond it, the whole differing middle is one edit, widened to lines
that no block can slide over, so that it is valid for every alignment.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from remora.workspaces._bisection import Bisection, TooDifferent

_OFTEN_AT_MOST = 1024
_WINDOW = 100
_CHUNK = 4096
_NOT_FEW = re.compile(rb"[\x00\x02]+")
"""Runs of lines that have no match or many matches."""


@dataclass(frozen=True)
class Edit:
    """Lines `first` up to `last` (exclusive) of the base became `lines`."""

    first: int
    last: int
    lines: tuple[bytes, ...]


def split(data: bytes) -> list[bytes]:
    """Split into lines with their ends. Only `\\n` ends a line, so joining them gives `data` again."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


@lru_cache(maxsize=2)
def base_of(data: bytes) -> Base:
    """The base for a text, cached because many agents change the same one."""
    return Base(data)


class Base:
    """A text that others are compared with. Data that every comparison needs is computed once."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines = split(data)

    def edits(self, other: bytes) -> list[Edit]:
        """The edits that turn it into `other`, in order, with at least one unchanged line between two edits."""
        if other == self.data:
            return []
        start, end = self._equal_ends(other)
        stop = len(self.lines) - end
        middle = split(other[self._starts[start] : len(other) - (len(self.data) - self._starts[stop])])
        after = [*self.lines[:start], *middle, *self.lines[stop:]]
        try:
            return self._exact(after, start, stop, len(after) - end)
        except TooDifferent:
            return [self._one_wide_edit(after, start, stop, len(after) - end)]

    @cached_property
    def _starts(self) -> list[int]:
        """The byte offset of each line, and of the end."""
        return [0, *accumulate(map(len, self.lines))]

    @cached_property
    def _counts(self) -> Mapping[bytes, int]:
        return Counter(self.lines)

    def _equal_ends(self, other: bytes) -> tuple[int, int]:
        """Number of equal whole lines at the start, and then at the end. Compared as bytes, for speed."""
        same = _common_prefix(self.data, other)
        start = bisect_right(self._starts, self.data.rfind(b"\n", 0, same) + 1) - 1
        begin = self._starts[start]
        same = _common_suffix(self.data, other, begin)
        at = len(self.data) - same
        if not (_begins_line(self.data, at, begin) and _begins_line(other, len(other) - same, begin)):
            newline = self.data.find(b"\n", at)
            at = len(self.data) if newline < 0 else newline + 1
        return start, len(self.lines) - (bisect_right(self._starts, at) - 1 if at < len(self.data) else len(self.lines))

    def _exact(self, after: list[bytes], start: int, stop: int, after_stop: int) -> list[Edit]:
        before = self.lines
        gone, come = bytearray(len(before) + 1), bytearray(len(after) + 1)
        in_before, in_after = Counter(before[start:stop]), Counter(after[start:after_stop])
        # Both ends are equal, so any difference in a line's count comes from the middle.
        matches = {line: self._counts[line] - in_before[line] + in_after[line] for line in in_before}
        olds = _lines_to_compare(start, [matches[line] for line in before[start:stop]], len(before), gone)
        news = _lines_to_compare(
            start, [self._counts.get(line, 0) for line in after[start:after_stop]], len(after), come
        )
        Bisection(before, after, olds, news, gone, come).run()
        _slide(before, gone, come)
        _slide(after, come, gone)
        return _script(after, gone, come)

    def _one_wide_edit(self, after: list[bytes], start: int, stop: int, after_stop: int) -> Edit:
        """Everything that differs as one edit, up to lines that occur once on both sides: no block slides over them."""
        counts, end = Counter(after), len(after) - after_stop
        while start and not counts[self.lines[start - 1]] == self._counts[self.lines[start - 1]] == 1:
            start -= 1
        while end and not counts[self.lines[-end]] == self._counts[self.lines[-end]] == 1:
            end -= 1
        return Edit(start, len(self.lines) - end, tuple(after[start : len(after) - end]))


def _common_prefix(one: bytes, other: bytes) -> int:
    at, size = 0, min(len(one), len(other))
    while at < size and one[at : at + _CHUNK] == other[at : at + _CHUNK]:
        at += _CHUNK
    at = min(at, size)
    low, high = at, min(at + _CHUNK, size)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[at:middle] == other[at:middle] else (low, middle - 1)
    return low


def _common_suffix(one: bytes, other: bytes, begin: int) -> int:
    """Number of equal bytes at the end, none of them before `begin`."""
    size, same = min(len(one), len(other)) - begin, 0
    while same < size and _tail(one, same, size) == _tail(other, same, size):
        same += _CHUNK
    low, high = min(same, size), min(same + _CHUNK, size)
    while low < high:
        middle = (low + high + 1) // 2
        equal = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        low, high = (middle, high) if equal else (low, middle - 1)
    return low


def _tail(data: bytes, same: int, size: int) -> bytes:
    return data[len(data) - min(same + _CHUNK, size) : len(data) - same]


def _begins_line(data: bytes, at: int, begin: int) -> bool:
    return at == begin or data[at - 1 : at] == b"\n"


def _lines_to_compare(start: int, counts: Sequence[int], size: int, changed: bytearray) -> list[int]:
    """The positions from `start` on to compare, by the number of matches of their lines.

    The others are marked as changed.

    A line without a match is a change. So is a line with many matches among such lines: it could match anything, and
    would split lines that belong together.
    """
    often = min(_rough_root(size), _OFTEN_AT_MOST)
    kinds = bytes([0 if count == 0 else 2 if count >= often else 1 for count in counts])
    positions: list[int] = []
    end = 0
    for run in _NOT_FEW.finditer(kinds):
        if 0 not in run.group():
            continue
        positions += range(start + end, start + run.start())
        for at in range(*run.span()):
            if kinds[at] == 2 and not _is_among_unmatched(kinds, at):
                positions.append(start + at)
            else:
                changed[start + at] = 1
        end = run.end()
    positions += range(start + end, start + len(kinds))
    return positions


def _rough_root(number: int) -> int:
    """A power of two near the square root."""
    return 1 << ((number.bit_length() + 1) // 2)


def _is_among_unmatched(kinds: bytes, at: int) -> bool:
    """Whether more than three quarters of the lines around it, up to the next with few matches, have no match."""
    above = _run(kinds[max(0, at - _WINDOW) : at][::-1])
    below = _run(kinds[at + 1 : at + 1 + _WINDOW])
    if not above.count(0) or not below.count(0):
        return False
    unmatched = above.count(0) + below.count(0)
    often = above.count(2) + below.count(2) + 2
    return often * 4 < often + unmatched


def _run(kinds: bytes) -> bytes:
    end = kinds.find(1)
    return kinds if end < 0 else kinds[:end]


class _Blocks:
    """Iterates over the blocks of changed lines on one side.

    Between any two unchanged lines is a block, usually empty.
    """

    def __init__(self, changed: bytearray, start: int) -> None:
        self._changed = changed  # one longer than the text, so that the end is never changed
        self.start = self.end = start
        self._stretch()

    def is_empty(self) -> bool:
        return self.start == self.end

    def has_next(self) -> bool:
        return self.end < len(self._changed) - 1

    def next(self, blocks: int = 1) -> None:
        """Move to the next block, or further if all blocks between are empty."""
        self.start = self.end = self.end + blocks
        self._stretch()

    def empty_ahead(self) -> int:
        """Number of empty blocks before the next non-empty one, or the end."""
        following = self._changed.find(1, self.end)
        return (len(self._changed) - 1 if following < 0 else following) - self.end

    def previous(self) -> None:
        self.start = self.end = self.start - 1
        self._stretch_up()

    def slide_up(self, lines: Sequence[bytes]) -> bool:
        """Move the block up one line and join the block it meets. Returns False if it cannot move."""
        if not self.start or lines[self.start - 1] != lines[self.end - 1]:
            return False
        self.start, self.end = self.start - 1, self.end - 1
        self._changed[self.start], self._changed[self.end] = 1, 0
        self._stretch_up()
        return True

    def slide_down(self, lines: Sequence[bytes]) -> bool:
        """Like `slide_up`, one line down."""
        if self.end >= len(lines) or lines[self.start] != lines[self.end]:
            return False
        self._changed[self.start], self._changed[self.end] = 0, 1
        self.start, self.end = self.start + 1, self.end + 1
        self._stretch()
        return True

    def _stretch(self) -> None:
        while self._changed[self.end]:
            self.end += 1

    def _stretch_up(self) -> None:
        while self.start and self._changed[self.start - 1]:
            self.start -= 1


def _slide(lines: Sequence[bytes], changed: bytearray, other: bytearray) -> None:
    """Move each block as far down as it goes, or to where it last met a block of the other side."""
    last, start = changed.rfind(1), _first_change(changed, other)
    mine, theirs = _Blocks(changed, start), _Blocks(other, start)
    while True:
        if not mine.is_empty():
            _slide_block(lines, mine, theirs)
        if mine.start > last or not mine.has_next():
            return
        blocks = max(1, min(mine.empty_ahead(), theirs.empty_ahead()))
        mine.next(blocks)
        theirs.next(blocks)


def _slide_block(lines: Sequence[bytes], mine: _Blocks, theirs: _Blocks) -> None:
    size = -1
    while size != mine.end - mine.start:  # it grows when it meets another, and may then slide further
        size = mine.end - mine.start
        while mine.slide_up(lines):
            theirs.previous()
        highest, met = mine.end, not theirs.is_empty()
        while mine.slide_down(lines):
            theirs.next()
            met = met or not theirs.is_empty()
    if met and mine.end != highest:
        while theirs.is_empty():
            mine.slide_up(lines)
            theirs.previous()


def _first_change(one: bytearray, other: bytearray) -> int:
    """The first line that is marked on either side. Before it, both sides are equal."""
    return min(at for at in (one.find(1), other.find(1)) if at >= 0)


def _script(after: Sequence[bytes], gone: bytearray, come: bytearray) -> list[Edit]:
    """The edits that the marks describe."""
    script = []
    old, new = _Blocks(gone, 0), _Blocks(come, 0)
    while True:
        if not (old.is_empty() and new.is_empty()):
            script.append(Edit(old.start, old.end, tuple(after[new.start : new.end])))
        if not old.has_next():
            return script
        blocks = max(1, min(old.empty_ahead(), new.empty_ahead()))
        old.next(blocks)
        new.next(blocks)
