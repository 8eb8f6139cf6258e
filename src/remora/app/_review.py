"""Looking at what agents would change, taking it over, turning it down, and taking it back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remora.analysis import StreamSummary, summarize
from remora.app._changes import CUT_OFF, Outcome, Progress, Proposed, silent
from remora.app._conflicts import Authors, Conflict, describe
from remora.app._decisions import DECIDING, Decisions, decisions
from remora.app._project import Project
from remora.errors import TraceNotFound, WorkspaceError
from remora.events import (
    AgentScheduledEvent,
    FileChange,
    ToolResultEvent,
    WorkspaceRejectedEvent,
    next_id,
    short_id,
)
from remora.trace import FileBlobs, FileTrace, check_stream_id, pick_events, read_events

if TYPE_CHECKING:
    from remora.workspaces import Change


KEPT = 4
"""Contents that are held while changes are read."""
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
    """Why nothing of it was written."""
    conflicts: tuple[Conflict, ...] = ()
    """Where, and who had changed those lines before."""
    hint: str = ""


@dataclass(frozen=True)
class Rejected:
    """One agent's changes that were turned down."""

    agent_id: str
    node_id: str
    paths: tuple[str, ...]


class Review:
    """Shows, accepts, rejects and undoes the changes of agents."""

    def __init__(self, project: Project) -> None:
        self._project = project

    async def diff(
        self, fragment: str | None = None, files: Sequence[str] = (), *, progress: Progress = silent
    ) -> list[AgentDiff]:
        """What one agent, or every agent of the latest run that has something open, would change."""
        self._project.changes.note(*self._project.library.notices)
        if self._project.changes.is_cut_off:
            self._project.changes.note(CUT_OFF)
        contents, found = Contents(self._project.blobs), []
        chosen = self._chosen(fragment, files, progress)
        for at, each in enumerate(chosen):
            progress("diff", at, len(chosen))
            found.append(self._shown(each.summary, tuple([await contents.change(file) for file in each.files])))
        return found

    async def accept(
        self,
        fragment: str | None = None,
        files: Sequence[str] = (),
        *,
        chosen: Chosen | None = None,
        progress: Progress = silent,
    ) -> list[Accepted]:
        """Write the agents' changes into the project, each recorded in its run. A conflict changes nothing."""
        async with self._project.changes.alone() as writer:
            accept_id = next_id(self._project.clock.now(), self._decisions().last_accept)
            found = self._chosen(fragment, files, progress)
            wanted = found if chosen is None else _only(found, chosen)
            contents, builders = Contents(self._project.blobs), self._builders(wanted)
            proposed = []
            for each in wanted:
                note = _note(each) | {"accept_id": accept_id}
                missing = partial(self._missing, builders.get(each.summary.agent_id), note)
                proposed.append(Proposed(note, partial(contents.changes, each.files), missing))
            return await self._decided(writer, "accept", proposed, (), progress)

    async def reject(self, fragment: str | None = None, files: Sequence[str] = ()) -> list[Rejected]:
        """The agents' changes are turned down: recorded in their run, and no longer open. No file changes."""
        async with self._project.changes.alone() as writer:
            events = [WorkspaceRejectedEvent(**_note(each)) for each in self._chosen(fragment, files)]
            for run_id in dict.fromkeys(event.run_id for event in events):
                await writer.append(f"runs/{run_id}", [event for event in events if event.run_id == run_id])
        return [Rejected(event.agent_id, event.node_id, event.paths) for event in events]

    async def undo(self, fragment: str | None = None, *, progress: Progress = silent) -> list[Accepted]:
        """The latest accept, or the latest of one agent, is taken back; its changes are open again.

        What was changed since is merged, or refused as a conflict that changes nothing.
        """
        async with self._project.changes.alone() as writer:
            agent_id = self._project.library.find(fragment).stem if fragment else None
            events = self._decisions().latest(agent_id)
            contents = Contents(self._project.blobs)
            proposed = [
                Proposed(
                    {name: getattr(event, name) for name in (*_IDS, "accept_id", "paths")},
                    partial(contents.changes, [_reversed(file) for file in event.files]),
                )
                for event in events
            ]
            made = sorted({folder for event in events for folder in event.made})
            return await self._decided(writer, "undo", proposed, made, progress)

    async def restore(self, fragment: str, *, turn: int | None = None) -> dict[str, bytes]:
        """The files that the agent had changed by the end of `turn` (None: its last), as it had left them."""
        last: dict[str, FileChange] = {}
        for event in self._project.library.events(fragment):
            if isinstance(event, ToolResultEvent) and (turn is None or event.turn <= turn):
                last |= {change.path: change for change in event.files}
        return {
            path: await self._project.blobs.get(change.after)
            for path, change in last.items()
            if change.after is not None
        }

    async def _decided(
        self, writer: FileTrace, kind: str, proposed: Sequence[Proposed], drop: Sequence[str], progress: Progress
    ) -> list[Accepted]:
        outcomes = await self._project.changes.apply(writer, kind, proposed, drop, progress)
        is_refused = any(outcome.refused is not None for outcome in outcomes)
        standing = self._decisions().accepts if is_refused else []
        authors = Authors(standing, Contents(self._project.blobs).change)
        return [await _told(kind, outcome, authors) for outcome in outcomes]

    def _builders(self, found: Sequence[Open]) -> dict[str, AgentScheduledEvent]:
        """The agents among these that worked on what others' changes come to together."""
        runs = {each.summary.run_id for each in found}
        paths = [self._project.state_dir / "runs" / f"{run_id}.jsonl" for run_id in sorted(runs)]
        events = (event for path in paths if path.exists() for event in pick_events(path, ("agent_scheduled",)))
        return {e.agent_id: e for e in events if isinstance(e, AgentScheduledEvent) and e.after}

    def _missing(self, builder: AgentScheduledEvent | None, note: Mapping[str, Any], together: Collection[str]) -> str:
        """Why an agent that worked on others' changes cannot be accepted without them; empty if it can.

        `together` are the agents that are accepted with it.
        """
        if builder is None:
            return ""
        made = self._decisions()
        over = {change.path for change in builder.over}.intersection(note["paths"])
        others = [agent for agent in builder.after if agent not in together]
        missing = [agent for agent in others if not all(made.is_accepted(agent, path) for path in over)]
        names = ", ".join(map(short_id, missing))
        return f"It builds on changes of other agents that are not accepted: {names}" if missing else ""

    def _chosen(self, fragment: str | None, files: Sequence[str], progress: Progress = silent) -> list[Open]:
        found = self._open(fragment, progress)
        return self._of_files(found, files) if files else found

    def _of_files(self, found: Sequence[Open], files: Sequence[str]) -> list[Open]:
        known = {change.path for each in found for change in each.files}
        wanted = {self._project_path(file, known) for file in files}
        if unknown := sorted(wanted - known):
            names = ", ".join(f"`{path}`" for path in sorted(known)) or "none"
            raise WorkspaceError(f"Nothing is open for `{unknown[0]}`: expected one of the files with changes: {names}")
        return _only(found, {each.summary.agent_id: wanted for each in found})

    def _project_path(self, file: str, known: Collection[str]) -> str:
        """The path as changes spell it, given as they do or from the current directory."""
        if file in known:
            return file
        here = Path(file).absolute()
        return here.relative_to(self._project.root).as_posix() if here.is_relative_to(self._project.root) else file

    def _open(self, fragment: str | None, progress: Progress) -> list[Open]:
        made = self._decisions()
        if fragment is not None and not self._project.library.is_run(fragment):
            return list(_with_open([self._project.library.find(fragment)], made, progress, named=True))
        runs = self._project.library.runs() if fragment is None else [self._project.library.find(fragment)]
        if not runs:
            raise TraceNotFound(f"No run in {self._project.state_dir}", hint="Run `remora analyze PATH -o lint` first")
        *earlier, latest = runs
        if found := list(_with_open(self._streams(latest), made, progress, named=False)):
            return found
        changing = self._changing() if earlier else {}
        for run in reversed(earlier):
            names = changing.get(run.stem, set()) | changing.get("", set())
            streams = [path for path in self._streams(run) if path.stem in names] if names else []
            if found := list(_with_open(streams, made, progress, named=False)):
                return found
        return []

    def _decisions(self) -> Decisions:
        return decisions(self._project.library.picked_events(DECIDING))

    def _changing(self) -> dict[str, set[str]]:
        """By run, the agents that changed a file or whose stream must be read to know: the index spares the others."""
        found: dict[str, set[str]] = {}
        library = self._project.library
        for info in library.agents():
            if info.changes or info.problem:
                found.setdefault(info.run_id, set()).add(Path(info.stream_id).name)
        self._project.changes.note(*library.notices)
        return found

    def _streams(self, run: Path) -> list[Path]:
        """The streams of the agents that the run names. Raises `TraceError` for a name that could lead elsewhere."""
        names = [f"traces/{event.agent_id}" for event in pick_events(run, ("agent_scheduled",))]
        for name in names:
            check_stream_id(name)
        return [self._project.state_dir / f"{name}.jsonl" for name in names]

    def _shown(self, summary: StreamSummary, changes: tuple[Change, ...]) -> AgentDiff:
        from remora.workspaces import unified

        return AgentDiff(summary, changes, tuple(self._project.secrets.clean(unified([change])) for change in changes))


