"""Review of agents' changes: diff, accept, reject and undo."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remora.analysis import StreamSummary, summarize
from remora.app._changes import CUT_OFF, Outcome, Progress, Proposed, no_progress
from remora.app._conflicts import Authors, Conflict, describe
from remora.app._decisions import DECIDING, UNSAFE, Decisions, decisions
from remora.app._merged_diff import MergedDiff, merge_diffs
from remora.app._project import Project
from remora.context.text import number
from remora.errors import TraceNotFound, WorkspaceError
from remora.events import (
    AgentScheduledEvent,
    FileChange,
    RunStartEvent,
    ToolResultEvent,
    WorkspaceRejectedEvent,
    next_id,
    short_id,
)
from remora.trace import StoredBlobs, StreamWriter, pick_events, read_events

if TYPE_CHECKING:
    from remora.workspaces import Change


MAX_NAMED = 5
"""Most agents that a notice names."""
MAX_CACHED = 4
"""Contents that stay in memory while changes are read."""
_ENDED_WELL = ("success", "partial")
_IDS = ("run_id", "agent_id", "operation", "node_id")
Chosen = Mapping[str, Collection[str]]
"""Paths by agent."""


@dataclass(frozen=True)
class AgentDiff:
    """An agent's open changes: those that are neither accepted nor rejected."""

    summary: StreamSummary
    changes: tuple[Change, ...]
    patches: tuple[str, ...]
    """A unified diff of each change, with secrets removed."""

    @property
    def text(self) -> str:
        """All diffs in one text."""
        return "".join(self.patches)


@dataclass(frozen=True)
class Accepted:
    """The result of accepting or undoing one agent's changes."""

    agent_id: str
    node_id: str
    files: tuple[FileChange, ...] = ()
    conflict: str = ""
    """Why nothing was written; empty if the changes were."""
    conflicts: tuple[Conflict, ...] = ()
    """Where the conflicts are, and who changed those lines before."""
    hint: str = ""


@dataclass(frozen=True)
class Rejected:
    """One agent's rejected changes."""

    agent_id: str
    node_id: str
    paths: tuple[str, ...]


