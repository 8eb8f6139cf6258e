"""Finds who changed the lines of a conflict before: another agent, or someone else, such as you."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remora.errors import WorkspaceConflict, WorkspaceError
from remora.events import FileChange, WorkspaceAcceptedEvent, short_id

if TYPE_CHECKING:
    from remora.workspaces import Change, Clash, Collision, Made


@dataclass(frozen=True)
class Author:
    """An agent whose changes were accepted."""

    agent_id: str
    node_id: str


@dataclass(frozen=True)
class Conflict:
    """A file where an agent changed lines that someone else changed after the agent read them."""

    path: str
    lines: tuple[tuple[int, int], ...] = ()
    """First and last line of each place in the current file. Empty for a created, deleted or binary file."""
    agents: tuple[Author, ...] = ()
    """The agents that changed them."""
    others: bool = True
    """Whether someone other than an agent changed them, such as you or your editor."""


class Authors:
    """Finds the authors of conflicting edits in the accepts so far."""

    def __init__(
        self, accepts: Iterable[WorkspaceAcceptedEvent], load: Callable[[FileChange], Awaitable[Change]]
    ) -> None:
        """`accepts` must be sorted, oldest first."""
        self._written: dict[str, list[tuple[Author, FileChange]]] = {}
        self._by_id: dict[str, Author] = {}
        for event in accepts:
            author = self._by_id[event.agent_id] = Author(event.agent_id, event.node_id)
            for file in event.files:
                self._written.setdefault(file.path, []).append((author, file))
        self._load = load
        self._edits_by_path: dict[str, list[tuple[Author, Made]]] = {}

    async def conflicts(self, clashes: Sequence[Clash]) -> tuple[Conflict, ...]:
        """Add the authors of the earlier edits to each clash."""
        return tuple([await self._conflict(clash) for clash in clashes])

    async def _conflict(self, clash: Clash) -> Conflict:
        if clash.merged is None:
            last = self._written.get(clash.path, ())[-1:]
            return Conflict(clash.path, agents=tuple(author for author, _ in last), others=not last)
        found: dict[str, None] = {}
        others = False
        for collision in clash.collisions:
            owners = [owner for owner in collision.owners if owner in self._by_id]
            if len(owners) < len(collision.owners):
                owners += await self._authors_of(clash.path, collision)
            found |= dict.fromkeys(owners)
            others = others or not owners
        lines = tuple((each[0], each[-1]) for each in clash.lines())
        return Conflict(clash.path, lines, tuple(self._by_id[owner] for owner in found), others)

    async def _authors_of(self, path: str, collision: Collision) -> list[str]:
        """The agents that made the same edits, found by comparing texts: their owner was not recorded."""
        if path not in self._edits_by_path:
            self._edits_by_path[path] = [
                (author, await self._load_edits(file)) for author, file in self._written.get(path, ())
            ]
        return [author.agent_id for author, made in self._edits_by_path[path] if collision.is_like(made)]

    async def _load_edits(self, file: FileChange) -> Made:
        from remora.workspaces import made

        change = await self._load(file)
        return made(change.base or b"", change.after or b"")


def describe(agent_id: str, refused: WorkspaceError, conflicts: Sequence[Conflict], kind: str) -> tuple[str, str]:
    """Write the error message and the hint of a conflict."""
    by_agents = [each for each in conflicts if each.agents]
    if not by_agents:
        return refused.message, refused.hint or ""
    by_others = [each for each in conflicts if each.others]
    authors = {author.agent_id: author for each in by_agents for author in each.agents}
    names = ", ".join(f"`{short_id(author.agent_id)}` ({author.node_id})" for author in authors.values())
    lines = {each.path: [range(first, last + 1) for first, last in each.lines] for each in conflicts}
    where = WorkspaceConflict.places([each.path for each in by_agents], lines)
    sentences = [f"Changed before by {'agent' if len(authors) == 1 else 'agents'} {names}, in the same lines: {where}"]
    if by_others:
        places = WorkspaceConflict.places([each.path for each in by_others], lines)
        sentences.append(f"Changed by someone else since the agent read it: {places}")
    return ". ".join([*sentences, "Nothing was written"]), _hint(agent_id, [*authors], kind)


def _hint(agent_id: str, others: Sequence[str], kind: str) -> str:
    first = f"`remora undo {short_id(others[0])}`"
    if kind != "accept":
        return f"Take the later change back first, by {first}"
    return f"Run the agent again on the new text, or choose: {first}, then `remora accept {short_id(agent_id)}`"
