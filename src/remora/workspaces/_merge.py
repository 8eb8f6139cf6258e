"""Three-way merge of texts, line by line. Works on bytes, so line ends and encodings stay as they are.

Edits of two sides conflict if they touch, unless they are equal: between them there must be a line that neither side
changed. That is the rule of `git merge-file`, and a test compares the two.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remora.workspaces._diff import Base, Edit

Lines = tuple[bytes, ...]
Made = list[tuple[Lines, Lines]]
"""Edits as (removed lines, added lines), without their positions."""
YOU = ""
"""The owner of edits that no agent is known to have made."""


@dataclass(frozen=True)
class Collision:
    """Two sides edited the same lines: the edits of the first side, and their owners."""

    edits: tuple[Edit, ...]
    owners: tuple[str, ...]
    gone: tuple[Lines, ...] = ()
    """For each edit, the lines of the base that it removed."""

    def is_like(self, made: Made) -> bool:
        """Whether any of its edits is similar to one of `made`. Used to find the owner."""
        these = [(gone, edit.lines) for gone, edit in zip(self.gone, self.edits, strict=True)]
        return any(_is_similar(*one, *other) for one in made for other in these)


class Merged:
    """A base with edits of any number of sides that do not touch. Each edit has an owner."""

    def __init__(self, base: bytes, now: bytes) -> None:
        self.base = Base(base)
        self._edits = self.base.edits(now)
        self._firsts = [edit.first for edit in self._edits]
        self._owners = [YOU] * len(self._edits)

    def add(self, after: bytes, owner: str = YOU) -> list[Collision]:
        """Add the edits that turn the base into `after`. If some conflict, none is added."""
        new, clashes = self.compare(after)
        if not clashes:
            self.insert(new, owner)
        return clashes

    def compare(self, after: bytes) -> tuple[list[Edit], list[Collision]]:
        """The edits of `after` that are not included yet, and their conflicts."""
        new: list[Edit] = []
        clashes: list[Collision] = []
        for edits, low, high in self._touching(self.base.edits(after)):
            if low == high:
                new += edits
            elif not self._agree(edits, self._edits[low:high]):
                clashes.append(self._collision(low, high))
        return new, clashes

    def _collision(self, low: int, high: int) -> Collision:
        edits = tuple(self._edits[low:high])
        gone = tuple(tuple(self.base.lines[edit.first : edit.last]) for edit in edits)
        return Collision(edits, tuple(dict.fromkeys(self._owners[low:high])), gone)

    def insert(self, new: Sequence[Edit], owner: str) -> None:
        """Insert edits that touch no other edit."""
        for edit in new:
            at = bisect_left(self._firsts, edit.first)
            self._edits.insert(at, edit)
            self._firsts.insert(at, edit.first)
            self._owners.insert(at, owner)

    def lines(self, collision: Collision) -> range:
        """The lines of the text, from 1 on, that the first side's edits became.

        If they only removed lines, the line that is there now.
        """
        first, last = collision.edits[0].first, collision.edits[-1].last
        before = [edit for edit in self._edits if edit.last < first or edit.first < first]
        inside = [edit for edit in self._edits if first <= edit.first and edit.last <= last]
        at = first + sum(map(_growth, before)) + 1
        total = len(self.base.lines) + sum(map(_growth, self._edits))
        at = min(at, max(1, total))
        return range(at, at + max(1, last - first + sum(map(_growth, inside))))

    def remove(self, edits: Sequence[Edit]) -> None:
        """Remove edits that were inserted."""
        for edit in edits:
            at = bisect_left(self._firsts, edit.first)
            del self._edits[at], self._firsts[at], self._owners[at]

    def text(self) -> bytes:
        """The base with all edits applied."""
        return b"".join(apply_edits(self.base.lines, self._edits))

    def _touching(self, new: Sequence[Edit]) -> Iterator[tuple[list[Edit], int, int]]:
        """Groups of new edits, each with the slice of existing edits that they touch, directly or through others."""
        at = 0
        while at < len(new):
            group, end = [new[at]], new[at].last
            low = high = self._first_reaching(new[at].first)
            at += 1
            while True:
                if high < len(self._edits) and self._edits[high].first <= end:
                    end = max(end, self._edits[high].last)
                    high += 1
                elif at < len(new) and high > low and new[at].first <= end:
                    group.append(new[at])
                    end = max(end, new[at].last)
                    at += 1
                else:
                    break
            yield group, low, high

    def _first_reaching(self, line: int) -> int:
        """The first existing edit that ends at `line` or after it."""
        at = bisect_left(self._firsts, line)
        return at - 1 if at and self._edits[at - 1].last >= line else at

    def _agree(self, ours: Sequence[Edit], theirs: Sequence[Edit]) -> bool:
        """Whether both produce the same text for all lines that any of them touches."""
        first = min(ours[0].first, theirs[0].first)
        last = max(ours[-1].last, theirs[-1].last)
        return apply_edits(self.base.lines, ours, first, last) == apply_edits(self.base.lines, theirs, first, last)


def made(before: bytes, after: bytes) -> Made:
    """The edits that turn one text into the other; none for binary files."""
    if is_binary(before, after):
        return []
    base = Base(before)
    return [(tuple(base.lines[edit.first : edit.last]), edit.lines) for edit in base.edits(after)]


def _is_similar(gone: Lines, lines: Lines, other_gone: Lines, other_lines: Lines) -> bool:
    """Whether two edits are equal, or the added text of one contains that of the other."""
    if (gone, lines) == (other_gone, other_lines):
        return True
    one, other = (b"".join(side) for side in (lines, other_lines))
    return bool(one.strip() and other.strip()) and (one in other or other in one)


def _growth(edit: Edit) -> int:
    return len(edit.lines) - (edit.last - edit.first)


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge both sides' edits of `base`. None if they conflict."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if is_binary(base, ours, theirs):
        return None
    merged = Merged(base, theirs)
    return None if merged.add(ours) else merged.text()


def collisions(base: bytes, ours: bytes, theirs: bytes) -> list[range]:
    """Where `merge` fails: the lines of `theirs`, from 1 on, whose edits touch one of `ours`.

    Empty for binary files.
    """
    if is_binary(base, ours, theirs):
        return []
    merged = Merged(base, theirs)
    return [merged.lines(collision) for collision in merged.add(ours)]


def is_binary(*texts: bytes) -> bool:
    """Whether one of them contains NUL: such files have no lines to merge."""
    return any(b"\0" in text for text in texts)


def apply_edits(lines: Sequence[bytes], edits: Sequence[Edit], first: int = 0, last: int | None = None) -> list[bytes]:
    """Lines `first` up to `last` of a base, with the edits applied."""
    at, made = first, list[bytes]()
    for edit in edits:
        made += lines[at : edit.first]
        made += edit.lines
        at = edit.last
    made += lines[at:last]
    return made
