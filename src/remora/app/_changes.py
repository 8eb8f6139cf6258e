"""Writes changes into the project's files and records them: under a lock, and atomically even if killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from remora.app._project import Project
from remora.errors import WorkspaceError
from remora.events import AcceptUndoneEvent, FileChange, WorkspaceAcceptedEvent, digest
from remora.trace import StoredBlobs, StreamWriter, read_events

if TYPE_CHECKING:
    from remora.workspaces import Change, Clash, Part, Settled

WAIT_S = 30.0
RETRY_S = 0.02
JOURNAL = "accept.json"
BY_HAND = "tool run"
"""The kind of a change that belongs to no run and is in no stream."""
CUT_OFF = (
    "A change of the project was cut off, or is under way: files may be half changed. "
    "The next accept, reject, undo or analyze finishes it or takes it back"
)
MAX_PENDING = 64
"""Blobs written at the same time. Concurrent writes share one sync."""

Progress = Callable[[str, int, int], None]
"""Called with the step's name, the number done and the total."""


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Proposed:
    """One agent's changes that are not written yet."""

    note: Mapping[str, Any]
    """The fields of its event, without the files."""
    load: Callable[[], Awaitable[Sequence[Change]]]
    """Reads the contents. Called for one agent at a time to limit memory."""
    missing: Callable[[Collection[str]], str] = lambda _: ""
    """Given the agents accepted before it, returns the reason why it needs others too; empty if it needs none."""


@dataclass(frozen=True)
class Outcome:
    """The result of writing one agent's changes."""

    note: Mapping[str, Any]
    files: tuple[FileChange, ...] = ()
    made: tuple[str, ...] = ()
    """Folders that did not exist before."""
    refused: WorkspaceError | None = None
    clashes: tuple[Clash, ...] = ()

    def record(self, kind: str) -> dict[str, Any]:
        """The fields of its event."""
        fields = {**self.note, "files": [file.model_dump() for file in self.files]}
        return fields | {"made": self.made} if kind == "accept" else fields


