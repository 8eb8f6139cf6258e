"""The user's decisions about agents' changes: a fold over the events of runs."""

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
"""The event types that `decisions` reads."""
UNSAFE = "unsafe"
"""The verdict of changes that may alter behaviour: shown and marked, and accepted only if the user names the agent."""
NOT_SHOWN = ("failed", "discarded")
"""Verdicts of changes that a review shows only if the user names the agent."""
NOT_TAKEN = (*NOT_SHOWN, UNSAFE)
"""Verdicts of changes that are accepted only if the user names the agent."""


@dataclass
class Decisions:
    """Everything accepted and rejected so far, and the accepts that can be undone."""

    accepts: list[WorkspaceAcceptedEvent] = field(default_factory=list)
    """The accepts that were not undone, oldest first."""
    rejected: dict[str, set[str]] = field(default_factory=dict)
    """Paths by agent."""
    not_shown: set[str] = field(default_factory=set)
    """Agents whose changes a review shows only if the user names them."""
    last_accept: str = ""
    """The greatest id of any accept, undone ones included. A new id must be greater."""

    def open(self, agent_id: str, files: Iterable[FileChange]) -> tuple[FileChange, ...]:
        """The agent's changes that are neither accepted nor rejected."""
        mine = self._by_agent.get(agent_id, ())
        if any(not event.paths for event in mine):
            return ()
        decided = {path for event in mine for path in event.paths} | self.rejected.get(agent_id, set())
        return tuple(change for change in files if change.path not in decided)

    @cached_property
    def _by_agent(self) -> dict[str, list[WorkspaceAcceptedEvent]]:
        grouped: dict[str, list[WorkspaceAcceptedEvent]] = {}
        for event in self.accepts:
            grouped.setdefault(event.agent_id, []).append(event)
        return grouped

    def is_accepted(self, agent_id: str, path: str) -> bool:
        """Whether the agent's change of a file is accepted and not undone."""
        return any(not event.paths or path in event.paths for event in self._by_agent.get(agent_id, ()))

    def latest(self, agent_id: str | None) -> list[WorkspaceAcceptedEvent]:
        """The events of the latest accept, of one agent or of all, newest first."""
        found = [event for event in self.accepts if agent_id in (None, event.agent_id)]
        last = found[-1:]
        if agent_id is None and last and last[0].accept_id:
            last = [event for event in found if event.accept_id == last[0].accept_id]
        return last[::-1]


def decisions(events: Iterable[Event]) -> Decisions:
    """Fold the events of all runs. The events of one run must be in the order of its stream.

    All decisions about an agent are in the stream of its run, and accept ids sort in the order of recording. So the
    order does not depend on `ts`.
    """
    result = Decisions()
    in_effect: dict[int, tuple[_SortKey, WorkspaceAcceptedEvent]] = {}
    by_key: dict[tuple[str, str], list[int]] = {}
    last: dict[str, _SortKey] = {}
    for event in events:
        match event:
            case WorkspaceAcceptedEvent(run_id=run_id, agent_id=agent_id, accept_id=accept_id):
                last[run_id] = max(_sort_key(event), last.get(run_id, ("", "")))
                by_key.setdefault((agent_id, accept_id), []).append(id(event))
                in_effect[id(event)] = (last[run_id], event)
            case WorkspaceRejectedEvent(agent_id=agent_id, paths=paths):
                result.rejected.setdefault(agent_id, set()).update(paths)
            case AcceptUndoneEvent(agent_id=agent_id, accept_id=accept_id):
                for undone in by_key.pop((agent_id, accept_id), ()):
                    del in_effect[undone]
            case AgentFinishedEvent(verdict=verdict) if verdict in NOT_SHOWN:
                result.not_shown.add(event.agent_id)
            case _:
                pass
    result.accepts = [event for _, event in sorted(in_effect.values(), key=lambda each: each[0])]
    result.last_accept = max(last.values(), default=("", ""))[0]
    return result


_SortKey = tuple[str, str]
"""Sort key of an accept among those of all runs."""


def _sort_key(event: WorkspaceAcceptedEvent) -> _SortKey:
    # Old accepts have no ids: only the time orders those of different runs.
    return (event.accept_id, "") if is_id(event.accept_id) else ("", event.ts)
