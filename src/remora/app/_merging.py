"""Merges the changes of a run's agents, and plans an agent for each file that has new problems after the merge.

Each agent works on its own copy and checks its own lines. Together, their changes can cause problems that none of them
saw, such as an import that becomes unused when the last function stops using it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from remora.errors import RemoraError
from remora.events import FileChange
from remora.orchestrator import LAST, LastPass, Meeting
from remora.ports import AgentResult, BlobStore, Job

Count = Callable[[Job], Awaitable[int | None]]
"""Returns the number of problems that the check of a job's agent finds in the workspace at its start."""


class Merging:
    """Checks every file that agents changed, as it would be after accepting all of them."""

    def __init__(
        self, run_id: str, blobs: BlobStore, ids: Iterator[str], count: Count, drop: Callable[[str], None]
    ) -> None:
        """`ids` are for new agents; `drop` removes the workspace of one that is not needed."""
        self._run_id = run_id
        self._blobs = blobs
        self._ids = ids
        self._count = count
        self._drop = drop

    async def last_pass(self, found: Sequence[Meeting]) -> LastPass:
        """Plan one agent for each file that has more problems after the merge than the agents' results add up to."""
        jobs: list[Job] = []
        problems: list[str] = []
        for meeting in found:
            try:
                job = await self._job(meeting)
            except RemoraError as error:
                problems.append(f"`{meeting.path}` was not looked at as a whole: {error.message}")
                continue
            if job is not None:
                jobs.append(job)
        return LastPass(tuple(jobs), tuple(problems))

    async def _job(self, meeting: Meeting) -> Job | None:
        """An agent for the whole file, if the merged file has more problems than expected."""
        base, merged, taken = await self._merge(meeting)
        if base is None or merged is None or base == merged:
            return None
        before, after = (
            await self._whole_file_job(meeting, base, base, ()),
            await self._whole_file_job(meeting, base, merged, taken),
        )
        if before is None or after is None:
            return None
        expected = replace(meeting, results=taken).fixed
        was, left = await self._count(before), await self._count(after)
        self._drop(before.agent_id)
        if was is not None and left is not None and left > max(0, was - expected):
            return after
        self._drop(after.agent_id)
        return None

    async def _merge(self, meeting: Meeting) -> tuple[bytes | None, bytes | None, tuple[AgentResult, ...]]:
        """The file before and after all changes, merged in the order of accepting. Conflicting changes are left out."""
        from remora.workspaces import merge

        base: bytes | None = None
        merged: bytes | None = None
        taken: list[AgentResult] = []
        for result in meeting.results:
            change = next(change for change in result.files if change.path == meeting.path)
            if change.before is None or change.after is None:
                return None, None, ()  # created or deleted: there is nothing to merge
            before, after = await self._blobs.get(change.before), await self._blobs.get(change.after)
            base = before if base is None else base
            both = after if merged is None else merge(before, merged, after)
            if both is not None:
                merged, taken = both, [*taken, result]
        return base, merged, tuple(taken)

    async def _whole_file_job(
        self, meeting: Meeting, base: bytes, content: bytes, taken: Sequence[AgentResult]
    ) -> Job | None:
        """An agent that owns every line of the file with `content`. None if the file contains no code."""
        from remora.discovery import whole_file

        node = whole_file(Path(meeting.path), content)
        if node is None:
            return None
        before, after = await self._blobs.put(base), await self._blobs.put(content)
        change = FileChange(path=meeting.path, before=before, after=after)
        return Job(
            run_id=self._run_id,
            agent_id=next(self._ids),
            operation=meeting.operation,
            node=node,
            stage=LAST,
            over=(change,),
            after=tuple(result.agent_id for result in taken),
        )