class ProjectChanges:
    """Writes agents' changes into the project's files and records them in the run's stream."""

    def __init__(self, project: Project) -> None:
        self._project = project

    @cached_property
    def notices(self) -> list[str]:
        """Messages about changes that were interrupted."""
        return []

    def note(self, *notices: str) -> None:
        """Add notices that are not there yet."""
        self.notices.extend(notice for notice in notices if notice not in self.notices)

    @property
    def is_cut_off(self) -> bool:
        """Whether a change of the project is unfinished: its process was killed, or is still running."""
        return (self._project.journal_place / JOURNAL).exists()

    def settle(self) -> None:
        """Finish or revert an interrupted change of the project's files. The next review command records it.

        Does nothing while another process holds the lock.
        """
        if not self.is_cut_off:
            return
        from remora.workspaces import locked, settle

        with locked(self._project.journal_dir) as acquired:
            if acquired:
                settle(self._project.root, self._project.journal_dir)

    async def settle_and_record(self) -> None:
        """Like `settle`, and record the change if it was finished."""
        if self.is_cut_off:
            async with self.locked_writer():
                pass

    async def apply(
        self,
        writer: StreamWriter,
        kind: str,
        proposed: Sequence[Proposed],
        drop: Sequence[str] = (),
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Write the changes into the project and record them in their runs' streams, except those with conflicts."""
        from remora.workspaces import forget, take

        # Lock the streams before writing any file: no change may happen that cannot be recorded.
        for run_id in dict.fromkeys(each.note["run_id"] for each in proposed):
            await writer.reopen(f"runs/{run_id}")
        outcomes, changes = await self._plan(kind, proposed, progress)
        note = {"kind": kind, "agents": [each.record(kind) for each in outcomes if each.refused is None]}
        try:
            await asyncio.to_thread(
                take, self._project.root, self._project.journal_dir, changes, note=note, drop=drop, planned=True
            )
        except WorkspaceError as refused:
            return await self._apply_in_halves(writer, kind, proposed, drop, refused)
        await self._record(writer, note)
        forget(self._project.journal_dir)
        return outcomes

    async def _apply_in_halves(
        self,
        writer: StreamWriter,
        kind: str,
        proposed: Sequence[Proposed],
        drop: Sequence[str],
        refused: WorkspaceError,
    ) -> list[Outcome]:
        """Retry in halves, down to single agents: a file may have been saved while the batch was written."""
        if len(proposed) == 1:
            return [Outcome(proposed[0].note, refused=refused)]
        half = len(proposed) // 2
        parts = (proposed[:half], proposed[half:])
        return [outcome for part in parts for outcome in await self.apply(writer, kind, part, drop)]

    async def _plan(
        self, kind: str, proposed: Sequence[Proposed], progress: Progress
    ) -> tuple[list[Outcome], list[Change]]:
        """Merge the changes into one for each file, and store their blobs. Also returns the outcome of each agent."""
        from remora.workspaces import YOU, Batch

        batch, outcomes, accepted = Batch(self._project.root), list[Outcome](), set[str]()
        async with _BlobWriter(self._project.blobs) as blob_writer:
            for at, each in enumerate(proposed):
                progress(kind, at, len(proposed))
                owner = each.note["agent_id"] if kind == "accept" else YOU
                try:
                    if missing := each.missing(accepted):
                        raise WorkspaceError(missing)
                    part = await asyncio.to_thread(batch.add, await each.load(), owner)
                except WorkspaceError as refused:
                    outcomes.append(Outcome(each.note, refused=refused, clashes=batch.clashes))
                    continue
                accepted.add(owner)
                outcomes.append(Outcome(each.note, await blob_writer.files(part), part.made))
        progress(kind, len(proposed), len(proposed))
        return outcomes, batch.changes()

    @asynccontextmanager
    async def locked_writer(self) -> AsyncIterator[StreamWriter]:
        """Hold the project's lock, and settle interrupted changes first. Raises `WorkspaceError` after `WAIT_S` s."""
        from remora.workspaces import locked

        deadline = self._project.clock.monotonic() + WAIT_S
        while True:
            with locked(self._project.journal_dir) as acquired:
                if acquired:
                    async with self._project.writer() as writer:
                        await self._settle_locked(writer)
                        yield writer
                    return
            if self._project.clock.monotonic() > deadline:
                raise WorkspaceError(f"Another process has been changing `{self._project.root}` for {WAIT_S:.0f} s")
            await asyncio.sleep(RETRY_S)

    async def _settle_locked(self, writer: StreamWriter) -> None:
        from remora.workspaces import forget, settle

        found = settle(self._project.root, self._project.journal_dir)
        if found is None:
            return
        if found.taken is not None and found.note["kind"] != BY_HAND:
            await self._record(writer, self._unrecorded(found.note))
        forget(self._project.journal_dir)
        self.note(_settled_notice(found))

    def _unrecorded(self, note: Mapping[str, Any]) -> Mapping[str, Any]:
        """The note without the agents that are already recorded in their runs' streams."""
        recorded = set()
        for run_id in {agent["run_id"] for agent in note["agents"]}:
            events = read_events(self._project.library.file(f"runs/{run_id}"), torn_ok=True)
            found = (event for event in events if isinstance(event, _event_type(note)))
            recorded |= {(event.accept_id, event.agent_id) for event in found}
        left = [agent for agent in note["agents"] if (agent["accept_id"], agent["agent_id"]) not in recorded]
        return {**note, "agents": left}

    async def _record(self, writer: StreamWriter, note: Mapping[str, Any]) -> None:
        """Record each agent's part in its run's stream, with one sync for each stream."""
        events: dict[str, list[WorkspaceAcceptedEvent | AcceptUndoneEvent]] = {}
        for agent in note["agents"]:
            events.setdefault(f"runs/{agent['run_id']}", []).append(_event_type(note)(**agent))
        for stream_id, drafts in events.items():
            await writer.append(stream_id, drafts)


class _BlobWriter:
    """Writes blobs in the background while the next changes are merged. All are durable at the end of the block."""

    def __init__(self, blobs: StoredBlobs) -> None:
        self._blobs = blobs
        self._pending: set[asyncio.Task[str]] = set()
        self._digests: dict[str, tuple[bytes, str]] = {}
        """The last content and digest by path: the content after one change is often the one before the next."""

    async def __aenter__(self) -> _BlobWriter:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*self._pending)

    async def files(self, part: Part) -> tuple[FileChange, ...]:
        """Store the contents before and after each change, as merged: an undo needs both."""
        return tuple(
            [
                FileChange(
                    path=change.path,
                    mode=change.mode,
                    before=await self._put(change.path, change.base),
                    after=await self._put(change.path, change.after),
                )
                for change in part.changes
            ]
        )

    async def _put(self, path: str, data: bytes | None) -> str | None:
        if data is None:
            return None
        known = self._digests.get(path)
        if known is not None and known[0] == data:
            return known[1]
        if len(self._pending) >= MAX_PENDING:
            done, self._pending = await asyncio.wait(self._pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        self._pending.add(asyncio.create_task(self._blobs.put(data)))
        self._digests[path] = (data, digest(data))
        return self._digests[path][1]


def _event_type(note: Mapping[str, Any]) -> type[WorkspaceAcceptedEvent | AcceptUndoneEvent]:
    return WorkspaceAcceptedEvent if note["kind"] == "accept" else AcceptUndoneEvent


def _settled_notice(found: Settled) -> str:
    kind = found.note["kind"]
    begin = f"{'A' if kind == BY_HAND else 'An'} {kind} that was cut off"
    if found.elsewhere:
        return f"{begin} was left alone: another folder lies at the project's path now"
    notice = f"{begin} has been {'taken back' if found.taken is None else 'finished'}"
    if found.left:
        names = ", ".join(f"`{path}`" for path in found.left)
        notice += f"; changed meanwhile, and therefore left as it is: {names}"
    return notice
