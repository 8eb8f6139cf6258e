"""Runs agents as tasks of this process, with bounded concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from remora.engines._failure import failed_result
from remora.ports import AgentResult, Job


class LocalEngine:
    """Runs jobs on this event loop."""

    def __init__(
        self, execute: Callable[[Job], Awaitable[AgentResult]], *, at_once: int, abandon: Callable[[], None]
    ) -> None:
        """`abandon` makes cancelled agents leave their streams unsealed."""
        self._execute = execute
        self._at_once = at_once
        self.abandon = abandon

    async def run(self, jobs: Sequence[Job]) -> AsyncGenerator[AgentResult]:
        """Yield the result of every job as it ends. Stopping early cancels the rest and waits for them to seal."""
        room = asyncio.Semaphore(self._at_once)
        tasks = [asyncio.create_task(self._one(job, room)) for job in jobs]
        try:
            for done in asyncio.as_completed(tasks):
                yield await done
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, job: Job, room: asyncio.Semaphore) -> AgentResult:
        async with room:
            try:
                return await self._execute(job)
            except Exception as error:  # noqa: BLE001 - one agent's defect must not stop the others; the result says so
                return failed_result(job, error)