class Review:
    """Shows, accepts, rejects and undoes the changes of agents."""

    def __init__(self, project: Project) -> None:
        self._project = project

    async def diff(
        self, fragment: str | None = None, files: Sequence[str] = (), *, progress: Progress = no_progress
    ) -> list[AgentDiff]:
        """The open changes of one agent, of a run, or of the latest run that has some."""
        self._note_state()
        contents, found = Contents(self._project.blobs), []
        chosen = self._select(fragment, files, progress)
        for at, each in enumerate(chosen):
            progress("diff", at, len(chosen))
            found.append(self._to_diff(each.summary, tuple([await contents.change(file) for file in each.files])))
        return found

    def _note_state(self) -> None:
        """Note what a reader of open changes should know about the state folder."""
        self._project.changes.note(*self._project.library.notices)
        if self._project.changes.is_cut_off:
            self._project.changes.note(CUT_OFF)

    async def merged_diff(
        self, fragment: str | None = None, files: Sequence[str] = (), *, progress: Progress = no_progress
    ) -> MergedDiff:
        """The open changes as one diff of the project's files as they are now: what `accept` would write."""
        self._note_state()
        chosen = self._proposed(self._without_unsafe(self._select(fragment, files, progress), fragment))
        return await merge_diffs(
            self._project.root, chosen, self._project.secrets.clean, lambda at: progress("diff", at, len(chosen))
        )

    async def accept(
        self,
        fragment: str | None = None,
        files: Sequence[str] = (),
        *,
        chosen: Chosen | None = None,
        progress: Progress = no_progress,
    ) -> list[Accepted]:
        """Write agents' changes into the project and record them in their runs. Agents with a conflict are skipped."""
        async with self._project.changes.locked_writer() as writer:
            accept_id = next_id(self._project.clock.now(), self._decisions().last_accept)
            found = self._select(fragment, files, progress)
            wanted = self._without_unsafe(found, fragment) if chosen is None else _restrict(found, chosen)
            return await self._apply(writer, "accept", self._proposed(wanted, accept_id), (), progress)

    def _proposed(self, wanted: Sequence[Open], accept_id: str = "") -> list[Proposed]:
        """The changes of these agents, not loaded yet, and what each needs to be accepted."""
        contents, builders = Contents(self._project.blobs), self._builders(wanted)
        proposed = []
        for each in wanted:
            note = _event_fields(each) | {"accept_id": accept_id}
            missing = partial(self._missing, builders.get(each.summary.agent_id), note)
            proposed.append(Proposed(note, partial(contents.changes, each.files), missing))
        return proposed

    async def reject(self, fragment: str | None = None, files: Sequence[str] = ()) -> list[Rejected]:
        """Reject agents' changes: record it in their runs. They are no longer open. No file changes."""
        async with self._project.changes.locked_writer() as writer:
            events = [WorkspaceRejectedEvent(**_event_fields(each)) for each in self._select(fragment, files)]
            for run_id in dict.fromkeys(event.run_id for event in events):
                await writer.append(f"runs/{run_id}", [event for event in events if event.run_id == run_id])
        return [Rejected(event.agent_id, event.node_id, event.paths) for event in events]

    async def undo(self, fragment: str | None = None, *, progress: Progress = no_progress) -> list[Accepted]:
        """Undo the latest accept, or the latest of one agent. Its changes are open again.

        Later edits are merged. If they conflict, the undo is refused and nothing changes.
        """
        async with self._project.changes.locked_writer() as writer:
            agent_id = self._project.library.find(fragment).stem if fragment else None
            events = self._decisions().latest(agent_id)
            contents = Contents(self._project.blobs)
            proposed = [
                Proposed(
                    {name: getattr(event, name) for name in (*_IDS, "accept_id", "paths")},
                    partial(contents.changes, [_reverse(file) for file in event.files]),
                )
                for event in events
            ]
            created = sorted({folder for event in events for folder in event.made})
            return await self._apply(writer, "undo", proposed, created, progress)

    async def restore(self, fragment: str, *, turn: int | None = None) -> dict[str, bytes]:
        """The contents of the files that the agent had changed by the end of `turn`; None is its last turn."""
        last: dict[str, FileChange] = {}
        for event in self._project.library.events(fragment):
            if isinstance(event, ToolResultEvent) and (turn is None or event.turn <= turn):
                last |= {change.path: change for change in event.files}
        return {
            path: await self._project.blobs.get(change.after)
            for path, change in last.items()
            if change.after is not None
        }

    async def _apply(
        self, writer: StreamWriter, kind: str, proposed: Sequence[Proposed], drop: Sequence[str], progress: Progress
    ) -> list[Accepted]:
        outcomes = await self._project.changes.apply(writer, kind, proposed, drop, progress)
        is_refused = any(outcome.refused is not None for outcome in outcomes)
        accepts = self._decisions().accepts if is_refused else []
        authors = Authors(accepts, Contents(self._project.blobs).change)
        return [await _to_accepted(kind, outcome, authors) for outcome in outcomes]

    def _builders(self, found: Sequence[Open]) -> dict[str, AgentScheduledEvent]:
        """The agents among these that worked on the merged changes of others."""
        runs = {each.summary.run_id for each in found}
        paths = self._project.library.files([f"runs/{run_id}" for run_id in sorted(runs)])
        events = (event for path in paths for event in pick_events(path, ("agent_scheduled",)))
        return {e.agent_id: e for e in events if isinstance(e, AgentScheduledEvent) and e.after}

    def _missing(self, builder: AgentScheduledEvent | None, note: Mapping[str, Any], together: Collection[str]) -> str:
        """Why an agent that builds on others' changes cannot be accepted; empty if it can.

        `together` are the agents that are accepted with it.
        """
        if builder is None:
            return ""
        decided = self._decisions()
        over = {change.path for change in builder.over}.intersection(note["paths"])
        others = [agent for agent in builder.after if agent not in together]
        missing = [agent for agent in others if not all(decided.is_accepted(agent, path) for path in over)]
        names = ", ".join(map(short_id, missing))
        return f"It builds on changes of other agents that are not accepted: {names}" if missing else ""

    def _without_unsafe(self, found: Sequence[Open], fragment: str | None) -> list[Open]:
        """Leave out changes that may alter behaviour, unless the user named their agent. A notice names them."""
        if fragment is not None and not self._project.library.is_run(fragment):
            return list(found)
        left_out = [short_id(each.summary.agent_id) for each in found if each.summary.verdict == UNSAFE]
        if left_out:
            names, more = ", ".join(left_out[:MAX_NAMED]), len(left_out) - MAX_NAMED
            names += f" and {more} more" if more > 0 else ""
            self._project.changes.note(
                f"Unsafe changes are not included, because they may alter behaviour: {number(len(left_out), 'agent')}, "
                f"{names}. See them with `remora diff --by-agent`, accept one with `remora accept {left_out[0]}`"
            )
        return [each for each in found if each.summary.verdict != UNSAFE]

    def _select(self, fragment: str | None, files: Sequence[str], progress: Progress = no_progress) -> list[Open]:
        found = self._find_open(fragment, progress)
        return self._select_files(found, files) if files else found

    def _select_files(self, found: Sequence[Open], files: Sequence[str]) -> list[Open]:
        known = {change.path for each in found for change in each.files}
        wanted = {self._project_path(file, known) for file in files}
        if unknown := sorted(wanted - known):
            names = ", ".join(f"`{path}`" for path in sorted(known)) or "none"
            raise WorkspaceError(f"Nothing is open for `{unknown[0]}`: expected one of the files with changes: {names}")
        return _restrict(found, {each.summary.agent_id: wanted for each in found})

    def _project_path(self, file: str, known: Collection[str]) -> str:
        """The path relative to the project. `file` may also be relative to the current directory."""
        if file in known:
            return file
        here = Path(file).absolute()
        return here.relative_to(self._project.root).as_posix() if here.is_relative_to(self._project.root) else file

    def _find_open(self, fragment: str | None, progress: Progress) -> list[Open]:
        decided = self._decisions()
        if fragment is not None and not self._project.library.is_run(fragment):
            return list(_read_open([self._project.library.find(fragment)], decided, progress, named=True))
        runs = self._runs() if fragment is None else [self._project.library.find(fragment)]
        if not runs:
            raise TraceNotFound(f"No run in {self._project.state_dir}", hint="Run `remora analyze PATH -o lint` first")
        *earlier, latest = runs
        if found := list(_read_open(self._streams(latest), decided, progress, named=False)):
            return found
        with_changes = self._agents_with_changes() if earlier else {}
        for run in reversed(earlier):
            names = with_changes.get(run.stem, set()) | with_changes.get("", set())
            streams = [path for path in self._streams(run) if path.stem in names] if names else []
            if found := list(_read_open(streams, decided, progress, named=False)):
                return found
        return []

    def _runs(self) -> list[Path]:
        """All runs but those of forks, whose changes are accepted only if the user names them."""
        return [run for run in self._project.library.runs() if not _is_fork(run)]

    def _decisions(self) -> Decisions:
        return decisions(self._project.library.picked_events(DECIDING))

    def _agents_with_changes(self) -> dict[str, set[str]]:
        """The agents by run that changed a file, or are not indexed. The other streams need not be read."""
        found: dict[str, set[str]] = {}
        library = self._project.library
        for info in library.agents():
            if info.changes or info.problem:
                found.setdefault(info.run_id, set()).add(Path(info.stream_id).name)
        self._project.changes.note(*library.notices)
        return found

    def _streams(self, run: Path) -> list[Path]:
        """The streams of a run's agents. Raises `TraceError` for a name that points outside the store."""
        agents = dict.fromkeys(event.agent_id for event in pick_events(run, ("agent_scheduled",)))
        return self._project.library.files([f"traces/{agent_id}" for agent_id in agents])

    def _to_diff(self, summary: StreamSummary, changes: tuple[Change, ...]) -> AgentDiff:
        from remora.workspaces import unified

        return AgentDiff(summary, changes, tuple(self._project.secrets.clean(unified([change])) for change in changes))


