"""The project's files as they come to be, while changes are made one after the other in memory."""

from __future__ import annotations

from dataclasses import dataclass

from remora.workspaces._diff import Edit
from remora.workspaces._door import Door
from remora.workspaces._merge import YOU, Collision, Merged, is_binary
from remora.workspaces._review import Change


@dataclass(frozen=True)
class Result:
    """What a file comes to. None as text means that it is removed."""

    text: bytes | None


@dataclass(frozen=True)
class Clash:
    """A file in which a change collides with what is there."""

    path: str
    merged: Merged | None = None
    """None for a file that came, went or holds no text."""
    collisions: tuple[Collision, ...] = ()

    def lines(self) -> list[range]:
        """The lines of the file as it is now, with all that has been added since."""
        return [] if self.merged is None else [self.merged.lines(each) for each in self.collisions]


class Files:
    """What is at each path. Every file is read once; nothing is written."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.found: dict[str, bytes | None] = {}
        """What was there when it was first looked at."""
        self._now: dict[str, bytes | None] = {}
        self._merged: dict[str, Merged] = {}
        """By path: the base that changes were last compared with, and all edits of it."""
        self._inserted: list[tuple[str, list[Edit]]] = []
        self.clashes: list[Clash] = []
        """Where the changes that are looked at collide."""

    def now(self, path: str) -> bytes | None:
        """The file's content, or None where there is no file."""
        if path not in self._now:
            try:
                self._now[path] = self._door.read(path)
            except FileNotFoundError:
                self._now[path] = None
            self.found[path] = self._now[path]
        return self._now[path]

    def merge(self, change: Change, owner: str = YOU) -> Result | None:
        """What becomes of the file; None for a conflict, which is then in `clashes`. `keep` or `drop` follows."""
        now = self.now(change.path)
        if now == change.base and (owner == YOU or not _has_lines(change, now)):
            return Result(change.after)
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
        """What was merged since the last time is part of the files."""
        for change in planned:
            self._now[change.path] = change.after
            if change.path not in (path for path, _ in self._inserted):
                self._merged.pop(change.path, None)
        self._inserted, self.clashes = [], []

    def drop(self) -> tuple[Clash, ...]:
        """What was merged since the last time is not part of the files. Gives where it collided."""
        for path, edits in self._inserted:
            self._merged[path].remove(edits)
        clashes, self._inserted, self.clashes = tuple(self.clashes), [], []
        return clashes

    def _base(self, change: Change, now: bytes | None) -> Merged:
        known = self._merged.get(change.path)
        if known is None or known.base.data != change.base:
            # Another base: whose edits they are is then told by what they are.
            known = self._merged[change.path] = Merged(change.base or b"", now or b"")
        return known


def _has_lines(change: Change, now: bytes | None) -> bool:
    texts = (change.base, change.after, now)
    return None not in texts and not is_binary(*(text for text in texts if text is not None))
