"""Where a line of one version of a file is in another."""

from __future__ import annotations

from remora.workspaces._diff import Edit, base_of


class LineMap:
    """Maps line numbers, which begin with 1, between two versions of a file."""

    def __init__(self, old: bytes, new: bytes) -> None:
        base = base_of(old)
        self._edits: list[Edit] = base.edits(new)
        self.last = len(base.lines) + 1
        """The last line of the old version that can be named: the one behind its end."""

    def kept(self, line: int) -> int | None:
        """The line of the new version; None if the line was changed or removed, or never was."""
        if line > self.last:
            return None
        shift = 0
        for edit in self._edits:
            if line <= edit.first:
                break
            if line <= edit.last:
                return None
            shift += len(edit.lines) - (edit.last - edit.first)
        return line + shift

    def before(self, line: int) -> int:
        """The line of the old version that became `line` of the new one.

        Of lines that were replaced, the first is the first. An added line is where it was added.
        """
        shift = 0
        for edit in self._edits:
            inside = line - 1 - (edit.first + shift)
            if inside < 0:
                break
            if inside < len(edit.lines):
                return max(1, edit.first + 1 + min(inside, edit.last - edit.first))
            shift += len(edit.lines) - (edit.last - edit.first)
        return max(1, line - shift)