@dataclass(frozen=True)
class Open:
    """An agent with open changes."""

    summary: StreamSummary
    files: tuple[FileChange, ...]


class Contents:
    """Reads the contents of changes, with a small cache: consecutive changes often share a content."""

    def __init__(self, blobs: StoredBlobs) -> None:
        self._blobs = blobs
        self._last: dict[str, bytes] = {}

    async def changes(self, files: Sequence[FileChange]) -> list[Change]:
        """Load changes with their contents before and after."""
        return [await self.change(file) for file in files]

    async def change(self, file: FileChange) -> Change:
        """Load one change."""
        from remora.workspaces import Change

        before, after = [None if blob is None else await self._get(blob) for blob in (file.before, file.after)]
        return Change(path=file.path, base=before, after=after, mode=file.mode)

    async def _get(self, digest: str) -> bytes:
        data = self._last.pop(digest, None)
        self._last[digest] = await self._blobs.get(digest) if data is None else data
        if len(self._last) > MAX_CACHED:
            self._last.pop(next(iter(self._last)))
        return self._last[digest]


def _is_fork(run: Path) -> bool:
    first = next(iter(pick_events(run, ("run_start",))), None)
    return isinstance(first, RunStartEvent) and first.parent is not None


def _reverse(change: FileChange) -> FileChange:
    return change.model_copy(update={"before": change.after, "after": change.before})


def _restrict(found: Sequence[Open], chosen: Chosen) -> list[Open]:
    """The agents, restricted to the chosen files of each."""
    restricted = []
    for each in found:
        paths = chosen.get(each.summary.agent_id, ())
        if files := tuple(change for change in each.files if change.path in paths):
            restricted.append(replace(each, files=files))
    return restricted


async def _to_accepted(kind: str, outcome: Outcome, authors: Authors) -> Accepted:
    agent_id, node_id = outcome.note["agent_id"], outcome.note["node_id"]
    if outcome.refused is None:
        return Accepted(agent_id, node_id, outcome.files)
    conflicts = await authors.conflicts(outcome.clashes)
    conflict, hint = describe(agent_id, outcome.refused, conflicts, kind)
    return Accepted(agent_id, node_id, conflict=conflict, conflicts=conflicts, hint=hint)


def _read_open(paths: Sequence[Path], decided: Decisions, progress: Progress, *, named: bool) -> Iterator[Open]:
    """The agents with open changes. A failed or interrupted agent is included only if `named`."""
    for at, path in enumerate(paths):
        progress("read", at, len(paths))
        if not path.exists() or (path.stem in decided.not_shown and not named):
            continue
        summary = summarize(read_events(path, torn_ok=True))
        files = decided.open(path.stem, summary.files)
        if files and (named or summary.outcome in _ENDED_WELL):
            yield Open(summary, files)


def _event_fields(each: Open) -> dict[str, Any]:
    """The fields of a decision's event, without the files."""
    ids = {name: getattr(each.summary, name) for name in _IDS}
    return ids | {"paths": [change.path for change in each.files]}
