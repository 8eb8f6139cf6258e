"""Looking at what agents would change, and taking it over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remora.analysis import (
    StreamSummary,
    summarize,
)
from remora.app._project import Project
from remora.errors import TraceNotFound, WorkspaceError
from remora.events import (
    AgentFinishedEvent,
    AgentScheduledEvent,
    FileChange,
    WorkspaceAcceptedEvent,
)
from remora.trace import read_events

if TYPE_CHECKING:
    from remora.workspaces import Change


_ENDED_WELL = ("success", "partial")


@dataclass(frozen=True)
class AgentDiff:
    """What an agent would change in the project."""

    summary: StreamSummary
    changes: tuple[Change, ...]
    text: str
    """A unified diff, for showing: without secrets."""


@dataclass(frozen=True)
class Accepted:
    """What became of one agent's changes."""

    agent_id: str
    node_id: str
    files: tuple[FileChange, ...] = ()
    conflict: str = ""


class Reviewing(Project):
    """Shows and accepts the changes of agents."""

    async def diff(self, fragment: str | None = None) -> list[AgentDiff]:
        """What one agent, or every agent of the latest run, would change and nobody has accepted yet."""
        from remora.workspaces import unified

        found = []
        for summary in self._candidates(fragment):
            changes = tuple([await self._change(change) for change in summary.files])
            found.append(AgentDiff(summary, changes, self.secrets.clean(unified(changes))))
        return found

    async def accept(self, fragment: str | None = None) -> list[Accepted]:
        """Write the agents' changes into the project, each recorded in its run. A conflict changes nothing."""
        from remora.workspaces import accept

        done = []
        async with self._writer() as writer:
            for diff in await self.diff(fragment):
                summary = diff.summary
                # Ours before anything is written: what could not be recorded must not happen.
                await writer.reopen(f"runs/{summary.run_id}")
                try:
                    written = accept(self.root, diff.changes)
                except WorkspaceError as refused:
                    done.append(Accepted(summary.agent_id, summary.node_id, conflict=refused.message))
                    continue
                files = tuple([await self._written(change) for change in written])
                event = WorkspaceAcceptedEvent(
                    run_id=summary.run_id,
                    agent_id=summary.agent_id,
                    operation=summary.operation,
                    node_id=summary.node_id,
                    files=files,
                )
                await writer.append(f"runs/{summary.run_id}", [event])
                done.append(Accepted(summary.agent_id, summary.node_id, files))
        return done

    def _candidates(self, fragment: str | None) -> list[StreamSummary]:
        if fragment is None:
            runs = self.library.runs()
            if not runs:
                raise TraceNotFound(f"No run in {self.state_dir}", hint="Run `remora analyze PATH -o lint` first")
            ids = [event.agent_id for event in read_events(runs[-1]) if isinstance(event, AgentScheduledEvent)]
            paths = [self.state_dir / "traces" / f"{agent_id}.jsonl" for agent_id in ids]
        else:
            paths = [self.library.find(fragment)]
        taken, failed = set(), set()
        for event in self.library.run_events():
            if isinstance(event, WorkspaceAcceptedEvent):
                taken.add(event.agent_id)
            elif isinstance(event, AgentFinishedEvent) and event.verdict == "failed":
                failed.add(event.agent_id)
        # An agent that failed or was cut off is taken only by name.
        kept_out = taken if fragment else taken | failed
        summaries = [summarize(read_events(path)) for path in paths if path.exists()]
        return [
            summary
            for summary in summaries
            if summary.files and summary.agent_id not in kept_out and (fragment or summary.outcome in _ENDED_WELL)
        ]

    async def _change(self, change: FileChange) -> Change:
        from remora.workspaces import Change

        blobs = self.blobs
        return Change(
            path=change.path,
            base=None if change.before is None else await blobs.get(change.before),
            after=None if change.after is None else await blobs.get(change.after),
        )

    async def _written(self, change: Change) -> FileChange:
        """What an accept wrote, merged content included: what an undo will need."""
        blobs = self.blobs
        return FileChange(
            path=change.path,
            mode=change.mode,
            before=None if change.base is None else await blobs.put(change.base),
            after=None if change.after is None else await blobs.put(change.after),
        )
