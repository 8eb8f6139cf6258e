"""Merges of texts, line by line. Bytes in, bytes out: line ends and encodings stay as they are.

Edits that touch collide, unless they are the same: between edits of two sides there must be a line that neither
changed. That is the rule of `git merge-file`, and a test holds the two against each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remora.workspaces._diff import Base, Edit

Lines = tuple[bytes, ...]
Made = list[tuple[Lines, Lines]]
"""Edits by what they took out and what they put there, wherever that was."""
YOU = ""
"""Who made an edit that no agent is known for."""


@dataclass(frozen=True)
class Collision:
    """Two sides edited the same lines: what the first had made of the base there, and who it was."""

    edits: tuple[Edit, ...]
    owners: tuple[str, ...]
    gone: tuple[Lines, ...] = ()
    """For each edit, the lines of the base that it took out."""

    def is_like(self, made: Made) -> bool:
        """Whether one of those edits is one of these: to find out who it was."""
        these = [(gone, edit.lines) for gone, edit in zip(self.gone, self.edits, strict=True)]
        return any(_alike(*one, *other) for one in made for other in these)


class Merged:
    """A base with the edits of any number of sides, none of which touch. Each keeps its owner."""

    def __init__(self, base: bytes, now: bytes) -> None:
        self.base = Base(base)
        self._edits = self.base.edits(now)
        self._firsts = [edit.first for edit in self._edits]
        self._owners = [YOU] * len(self._edits)

    def add(self, after: bytes, owner: str = YOU) -> list[Collision]:
        """The edits that turn the base into `after` are in it, too. Where some collide, nothing is added."""
        new, found = self.compare(after)
        if not found:
            self.insert(new, owner)
        return found

    def compare(self, after: bytes) -> tuple[list[Edit], list[Collision]]:
        """The edits of `after` that are not in it yet, and where some collide with what is."""
        new: list[Edit] = []
        found: list[Collision] = []
        for edits, low, high in self._touching(self.base.edits(after)):
            if low == high:
                new += edits
            elif not self._agree(edits, self._edits[low:high]):
                found.append(self._collision(low, high))
        return new, found

    def _collision(self, low: int, high: int) -> Collision:
        edits = tuple(self._edits[low:high])
        gone = tuple(tuple(self.base.lines[edit.first : edit.last]) for edit in edits)
        return Collision(edits, tuple(dict.fromkeys(self._owners[low:high])), gone)

    def insert(self, new: Sequence[Edit], owner: str) -> None:
        """The edits are in it. Only for those that touch none of the others."""
        for edit in new:
            at = bisect_left(self._firsts, edit.first)
            self._edits.insert(at, edit)
            self._firsts.insert(at, edit.first)
            self._owners.insert(at, owner)

    def lines(self, found: Collision) -> range:
        """The lines of the text, from 1 on, that the first side's edits have become. Where they only took lines out,
        the one that stands there now."""
        first, last = found.edits[0].first, found.edits[-1].last
        before = [edit for edit in self._edits if edit.last < first or edit.first < first]
        inside = [edit for edit in self._edits if first <= edit.first and edit.last <= last]
        at = first + sum(map(_growth, before)) + 1
        total = len(self.base.lines) + sum(map(_growth, self._edits))
        at = min(at, max(1, total))
        return range(at, at + max(1, last - first + sum(map(_growth, inside))))

    def remove(self, edits: Sequence[Edit]) -> None:
        """The edits, which had been inserted, are no longer in it."""
        for edit in edits:
            at = bisect_left(self._firsts, edit.first)
            del self._edits[at], self._firsts[at], self._owners[at]

    def text(self) -> bytes:
        """The base with all edits."""
        return b"".join(applied(self.base.lines, self._edits))

    def _touching(self, new: Sequence[Edit]) -> Iterator[tuple[list[Edit], int, int]]:
        """Groups of new edits, each with the slice of those in place that they touch, directly or through others."""
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
        """The first edit in place that ends at `line` or after it."""
        at = bisect_left(self._firsts, line)
        return at - 1 if at and self._edits[at - 1].last >= line else at

    def _agree(self, ours: Sequence[Edit], theirs: Sequence[Edit]) -> bool:
        """Whether both make the same of all the lines that any of them touches."""
        first = min(ours[0].first, theirs[0].first)
        last = max(ours[-1].last, theirs[-1].last)
        return applied(self.base.lines, ours, first, last) == applied(self.base.lines, theirs, first, last)


def made(before: bytes, after: bytes) -> Made:
    """What turned one text into the other; nothing in a binary."""
    if is_binary(before, after):
        return []
    base = Base(before)
    return [(tuple(base.lines[edit.first : edit.last]), edit.lines) for edit in base.edits(after)]


def _alike(gone: Lines, lines: Lines, other_gone: Lines, other_lines: Lines) -> bool:
    """Whether two edits are the same, or one wrote all that the other did, which was not nothing."""
    if (gone, lines) == (other_gone, other_lines):
        return True
    one, other = (b"".join(side) for side in (lines, other_lines))
    return bool(one.strip() and other.strip()) and (one in other or other in one)


def _growth(edit: Edit) -> int:
    return len(edit.lines) - (edit.last - edit.first)


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Both sides' edits of `base` in one text, or None where they touch the same lines."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if is_binary(base, ours, theirs):
        return None
    merged = Merged(base, theirs)
    return None if merged.add(ours) else merged.text()


def collisions(base: bytes, ours: bytes, theirs: bytes) -> list[range]:
    """Where `merge` fails: the lines of `theirs`, from 1 on, whose edit touches one of `ours`. None in a binary."""
    if is_binary(base, ours, theirs):
        return []
    merged = Merged(base, theirs)
    return [merged.lines(found) for found in merged.add(ours)]


def is_binary(*texts: bytes) -> bool:
    """Whether one of them holds a NUL: such files have no lines to merge."""
    return any(b"\0" in text for text in texts)


def applied(lines: Sequence[bytes], edits: Sequence[Edit], first: int = 0, last: int | None = None) -> list[bytes]:
    """Lines `first` up to `last` of a base, with the edits made."""
    at, made = first, list[bytes]()
    for edit in edits:
        made += lines[at : edit.first]
        made += edit.lines
        at = edit.last
    made += lines[at:last]
    return made
