"""Differences and merges of texts, line by line. Bytes in, bytes out: line ends and encodings stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True)
class Edit:
    """Lines `first` up to `last` (not included) of the base became `lines`."""

    first: int
    last: int
    lines: tuple[bytes, ...]


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Both sides' edits of `base` in one text, or None where they touch the same lines."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if b"\0" in base + ours + theirs:
        return None
    lines = split(base)
    mine, yours = edits(lines, split(ours)), edits(lines, split(theirs))
    if any(_collide(one, other) for one in mine for other in yours):
        return None
    return b"".join(_applied(lines, sorted({*mine, *yours}, key=lambda edit: (edit.first, edit.last))))


def collisions(base: bytes, ours: bytes, theirs: bytes) -> list[range]:
    """Where `merge` fails: the lines of `theirs`, from 1 on, whose edit touches one of `ours`. None in a binary."""
    if b"\0" in base + ours + theirs:
        return []
    before, after = split(base), split(theirs)
    mine, found, moved = edits(before, split(ours)), [], 0
    for edit in edits(before, after):
        if any(_collide(one, edit) for one in mine):
            first = min(edit.first + moved + 1, max(1, len(after)))
            # Where lines were only taken out, the one that stands there now.
            found.append(range(first, first + max(1, len(edit.lines))))
        moved += len(edit.lines) - (edit.last - edit.first)
    return found


def split(data: bytes) -> list[bytes]:
    """Lines with their ends. Only `\\n` ends a line: what else might is part of it, so joining gives `data` again."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def edits(before: list[bytes], after: list[bytes]) -> list[Edit]:
    """What turns `before` into `after`, in order."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [Edit(a + start, b + start, tuple(new[c:d])) for tag, a, b, c, d in codes if tag != "equal"]


def _collide(one: Edit, other: Edit) -> bool:
    if one == other:
        return False
    if one.first == one.last or other.first == other.last:
        # Where an insertion touches another edit, no one can say which comes first.
        return one.first <= other.last and other.first <= one.last
    return one.first < other.last and other.first < one.last


def _applied(lines: list[bytes], changes: list[Edit]) -> Iterator[bytes]:
    at = 0
    for edit in changes:
        yield from lines[at : edit.first]
        yield from edit.lines
        at = edit.last
    yield from lines[at:]
