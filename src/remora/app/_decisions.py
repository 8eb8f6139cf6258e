"""What people decided about agents' changes: a fold over the events of runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from remora.events import (
    AcceptUndoneEvent,
    AgentFinishedEvent,
    Event,
    FileChange,
    WorkspaceAcceptedEvent,
    WorkspaceRejectedEvent,
    is_id,
)

DECIDING = ("workspace_accepted", "workspace_rejected", "accept_undone", "agent_finished")
"""The types of the events that `decisions` looks at."""
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
    last_accept: str = ""
    """The greatest id of an accept, also of one that was undone: a new one must be behind it."""

    def open(self, agent_id: str, files: Iterable[FileChange]) -> tuple[FileChange, ...]:
        """The agent's changes that nobody has decided on."""
        mine = self._by_agent.get(agent_id, ())
        if any(not event.paths for event in mine):
            return ()
        decided = {path for event in mine for path in event.paths} | self.rejected.get(agent_id, set())
        return tuple(change for change in files if change.path not in decided)

    @cached_property
    def _by_agent(self) -> dict[str, list[WorkspaceAcceptedEvent]]:
        found: dict[str, list[WorkspaceAcceptedEvent]] = {}
        for event in self.accepts:
            found.setdefault(event.agent_id, []).append(event)
        return found

    def is_accepted(self, agent_id: str, path: str) -> bool:
        """Whether the agent's change of a file stands in the project."""
        return any(not event.paths or path in event.paths for event in self._by_agent.get(agent_id, ()))

    def latest(self, agent_id: str | None) -> list[WorkspaceAcceptedEvent]:
        """What the latest accept took, of one agent or of all, newest first."""
        found = [event for event in self.accepts if agent_id in (None, event.agent_id)]
        last = found[-1:]
        if agent_id is None and last and last[0].accept_id:
            last = [event for event in found if event.accept_id == last[0].accept_id]
        return last[::-1]


def decisions(events: Iterable[Event]) -> Decisions:
    """What the events of all runs come to; those of one run must be in the order of its stream.

    All decisions on an agent are in the stream of its run, and accepts have ids that sort as they were recorded. So
    the order never comes from `ts`.
    """
    made = Decisions()
    standing: dict[int, tuple[_Rank, WorkspaceAcceptedEvent]] = {}
    by_key: dict[tuple[str, str], list[int]] = {}
    last: dict[str, _Rank] = {}
    for event in events:
        match event:
            case WorkspaceAcceptedEvent(run_id=run_id, agent_id=agent_id, accept_id=accept_id):
                last[run_id] = max(_rank(event), last.get(run_id, ("", "")))
                by_key.setdefault((agent_id, accept_id), []).append(id(event))
                standing[id(event)] = (last[run_id], event)
            case WorkspaceRejectedEvent(agent_id=agent_id, paths=paths):
                made.rejected.setdefault(agent_id, set()).update(paths)
            case AcceptUndoneEvent(agent_id=agent_id, accept_id=accept_id):
                for taken_back in by_key.pop((agent_id, accept_id), ()):
                    del standing[taken_back]
            case AgentFinishedEvent(verdict=verdict) if verdict in NOT_TAKEN:
                made.not_taken.add(event.agent_id)
            case _:
                pass
    made.accepts = [event for _, event in sorted(standing.values(), key=lambda each: each[0])]
    made.last_accept = max(last.values(), default=("", ""))[0]
    return made


_Rank = tuple[str, str]
"""Where an accept stands among those of all runs."""


def _rank(event: WorkspaceAcceptedEvent) -> _Rank:
    # From before accepts had ids, nothing but the time says which of two runs was accepted first.
    return (event.accept_id, "") if is_id(event.accept_id) else ("", event.ts)
