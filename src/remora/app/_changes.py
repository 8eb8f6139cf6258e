"""Changing the project's files, recorded: one at a time, and never half, whoever is killed."""

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
from remora.trace import FileBlobs, FileTrace, read_events

if TYPE_CHECKING:
    from remora.workspaces import Change, Clash, Part, Settled

WAIT_S = 30.0
LOOK_AGAIN_S = 0.02
JOURNAL = "accept.json"
BY_HAND = "tool run"
"""The kind of a change that belongs to no run, and that no stream tells of."""
CUT_OFF = (
    "A change of the project was cut off, or is under way: files may be half changed. "
    "The next accept, reject, undo or analyze finishes it or takes it back"
)
AT_ONCE = 64
"""Blobs on their way to the disk: those that wait for a sync at the same moment share it."""

Progress = Callable[[str, int, int], None]
"""What is being done, how many of it are done, and of how many."""


def silent(_what: str, _done: int, _total: int) -> None:
    """For who does not want to know."""


@dataclass(frozen=True)
class Proposed:
    """One agent's changes, still to be made."""

    note: Mapping[str, Any]
    """What its record needs beside the files."""
    load: Callable[[], Awaitable[Sequence[Change]]]
    """Read when it is its turn, so that not all are in memory at once."""
    missing: Callable[[Collection[str]], str] = lambda _: ""
    """Given the agents before it that are in, why it cannot be without others; empty if it can."""


