"""Plans the changes of many agents in memory, each on top of those before it, to write them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from remora.errors import WorkspaceError
from remora.workspaces._door import Door
from remora.workspaces._files import Clash, Files
from remora.workspaces._merge import YOU
from remora.workspaces._review import Change
from remora.workspaces._take import plan


@dataclass(frozen=True)
class Part:
    """The changes of one agent: each file before and after, and the folders to create first."""

    changes: tuple[Change, ...] = ()
    made: tuple[str, ...] = ()


class Batch:
    """Plans the changes of many agents in memory. A change that conflicts is left out, and the others continue."""

    def __init__(self, root: Path) -> None:
        self._door = Door(root)
        self._files = Files(self._door)
        self._modes: dict[str, int] = {}
        self._made: dict[str, None] = {}
        self.clashes: tuple[Clash, ...] = ()
        """The conflicts of the last changes that were refused."""

    def add(self, changes: Sequence[Change], owner: str = YOU) -> Part:
        """Plan the changes. Raises `WorkspaceError`, and then none of them is part of the batch."""
        try:
            planned = plan(self._door, changes, self._files, owner)
            self._check_folders(planned)
        except BaseException:
            self.clashes = self._files.drop()
            raise
        self._files.keep(planned)
        needed = dict.fromkeys(folder for each in planned for folder in self._door.missing_folders(each.path))
        made = tuple(folder for folder in needed if folder not in self._made)
        self._made |= dict.fromkeys(made)
        self._modes |= {each.path: each.mode for each in planned}
        return Part(tuple(planned), made)

    def changes(self) -> list[Change]:
        """The whole batch, as one change per file."""
        files = self._files
        both = [(path, files.original[path], files.now(path)) for path in self._modes]
        return [Change(path, found, now, self._modes[path]) for path, found, now in both if found != now]

    def _check_folders(self, planned: Sequence[Change]) -> None:
        """Raises `WorkspaceError` if one change needs a folder where another has a file."""
        for path in (change.path for change in planned if change.after is not None):
            if path in self._made:
                raise WorkspaceError(f"`{path}` cannot be created: another change needs a folder there")
            parts = path.split("/")
            for end in range(1, len(parts)):
                folder = "/".join(parts[:end])
                if folder in self._modes and self._files.now(folder) is not None:
                    raise WorkspaceError(f"`{path}` cannot be created: `{folder}` is a file, not a directory")
