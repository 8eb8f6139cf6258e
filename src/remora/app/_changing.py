"""Changing the project's files, recorded: one at a time, and never half, whoever is killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from remora.app._project import Project
from remora.errors import WorkspaceError
from remora.events import AcceptUndoneEvent, FileChange, WorkspaceAcceptedEvent
from remora.trace import FileTrace, read_events

if TYPE_CHECKING:
    from remora.workspaces import Change, Settled, Taken

WAIT_S = 30.0
LOOK_AGAIN_S = 0.02
JOURNAL = "accept.json"
BY_HAND = "tool run"
"""The kind of a change that belongs to no run, and that no stream tells of."""
CUT_OFF = (
    "A change of the project was cut off, or is under way: files may be half changed. "
    "The next accept, reject, undo or analyze finishes it or takes it back"
)


class Changing(Project):
    """Writes changes into the project and into its run's stream."""

    @cached_property
    def notices(self) -> list[str]:
        """What became of changes that were cut off."""
        return []

    @property
    def is_cut_off(self) -> bool:
        """Whether a change of the project was begun and not ended: by a kill, or by a process still at it."""
        return (self._journal_dir / JOURNAL).exists()

    def settle(self) -> None:
        """The project's files are whole, whatever was killed; its record follows with the next review.

        Where another process is at it, that one is left alone.
        """
        if not self.is_cut_off:
            return
        from remora.workspaces import locked, settle

        with locked(self.journal_dir) as ours:
            if ours:
                settle(self.root, self.journal_dir)

    async def settled(self) -> None:
        """As `settle`, and what had been done is recorded."""
        if self.is_cut_off:
            async with self._alone():
                pass

    async def _apply(
        self, writer: FileTrace, note: Mapping[str, Any], changes: Sequence[Change], drop: Sequence[str] = ()
    ) -> tuple[FileChange, ...]:
        """The changes are in the project and in the run's stream. Raises `WorkspaceError`, then in neither."""
        from remora.workspaces import forget, take

        # Ours before anything is written: what could not be recorded must not happen.
        await writer.reopen(f"runs/{note['run_id']}")
        done = await asyncio.to_thread(take, self.root, self.journal_dir, changes, note=note, drop=drop)
        files = await self._record(writer, note, done)
        forget(self.journal_dir)
        return files

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[FileTrace]:
        """No one else changes the project, and no change is half done."""
        from remora.workspaces import locked

        ends = self.clock.monotonic() + WAIT_S
        while True:
            with locked(self.journal_dir) as ours:
                if ours:
                    async with self._writer() as writer:
                        await self._settle(writer)
                        yield writer
                    return
            if self.clock.monotonic() > ends:
                raise WorkspaceError(f"Another process has been changing `{self.root}` for {WAIT_S:.0f} s")
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _settle(self, writer: FileTrace) -> None:
        from remora.workspaces import forget, settle

        found = settle(self.root, self.journal_dir)
        if found is None:
            return
        if found.taken is not None and found.note["kind"] != BY_HAND and not self._is_recorded(found.note):
            await self._record(writer, found.note, found.taken)
        forget(self.journal_dir)
        self.notices.append(_settled_notice(found))

    def _is_recorded(self, note: Mapping[str, Any]) -> bool:
        kind = _event_type(note)
        wanted = (note["accept_id"], note["agent_id"])
        stream = self.state_dir / "runs" / f"{note['run_id']}.jsonl"
        found = (event for event in read_events(stream, torn_ok=True) if isinstance(event, kind))
        return any((event.accept_id, event.agent_id) == wanted for event in found)

    async def _record(self, writer: FileTrace, note: Mapping[str, Any], done: Taken) -> tuple[FileChange, ...]:
        files = tuple([await self._written(change) for change in done.changes])
        fields = {name: value for name, value in note.items() if name != "kind"}
        if note["kind"] == "accept":
            fields["made"] = done.made
        await writer.append(f"runs/{note['run_id']}", [_event_type(note)(files=files, **fields)])
        return files

    async def _written(self, change: Change) -> FileChange:
        """What was written, merged content included: what an undo will need."""
        return FileChange(
            path=change.path,
            mode=change.mode,
            before=None if change.base is None else await self.blobs.put(change.base),
            after=None if change.after is None else await self.blobs.put(change.after),
        )


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
