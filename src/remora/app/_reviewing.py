"""Looking at what agents would change, taking it over, turning it down, and taking it back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remora.analysis import StreamSummary, summarize
from remora.app._changing import Changing
from remora.app._decisions import Decisions, decisions
from remora.errors import TraceError, TraceNotFound, WorkspaceError
from remora.events import (
    AgentScheduledEvent,
    Event,
    FileChange,
    ToolResultEvent,
    WorkspaceRejectedEvent,
    new_id,
    short_id,
)
from remora.trace import FileTrace, read_events

if TYPE_CHECKING:
    from remora.workspaces import Change


_ENDED_WELL = ("success", "partial")
_IDS = ("run_id", "agent_id", "operation", "node_id")
Chosen = Mapping[str, Collection[str]]
"""Paths by agent."""


@dataclass(frozen=True)
class AgentDiff:
    """What an agent would change in the project, and nobody has decided on."""

    summary: StreamSummary
    changes: tuple[Change, ...]
    patches: tuple[str, ...]
    """A unified diff of each, for showing: without secrets."""

    @property
    def text(self) -> str:
        """All of them in one."""
        return "".join(self.patches)


@dataclass(frozen=True)
class Accepted:
    """What became of one agent's changes."""

    agent_id: str
    node_id: str
    files: tuple[FileChange, ...] = ()
    conflict: str = ""


@dataclass(frozen=True)
class Rejected:
    """One agent's changes that were turned down."""

    agent_id: str
    node_id: str
    paths: tuple[str, ...]