@dataclass(frozen=True)
class Outcome:
    """What became of one agent's changes."""

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
    """Writes changes of agents into the project's files and into their run's stream."""

    def __init__(self, project: Project) -> None:
        self._project = project

    @cached_property
    def notices(self) -> list[str]:
        """What became of changes that were cut off."""
        return []

    def note(self, *notices: str) -> None:
        """Add notices that are not there yet."""
        self.notices.extend(notice for notice in notices if notice not in self.notices)

    @property
    def is_cut_off(self) -> bool:
        """Whether a change of the project was begun and not ended: by a kill, or by a process still at it."""
        return (self._project.journal_place / JOURNAL).exists()

    def settle(self) -> None:
        """The project's files are whole, whatever was killed; its record follows with the next review.

        Where another process is at it, that one is left alone.
        """
        if not self.is_cut_off:
            return
        from remora.workspaces import locked, settle

        with locked(self._project.journal_dir) as ours:
            if ours:
                settle(self._project.root, self._project.journal_dir)

    async def settled(self) -> None:
        """As `settle`, and what had been done is recorded."""
        if self.is_cut_off:
            async with self.alone():
                pass

    async def apply(
        self,
        writer: FileTrace,
        kind: str,
        proposed: Sequence[Proposed],
        drop: Sequence[str] = (),
        progress: Progress = silent,
    ) -> list[Outcome]:
        """The changes are in the project and in their runs' streams; who collides is left out of both."""
        from remora.workspaces import forget, take

        # Ours before anything is written: what could not be recorded must not happen.
        for run_id in dict.fromkeys(each.note["run_id"] for each in proposed):
            await writer.reopen(f"runs/{run_id}")
        outcomes, changes = await self._planned(kind, proposed, progress)
        note = {"kind": kind, "agents": [each.record(kind) for each in outcomes if each.refused is None]}
        try:
            await asyncio.to_thread(
                take, self._project.root, self._project.journal_dir, changes, note=note, drop=drop, planned=True
            )
        except WorkspaceError as refused:
            return await self._apply_less(writer, kind, proposed, drop, refused)
        await self._record(writer, note)
        forget(self._project.journal_dir)
        return outcomes

    async def _apply_less(
        self, writer: FileTrace, kind: str, proposed: Sequence[Proposed], drop: Sequence[str], refused: WorkspaceError
    ) -> list[Outcome]:
        """All at once was refused, as by someone who saved a file meanwhile: so half of it, down to a single agent."""
        if len(proposed) == 1:
            return [Outcome(proposed[0].note, refused=refused)]
        half = len(proposed) // 2
        parts = (proposed[:half], proposed[half:])
        return [outcome for part in parts for outcome in await self.apply(writer, kind, part, drop)]

    async def _planned(
        self, kind: str, proposed: Sequence[Proposed], progress: Progress
    ) -> tuple[list[Outcome], list[Change]]:
        """What becomes of each, and all changes together, one a file. The blobs of each are on the disk."""
        from remora.workspaces import YOU, Batch

        batch, outcomes, together = Batch(self._project.root), list[Outcome](), set[str]()
        async with _Storing(self._project.blobs) as storing:
            for at, each in enumerate(proposed):
                progress(kind, at, len(proposed))
                owner = each.note["agent_id"] if kind == "accept" else YOU
                try:
                    if missing := each.missing(together):
                        raise WorkspaceError(missing)
                    part = await asyncio.to_thread(batch.add, await each.load(), owner)
                except WorkspaceError as refused:
                    outcomes.append(Outcome(each.note, refused=refused, clashes=batch.clashes))
                    continue
                together.add(owner)
                outcomes.append(Outcome(each.note, await storing.files(part), part.made))
        progress(kind, len(proposed), len(proposed))
        return outcomes, batch.changes()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[FileTrace]:
        """No one else changes the project, and no change is half done."""
        from remora.workspaces import locked

        ends = self._project.clock.monotonic() + WAIT_S
        while True:
            with locked(self._project.journal_dir) as ours:
                if ours:
                    async with self._project.writer() as writer:
                        await self._settle(writer)
                        yield writer
                    return
            if self._project.clock.monotonic() > ends:
                raise WorkspaceError(f"Another process has been changing `{self._project.root}` for {WAIT_S:.0f} s")
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _settle(self, writer: FileTrace) -> None:
        from remora.workspaces import forget, settle

        found = settle(self._project.root, self._project.journal_dir)
        if found is None:
            return
        if found.taken is not None and found.note["kind"] != BY_HAND:
            await self._record(writer, self._unrecorded(found.note))
        forget(self._project.journal_dir)
        self.note(_settled_notice(found))

    def _unrecorded(self, note: Mapping[str, Any]) -> Mapping[str, Any]:
        """The note without the agents that their runs' streams tell of."""
        done = set()
        for run_id in {agent["run_id"] for agent in note["agents"]}:
            events = read_events(self._project.state_dir / "runs" / f"{run_id}.jsonl", torn_ok=True)
            found = (event for event in events if isinstance(event, _event_type(note)))
            done |= {(event.accept_id, event.agent_id) for event in found}
        left = [agent for agent in note["agents"] if (agent["accept_id"], agent["agent_id"]) not in done]
        return {**note, "agents": left}

    async def _record(self, writer: FileTrace, note: Mapping[str, Any]) -> None:
        """Each agent's part is in its run's stream, with one sync a stream."""
        events: dict[str, list[WorkspaceAcceptedEvent | AcceptUndoneEvent]] = {}
        for agent in note["agents"]:
            events.setdefault(f"runs/{agent['run_id']}", []).append(_event_type(note)(**agent))
        for stream_id, drafts in events.items():
            await writer.append(stream_id, drafts)


class _Storing:
    """Puts contents into the blob store while the next changes are planned. At the end of the block all are durable."""

    def __init__(self, blobs: FileBlobs) -> None:
        self._blobs = blobs
        self._under_way: set[asyncio.Task[str]] = set()
        self._digests: dict[str, tuple[bytes, str]] = {}
        """By path, the content that was put last: one change's after is the next one's before."""

    async def __aenter__(self) -> _Storing:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*self._under_way)

    async def files(self, part: Part) -> tuple[FileChange, ...]:
        """What was written, merged content included: what an undo will need."""
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
        if len(self._under_way) >= AT_ONCE:
            done, self._under_way = await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        self._under_way.add(asyncio.create_task(self._blobs.put(data)))
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
