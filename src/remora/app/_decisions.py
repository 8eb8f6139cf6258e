"""What people decided about agents' changes: a fold over the events of runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from remora.events import (
    AcceptUndoneEvent,
    AgentFinishedEvent,
    Event,
    FileChange,
    WorkspaceAcceptedEvent,
    WorkspaceRejectedEvent,
)

NOT_TAKEN = ("failed", "discarded")
"""Verdicts of work that is taken only by its agent's name."""


@dataclass
class Decisions:
    """What was accepted and rejected so far, and which accepts could be undone."""

    accepts: list[WorkspaceAcceptedEvent] = field(default_factory=list)
    """Those that stand, oldest first."""
    rejected: dict[str, set[str]] = field(default_factory=dict)
    """Paths by agent."""
    not_taken: set[str] = field(default_factory=set)

    def open(self, agent_id: str, files: Iterable[FileChange]) -> tuple[FileChange, ...]:
        """The agent's changes that nobody has decided on."""
        mine = [event for event in self.accepts if event.agent_id == agent_id]
        if any(not event.paths for event in mine):
            return ()
        decided = {path for event in mine for path in event.paths} | self.rejected.get(agent_id, set())
        return tuple(change for change in files if change.path not in decided)

    def is_accepted(self, agent_id: str, path: str) -> bool:
        """Whether the agent's change of a file stands in the project."""
        mine = [event for event in self.accepts if event.agent_id == agent_id]
        return any(not event.paths or path in event.paths for event in mine)

    def latest(self, agent_id: str | None) -> list[WorkspaceAcceptedEvent]:
        """What the latest accept took, of one agent or of all, newest first."""
        found = [event for event in self.accepts if agent_id in (None, event.agent_id)]
        last = found[-1:]
        if agent_id is None and last and last[0].accept_id:
            last = [event for event in found if event.accept_id == last[0].accept_id]
        return last[::-1]


def decisions(events: Iterable[Event]) -> Decisions:
    """What the events of all runs, oldest first, come to."""
    made = Decisions()
    for event in sorted(events, key=lambda event: event.ts):
        match event:
            case WorkspaceAcceptedEvent():
                made.accepts.append(event)
            case WorkspaceRejectedEvent(agent_id=agent_id, paths=paths):
                made.rejected.setdefault(agent_id, set()).update(paths)
            case AcceptUndoneEvent(agent_id=agent_id, accept_id=accept_id):
                made.accepts = [
                    other for other in made.accepts if (other.agent_id, other.accept_id) != (agent_id, accept_id)
                ]
            case AgentFinishedEvent(verdict=verdict) if verdict in NOT_TAKEN:
                made.not_taken.add(event.agent_id)
            case _:
                pass
    return made