@dataclass(frozen=True)
class Open:
    """An agent's changes that nobody has decided on."""

    summary: StreamSummary
    files: tuple[FileChange, ...]


class Contents:
    """Reads the contents of changes. The last few stay in memory: one change's after is often the next one's before."""

    def __init__(self, blobs: FileBlobs) -> None:
        self._blobs = blobs
        self._last: dict[str, bytes] = {}

    async def changes(self, files: Sequence[FileChange]) -> list[Change]:
        """The changes, with what was there before and after."""
        return [await self.change(file) for file in files]

    async def change(self, file: FileChange) -> Change:
        """One of them."""
        from remora.workspaces import Change

        before, after = [None if blob is None else await self._get(blob) for blob in (file.before, file.after)]
        return Change(path=file.path, base=before, after=after, mode=file.mode)

    async def _get(self, digest: str) -> bytes:
        data = self._last.pop(digest, None)
        self._last[digest] = await self._blobs.get(digest) if data is None else data
        if len(self._last) > KEPT:
            self._last.pop(next(iter(self._last)))
        return self._last[digest]


def _reversed(change: FileChange) -> FileChange:
    return change.model_copy(update={"before": change.after, "after": change.before})


def _only(found: Sequence[Open], chosen: Chosen) -> list[Open]:
    """The agents, with no more than the chosen files of each."""
    kept = []
    for each in found:
        paths = chosen.get(each.summary.agent_id, ())
        if files := tuple(change for change in each.files if change.path in paths):
            kept.append(replace(each, files=files))
    return kept


async def _told(kind: str, outcome: Outcome, authors: Authors) -> Accepted:
    agent_id, node_id = outcome.note["agent_id"], outcome.note["node_id"]
    if outcome.refused is None:
        return Accepted(agent_id, node_id, outcome.files)
    conflicts = await authors.conflicts(outcome.clashes)
    conflict, hint = describe(agent_id, outcome.refused, conflicts, kind)
    return Accepted(agent_id, node_id, conflict=conflict, conflicts=conflicts, hint=hint)


def _with_open(paths: Sequence[Path], made: Decisions, progress: Progress, *, named: bool) -> Iterator[Open]:
    """The agents that have something open. One that failed or was cut off is taken only by name."""
    for at, path in enumerate(paths):
        progress("read", at, len(paths))
        if not path.exists() or (path.stem in made.not_taken and not named):
            continue
        summary = summarize(read_events(path))
        files = made.open(path.stem, summary.files)
        if files and (named or summary.outcome in _ENDED_WELL):
            yield Open(summary, files)


def _note(each: Open) -> dict[str, Any]:
    """All that the record of a decision needs beside the files."""
    ids = {name: getattr(each.summary, name) for name in _IDS}
    return ids | {"paths": [change.path for change in each.files]}
