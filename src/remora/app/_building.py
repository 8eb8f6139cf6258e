"""Starts agents with the changes that earlier agents of the run made to their files, so that they do not conflict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from remora.app._decisions import NOT_TAKEN
from remora.app._project import Project
from remora.events import FileChange
from remora.orchestrator import FIRST
from remora.ports import AgentResult, Job


@dataclass(frozen=True)
class _Merged:
    """One file with the changes of some agents."""

    base: bytes
    content: bytes
    results: tuple[AgentResult, ...]


class Building:
    """Puts jobs on top of the changes that earlier agents made to their files."""

    def __init__(self, project: Project, has_begun: Callable[[str], bool]) -> None:
        """`has_begun` tells whether an agent has a stream, so that its start cannot change."""
        self._project = project
        self._has_begun = has_begun
        self._discovery = project.discovery()

    async def jobs(self, jobs: Sequence[Job], done: Sequence[AgentResult]) -> list[Job]:
        """The jobs. Those whose file was changed start with the changes, and with their node as it is then."""
        merged: dict[str, _Merged | None] = {}
        clean = {
            (result.operation, result.node_id): result.agent_id
            for result in done
            if result.stage == FIRST and result.outcome == "success" and result.check.get("after") == 0
        }
        built = []
        for job in jobs:
            path = job.node.file_path.as_posix()
            if path not in merged:
                merged[path] = await self._merge(path, done)
            found = merged[path]
            if job.over or self._has_begun(job.agent_id):
                built.append(job)
                continue
            job = replace(job, clean_by=clean.get((job.operation, path), ""))
            built.append(job if found is None else await self._built(job, path, found))
        return built

    async def _merge(self, path: str, done: Sequence[AgentResult]) -> _Merged | None:
        """The file after all changes that `accept` would take, in the order in which they were planned."""
        from remora.workspaces import merge

        found: _Merged | None = None
        for result in sorted(done, key=lambda each: each.agent_id):
            change = next((change for change in result.files if change.path == path), None)
            usable = result.outcome in ("success", "partial") and result.verdict not in NOT_TAKEN
            if change is None or not usable or change.before is None or change.after is None:
                continue
            before, after = await self._project.blobs.get(change.before), await self._project.blobs.get(change.after)
            content = after if found is None else merge(before, found.content, after)
            if content is None:
                continue
            base, earlier = (before, ()) if found is None else (found.base, found.results)
            found = _Merged(base, content, (*earlier, result))
        return found if found and found.content != found.base else None

    async def _built(self, job: Job, path: str, merged: _Merged) -> Job:
        """The job on the merged file; unchanged if its node is not in there."""
        node = self._discovery.again(job.node, merged.content)
        if node is None:
            return job
        blobs = self._project.blobs
        change = FileChange(path=path, before=await blobs.put(merged.base), after=await blobs.put(merged.content))
        # Another operation's changes are where it starts, not what it needs: it can be accepted without them.
        mine = tuple(result.agent_id for result in merged.results if result.operation == job.operation)
        return replace(job, node=node, over=(change,), after=mine)
