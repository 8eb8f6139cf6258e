"""What the changes of a run's agents come to together, and the agents that this still needs.

Each agent works on a copy of its own and judges its own lines. Taken together, their changes can leave what none of
them saw: an import that became unused when the last function stopped using it.
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
"""How many things the check of a job's agent finds wrong, in a workspace as the job's begins."""


class Merging:
    """Looks at every file that agents changed, as accepting all of them would leave it."""

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
        """One agent for each file where the whole has more wrong in it than the agents' own results say."""
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
        """An agent for the whole file, if the whole needs one."""
        base, merged, taken = await self._merged(meeting)
        if base is None or merged is None or base == merged:
            return None
        before, after = await self._agent(meeting, base, base, ()), await self._agent(meeting, base, merged, taken)
        if before is None or after is None:
            return None
        expected = replace(meeting, results=taken).fixed
        was, left = await self._count(before), await self._count(after)
        self._drop(before.agent_id)
        if was is not None and left is not None and left > max(0, was - expected):
            return after
        self._drop(after.agent_id)
        return None

    async def _merged(self, meeting: Meeting) -> tuple[bytes | None, bytes | None, tuple[AgentResult, ...]]:
        """The file before and after all changes, in the order of accepting; one that collides is left out there too."""
        from remora.workspaces import merge

        base: bytes | None = None
        merged: bytes | None = None
        taken: list[AgentResult] = []
        for result in meeting.results:
            change = next(change for change in result.files if change.path == meeting.path)
            if change.before is None or change.after is None:
                return None, None, ()  # made or removed: there is no whole to look at
            before, after = await self._blobs.get(change.before), await self._blobs.get(change.after)
            base = before if base is None else base
            both = after if merged is None else merge(before, merged, after)
            if both is not None:
                merged, taken = both, [*taken, result]
        return base, merged, tuple(taken)

    async def _agent(self, meeting: Meeting, base: bytes, content: bytes, taken: Sequence[AgentResult]) -> Job | None:
        """An agent that owns every line of the file as it is in `content`; None where there is no code."""
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
