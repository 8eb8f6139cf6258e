"""A host for Ray's workers that needs no project: its agents end at once, or take their worker with them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from remora.errors import AgentError
from remora.values import AgentResult, Job


class EchoHost:
    """Says where an agent ran, and whether it was resumed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def execute(self, job: Job, *, resumed: bool) -> AgentResult:
        with (self._folder / "asked").open("a") as asked:
            asked.write(f"{job.agent_id} {resumed}\n")
        if job.operation == "die" and not resumed:
            os._exit(1)
        if job.operation == "fail":
            raise AgentError("the node is gone")
        return AgentResult(job.agent_id, job.node.node_id, job.operation, "success", "submitted", f"resumed={resumed}")


@asynccontextmanager
async def open_echo_host(folder: str, fetch: Callable[[], Awaitable[bytes]]) -> AsyncIterator[EchoHost]:
    (Path(folder) / "sources").write_bytes(await fetch())
    yield EchoHost(Path(folder))
    (Path(folder) / "closed").touch()