class Reviewing(Changing):
    """Shows, accepts, rejects and undoes the changes of agents."""

    async def diff(self, fragment: str | None = None, files: Sequence[str] = ()) -> list[AgentDiff]:
        """What one agent, or every agent of the latest run that has something open, would change."""
        await self.settled()
        return await self._diffs(fragment, files)

    async def accept(
        self, fragment: str | None = None, files: Sequence[str] = (), *, chosen: Chosen | None = None
    ) -> list[Accepted]:
        """Write the agents' changes into the project, each recorded in its run. A conflict changes nothing."""
        accept_id = new_id(self.clock.now())
        async with self._alone() as writer:
            found = await self._diffs(fragment, files)
            wanted = found if chosen is None else self._only(found, chosen)
            builders = self._builders(wanted)
            done = []
            for diff in wanted:
                note = _note("accept", accept_id, diff)
                if missing := self._missing(builders.get(diff.summary.agent_id), note):
                    done.append(Accepted(note["agent_id"], note["node_id"], conflict=missing))
                else:
                    done.append(await self._accepted(writer, note, diff.changes))
            return done

    async def reject(self, fragment: str | None = None, files: Sequence[str] = ()) -> list[Rejected]:
        """The agents' changes are turned down: recorded in their run, and no longer open. No file changes."""
        done = []
        async with self._alone() as writer:
            for diff in await self._diffs(fragment, files):
                note = _note("reject", "", diff)
                event = WorkspaceRejectedEvent(**{name: note[name] for name in (*_IDS, "paths")})
                await writer.append(f"runs/{event.run_id}", [event])
                done.append(Rejected(event.agent_id, event.node_id, event.paths))
        return done

    async def undo(self, fragment: str | None = None) -> list[Accepted]:
        """The latest accept, or the latest of one agent, is taken back; its changes are open again.

        What was changed since is merged, or refused as a conflict that changes nothing.
        """
        done = []
        async with self._alone() as writer:
            agent_id = self.library.find(fragment).stem if fragment else None
            for event in decisions(self.library.run_events()).latest(agent_id):
                note = {name: getattr(event, name) for name in (*_IDS, "accept_id", "paths")} | {"kind": "undo"}
                changes = [await self._reversed(change) for change in event.files]
                done.append(await self._accepted(writer, note, changes, event.made))
        return done

    async def restore(self, fragment: str, *, turn: int | None = None) -> dict[str, bytes]:
        """The files that the agent had changed by the end of `turn` (None: its last), as it had left them."""
        last: dict[str, FileChange] = {}
        for event in self.library.events(fragment):
            if isinstance(event, ToolResultEvent) and (turn is None or event.turn <= turn):
                last |= {change.path: change for change in event.files}
        return {path: await self.blobs.get(change.after) for path, change in last.items() if change.after is not None}

    async def _accepted(
        self, writer: FileTrace, note: Mapping[str, Any], changes: Sequence[Change], drop: Sequence[str] = ()
    ) -> Accepted:
        try:
            files = await self._apply(writer, note, changes, drop)
        except WorkspaceError as refused:
            return Accepted(note["agent_id"], note["node_id"], conflict=refused.message)
        return Accepted(note["agent_id"], note["node_id"], files)

    def _builders(self, found: Sequence[AgentDiff]) -> dict[str, AgentScheduledEvent]:
        """The agents among these that worked on what others' changes come to together."""
        runs = {diff.summary.run_id for diff in found}
        events = (event for run_id in runs for event in _intact(self.state_dir / "runs" / f"{run_id}.jsonl"))
        return {e.agent_id: e for e in events if isinstance(e, AgentScheduledEvent) and e.after}

    def _missing(self, builder: AgentScheduledEvent | None, note: Mapping[str, Any]) -> str:
        """Why an agent that worked on others' changes cannot be accepted without them; empty if it can."""
        if builder is None:
            return ""
        made = decisions(_intact(self.state_dir / "runs" / f"{builder.run_id}.jsonl"))
        over = {change.path for change in builder.over}.intersection(note["paths"])
        missing = [agent for agent in builder.after if not all(made.is_accepted(agent, path) for path in over)]
        names = ", ".join(map(short_id, missing))
        return f"it builds on changes of other agents that are not accepted: {names}" if missing else ""

    async def _diffs(self, fragment: str | None, files: Sequence[str]) -> list[AgentDiff]:
        found = []
        for summary, undecided in self._open(fragment):
            found.append(self._shown(summary, tuple([await self._change(change) for change in undecided])))
        return self._of_files(found, files) if files else found

    def _of_files(self, found: Sequence[AgentDiff], files: Sequence[str]) -> list[AgentDiff]:
        known = {change.path for diff in found for change in diff.changes}
        wanted = {self._project_path(file, known) for file in files}
        if unknown := sorted(wanted - known):
            names = ", ".join(f"`{path}`" for path in sorted(known)) or "none"
            raise WorkspaceError(f"Nothing is open for `{unknown[0]}`: expected one of the files with changes: {names}")
        return self._only(found, {diff.summary.agent_id: wanted for diff in found})

    def _project_path(self, file: str, known: Collection[str]) -> str:
        """The path as changes spell it, given as they do or from the current directory."""
        if file in known:
            return file
        here = Path(file).absolute()
        return here.relative_to(self.root).as_posix() if here.is_relative_to(self.root) else file

    def _open(self, fragment: str | None) -> list[tuple[StreamSummary, tuple[FileChange, ...]]]:
        made = decisions(self.library.run_events())
        if fragment is not None and not self.library.is_run(fragment):
            return list(_with_open([self.library.find(fragment)], made, named=True))
        runs = self.library.runs() if fragment is None else [self.library.find(fragment)]
        if not runs:
            raise TraceNotFound(f"No run in {self.state_dir}", hint="Run `remora analyze PATH -o lint` first")
        for run in reversed(runs):
            if found := list(_with_open(self._streams(run), made, named=False)):
                return found
        return []

    def _streams(self, run: Path) -> list[Path]:
        scheduled = (event for event in _intact(run) if isinstance(event, AgentScheduledEvent))
        return [self.state_dir / "traces" / f"{event.agent_id}.jsonl" for event in scheduled]

    def _only(self, found: Sequence[AgentDiff], chosen: Chosen) -> list[AgentDiff]:
        """The diffs, with no more than the chosen files in each."""
        kept = []
        for diff in found:
            paths = chosen.get(diff.summary.agent_id, ())
            if changes := tuple(change for change in diff.changes if change.path in paths):
                kept.append(self._shown(diff.summary, changes))
        return kept

    def _shown(self, summary: StreamSummary, changes: tuple[Change, ...]) -> AgentDiff:
        from remora.workspaces import unified

        return AgentDiff(summary, changes, tuple(self.secrets.clean(unified([change])) for change in changes))

    async def _change(self, change: FileChange) -> Change:
        from remora.workspaces import Change

        before, after = [None if blob is None else await self.blobs.get(blob) for blob in (change.before, change.after)]
        return Change(path=change.path, base=before, after=after, mode=change.mode)

    async def _reversed(self, change: FileChange) -> Change:
        return await self._change(change.model_copy(update={"before": change.after, "after": change.before}))


def _with_open(
    paths: Sequence[Path], made: Decisions, *, named: bool
) -> Iterator[tuple[StreamSummary, tuple[FileChange, ...]]]:
    """The agents that have something open. One that failed or was cut off is taken only by name."""
    for path in paths:
        if not path.exists() or (path.stem in made.not_taken and not named):
            continue
        summary = summarize(read_events(path))
        files = made.open(path.stem, summary.files)
        if files and (named or summary.outcome in _ENDED_WELL):
            yield summary, files


def _intact(run: Path) -> Iterator[Event]:
    """The events of a run as far as it is intact; `verify` tells of the rest."""
    try:
        yield from read_events(run, torn_ok=True)
    except TraceError:
        return


def _note(kind: str, accept_id: str, diff: AgentDiff) -> dict[str, Any]:
    """All that the record of a decision needs beside the files."""
    summary, paths = diff.summary, [change.path for change in diff.changes]
    ids = {name: getattr(summary, name) for name in _IDS}
    return ids | {"kind": kind, "accept_id": accept_id, "paths": paths}
