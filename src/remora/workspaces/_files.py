"""The project's files in memory, while changes are merged into them one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from remora.workspaces._diff import Edit
from remora.workspaces._door import Door
from remora.workspaces._merge import YOU, Collision, Merged, is_binary
from remora.workspaces._review import Change
from remora.workspaces._union import union


@dataclass(frozen=True)
class Result:
    """The new content of a file. None means that it is removed."""

    text: bytes | None


@dataclass(frozen=True)
class Clash:
    """A file where a change conflicts with the current content."""

    path: str
    merged: Merged | None = None
    """None if the file was created, removed or is binary."""
    collisions: tuple[Collision, ...] = ()

    def lines(self) -> list[range]:
        """The conflicting lines in the current file, counting all lines added so far."""
        return [] if self.merged is None else [self.merged.lines(each) for each in self.collisions]


class Files:
    """The content at each path. Every file is read once; nothing is written."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.original: dict[str, bytes | None] = {}
        """Contents when first read."""
        self._now: dict[str, bytes | None] = {}
        self._merged: dict[str, Merged] = {}
        """By path: the base of the last comparison, with all edits."""
        self._inserted: list[tuple[str, list[Edit]]] = []
        self.clashes: list[Clash] = []
        """Conflicts of the changes being merged."""

    def now(self, path: str) -> bytes | None:
        """The file's current content, or None if there is no file."""
        if path not in self._now:
            try:
                self._now[path] = self._door.read(path)
            except FileNotFoundError:
                self._now[path] = None
            self.original[path] = self._now[path]
        return self._now[path]

    def merge(self, change: Change, owner: str = YOU) -> Result | None:
        """Merge a change into the file. None for a conflict, added to `clashes`. Call `keep` or `drop` afterwards."""
        now = self.now(change.path)
        if now == change.base and (owner == YOU or not _has_lines(change, now)):
            return Result(change.after)
        if change.base is None and now is not None and (joined := join_new(change.path, now, change.after)) is not None:
            return Result(joined)
        if not _has_lines(change, now):
            self.clashes.append(Clash(change.path))
            return None
        merged = self._base(change, now)
        edits, collisions = merged.compare(change.after or b"")
        if collisions:
            self.clashes.append(Clash(change.path, merged, tuple(collisions)))
            return None
        merged.insert(edits, owner)
        self._inserted.append((change.path, edits))
        return Result(merged.text())

    def keep(self, planned: list[Change]) -> None:
        """Commit everything merged since the last call."""
        for change in planned:
            self._now[change.path] = change.after
            if change.path not in (path for path, _ in self._inserted):
                self._merged.pop(change.path, None)
        self._inserted, self.clashes = [], []

    def drop(self) -> tuple[Clash, ...]:
        """Roll back everything merged since the last call. Returns its conflicts."""
        for path, edits in self._inserted:
            self._merged[path].remove(edits)
        clashes, self._inserted, self.clashes = tuple(self.clashes), [], []
        return clashes

    def _base(self, change: Change, now: bytes | None) -> Merged:
        known = self._merged.get(change.path)
        if known is None or known.base.data != change.base:
            # Another base: owners must be found by comparing edits.
            known = self._merged[change.path] = Merged(change.base or b"", now or b"")
        return known


def join_new(path: str, now: bytes, after: bytes | None) -> bytes | None:
    """Join two new Python files at one path. None if they are not clearly the parts of one file."""
    return union(now, after) if after is not None and path.endswith(".py") else None


def _has_lines(change: Change, now: bytes | None) -> bool:
    texts = (change.base, change.after, now)
    return None not in texts and not is_binary(*(text for text in texts if text is not None))
