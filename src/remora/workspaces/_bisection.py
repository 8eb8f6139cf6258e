"""A shortest edit script between two sequences, by Myers' bisection, with bounded effort."""

from __future__ import annotations

from collections.abc import Sequence

MAX_COST = 256
"""Most edits that a bisection follows from either end. git gives up the shortest script at the same cost."""
MAX_STEPS = 2_000_000
"""Most steps of all bisections of one comparison: about a second."""
_SLICE = 64


class TooDifferent(Exception):
    """The shortest edit script exceeds the allowed effort."""


class Bisection:
    """Marks in `gone` and `come` what a shortest edit script removes from `before` and adds to `after`."""

    def __init__(
        self,
        before: Sequence[bytes],
        after: Sequence[bytes],
        olds: Sequence[int],
        news: Sequence[int],
        gone: bytearray,
        come: bytearray,
    ) -> None:
        ids: dict[bytes, int] = {}
        self._old = [ids.setdefault(before[at], len(ids)) for at in olds]
        self._new = [ids.setdefault(after[at], len(ids)) for at in news]
        self._olds, self._news = olds, news
        self._gone, self._come = gone, come
        self._steps = 0

    def run(self) -> None:
        """Raises `TooDifferent` beyond the allowed effort."""
        boxes = [(0, len(self._old), 0, len(self._new))]
        while boxes:
            old, old_end, new, new_end = self._trim(*boxes.pop())
            if old == old_end:
                for at in self._news[new:new_end]:
                    self._come[at] = 1
            elif new == new_end:
                for at in self._olds[old:old_end]:
                    self._gone[at] = 1
            else:
                x, y = self._split(old, old_end, new, new_end)
                boxes += [(old, x, new, y), (x, old_end, y, new_end)]

    def _trim(self, old: int, old_end: int, new: int, new_end: int) -> tuple[int, int, int, int]:
        """Trim equal elements at both corners of the box."""
        same = _equal_after(self._old, old, old_end, self._new, new, new_end)
        old, new = old + same, new + same
        same = _equal_before(self._old, old, old_end, self._new, new, new_end)
        return old, old_end - same, new, new_end - same

    def _split(self, old: int, old_end: int, new: int, new_end: int) -> tuple[int, int]:
        """Find where the furthest paths from both corners meet. Ties go to the highest diagonal, as in git."""
        forward, backward = _Front(old, old - new), _Front(old_end, old_end - new_end)
        lowest, highest = old - new_end, old_end - new
        is_odd = bool((forward.low - backward.low) & 1)
        for cost in range(1, MAX_COST + 1):
            self._steps += 2 * cost
            if self._steps > MAX_STEPS:
                break
            forward.grow(lowest, highest, -1)
            met = self._forward(forward, backward if is_odd else None, old_end, new_end)
            if met is None:
                backward.grow(lowest, highest, 1 << 60)
                met = self._backward(backward, None if is_odd else forward, old, new)
            if met is not None:
                return met
        raise TooDifferent

    def _forward(self, mine: _Front, other: _Front | None, old_end: int, new_end: int) -> tuple[int, int] | None:
        one, two, reached = self._old, self._new, mine.reached
        for diagonal in range(mine.high, mine.low - 1, -2):
            below, above = reached[diagonal - 1], reached[diagonal + 1]
            x = below + 1 if below >= above else above
            y = x - diagonal
            if x < old_end and y < new_end and one[x] == two[y]:
                same = _equal_after(one, x, old_end, two, y, new_end)
                x, y = x + same, y + same
            reached[diagonal] = x
            if other is not None and other.low <= diagonal <= other.high and other.reached[diagonal] <= x:
                return x, y
        return None

    def _backward(self, mine: _Front, other: _Front | None, old: int, new: int) -> tuple[int, int] | None:
        one, two, reached = self._old, self._new, mine.reached
        for diagonal in range(mine.high, mine.low - 1, -2):
            below, above = reached[diagonal - 1], reached[diagonal + 1]
            x = below if below < above else above - 1
            y = x - diagonal
            if x > old and y > new and one[x - 1] == two[y - 1]:
                same = _equal_before(one, old, x, two, new, y)
                x, y = x - same, y - same
            reached[diagonal] = x
            if other is not None and other.low <= diagonal <= other.high and x <= other.reached[diagonal]:
                return x, y
        return None


def _equal_after(one: list[int], x: int, x_end: int, two: list[int], y: int, y_end: int) -> int:
    """Count equal elements after the two positions. Slices are compared because that is many times faster."""
    most, same = min(x_end - x, y_end - y), 0
    while same + _SLICE <= most and one[x + same : x + same + _SLICE] == two[y + same : y + same + _SLICE]:
        same += _SLICE
    while same < most and one[x + same] == two[y + same]:
        same += 1
    return same


def _equal_before(one: list[int], x: int, x_end: int, two: list[int], y: int, y_end: int) -> int:
    """Like `_equal_after`, backwards from the two ends."""
    most, same = min(x_end - x, y_end - y), 0
    while same + _SLICE <= most and (
        one[x_end - same - _SLICE : x_end - same] == two[y_end - same - _SLICE : y_end - same]
    ):
        same += _SLICE
    while same < most and one[x_end - same - 1] == two[y_end - same - 1]:
        same += 1
    return same


class _Front:
    """How far the paths from one corner have reached, by diagonal."""

    def __init__(self, at: int, diagonal: int) -> None:
        self.low = self.high = diagonal
        self.reached = {diagonal: at}

    def grow(self, lowest: int, highest: int, nowhere: int) -> None:
        """Add a diagonal on each side within the box. At its border, shrink instead."""
        if self.low > lowest:
            self.low -= 1
            self.reached[self.low - 1] = nowhere
        else:
            self.low += 1
        if self.high < highest:
            self.high += 1
            self.reached[self.high + 1] = nowhere
        else:
            self.high -= 1
