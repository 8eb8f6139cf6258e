"""Runs agents on the nodes of a Ray cluster.

One actor a node holds what its agents share: the model, the connection to the store, the sandbox. Ray never runs an
agent twice: tasks and actors have no retries. An agent whose actor or node was lost is submitted again as *resumed*: it
goes on from its stream, by the same rules as after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from remora.errors import ConfigError, MissingExtra
from remora.ports import AgentResult, Job

LOSSES = 3
"""How often one agent may lose its node before it counts as failed."""
STARTS, START_AGAIN_S = 10, 0.5
"""How often a worker that dies while it starts is started again, and the pause between."""
CANCEL_S = 20.0
"""How long cancelled agents may take to seal their streams."""


class Host(Protocol):
    """What runs agents on one node."""

    async def execute(self, job: Job, *, resumed: bool) -> AgentResult:
        """Run one agent to its end; with `resumed`, from where its stream ends."""
        ...


OpenHost = Callable[[Any, bytes], AbstractAsyncContextManager[Host]]
"""Opens a host from a description and the packed sources. Picklable: an importable function."""


class NodeWorker:
    """The actor of one node."""

    def __init__(self, open_host: OpenHost, described: Any, sources: bytes) -> None:
        self._opening = open_host(described, sources)
        self._host: Host | None = None

    async def start(self) -> str:
        """Open the host; return the node's name."""
        import os
        import socket

        self._host = await self._opening.__aenter__()
        return f"{socket.gethostname()}:{os.getpid()}"

    async def run(self, job: Job, resumed: bool) -> AgentResult:
        """Run one agent."""
        assert self._host is not None  # noqa: S101 (`start` comes first)
        return await self._host.execute(job, resumed=resumed)

    async def stop(self) -> None:
        """Close the host."""
        if self._host is not None:
            self._host = None
            await self._opening.__aexit__(None, None, None)


@dataclass
class _Node:
    """A node with its actor."""

    node_id: str
    actor: Any
    name: str = ""


@dataclass
class _Work:
    """An agent to run, and how often its node was lost."""

    job: Job
    resumed: bool
    losses: int = 0


@dataclass
class Placement:
    """Which agents each worker ran, and which were moved."""

    agents: dict[str, list[str]] = field(default_factory=dict)
    """Agents by worker, in the order of their ends."""
    moved: list[str] = field(default_factory=list)
    """Agents that went on elsewhere after their worker was lost."""


class RayEngine:
    """Runs jobs on the nodes of a cluster, `at_once` on each. Use it as an asynchronous context manager."""

    def __init__(
        self, open_host: OpenHost, described: Any, *, sources: bytes, address: str, at_once: int, resumed: bool = False
    ) -> None:
        """Without an `address`, a cluster is started on this machine. With `resumed`, all jobs go on from streams."""
        self._open_host = open_host
        self._described = described
        self._sources_bytes = sources
        self._sources: Any = None
        self._address = address
        self._at_once = at_once
        self._resumed = resumed
        self._nodes: dict[str, _Node] = {}
        self._ray: Any = None
        self._started = False
        self.placed = Placement()

    async def __aenter__(self) -> RayEngine:
        self._ray = _load_ray()
        await asyncio.to_thread(self._connect)
        try:
            self._sources = self._ray.put(self._sources_bytes)
            await self._fill_nodes()
        except BaseException:
            await asyncio.to_thread(self._disconnect)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self._nodes.values():
            with contextlib.suppress(Exception):  # a lost node cannot be asked to stop
                await asyncio.wait_for(node.actor.stop.remote(), CANCEL_S)
            with contextlib.suppress(Exception):
                self._ray.kill(node.actor)
        await asyncio.to_thread(self._disconnect)

    async def run(self, jobs: Sequence[Job]) -> AsyncIterator[AgentResult]:
        """Yield the result of every job as it ends. Stopping early cancels the rest and waits for them to seal."""
        if not jobs:
            return
        waiting = deque(_Work(job, self._resumed) for job in jobs)
        results: asyncio.Queue[AgentResult] = asyncio.Queue()
        feeding = asyncio.create_task(self._feed(waiting, results))
        try:
            for _ in jobs:
                taking = asyncio.ensure_future(results.get())
                await asyncio.wait({taking, feeding}, return_when=asyncio.FIRST_COMPLETED)
                if not taking.done() and feeding.done():
                    feeding.result()  # raises what went wrong
                yield await taking
        finally:
            feeding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await feeding

    async def _feed(self, waiting: deque[_Work], results: asyncio.Queue[AgentResult]) -> None:
        """Keep every node busy, and bring back work whose node was lost."""
        busy: dict[asyncio.Task[None], _Node] = {}
        lost: list[_Work] = []
        try:
            while waiting or busy:
                await self._assign(waiting, busy, lost, results)
                if busy:
                    await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in busy if task.done()]:
                    busy.pop(task)
                    task.result()
                while lost:
                    waiting.appendleft(lost.pop())
        finally:
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

    async def _assign(
        self,
        waiting: deque[_Work],
        busy: dict[asyncio.Task[None], _Node],
        lost: list[_Work],
        results: asyncio.Queue[AgentResult],
    ) -> None:
        if waiting and not self._nodes:
            await self._fill_nodes()
        for node in list(self._nodes.values()):
            running = sum(each is node for each in busy.values())
            while waiting and running < self._at_once:
                task = asyncio.create_task(self._one(node, waiting.popleft(), lost, results))
                busy[task] = node
                running += 1

    async def _one(self, node: _Node, work: _Work, lost: list[_Work], results: asyncio.Queue[AgentResult]) -> None:
        reference = node.actor.run.remote(work.job, work.resumed)
        try:
            result = await reference
        except asyncio.CancelledError:
            await self._cancel(reference)
            raise
        except self._ray.exceptions.RayActorError as error:
            self._nodes.pop(node.node_id, None)
            again = _Work(work.job, resumed=True, losses=work.losses + 1)
            if again.losses > LOSSES:
                results.put_nowait(_failed(work.job, "node_lost", f"Its node was lost {again.losses} times: {error}"))
                return
            self.placed.moved.append(work.job.agent_id)
            lost.append(again)
            return
        except self._ray.exceptions.RayError as error:
            results.put_nowait(_failed(work.job, "internal_error", str(error).strip().splitlines()[-1]))
            return
        self.placed.agents.setdefault(node.name, []).append(result.agent_id)
        results.put_nowait(result)

    async def _cancel(self, reference: Any) -> None:
        """Cancel the agent, and wait until its stream is sealed."""
        with contextlib.suppress(Exception):
            self._ray.cancel(reference)
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(reference.future())), CANCEL_S)

    async def _fill_nodes(self) -> None:
        """One actor on every node that is alive and has none. Raises `ConfigError` if none can run agents."""
        problem = "no node is alive"
        for _ in range(STARTS):
            made = await self._make_actors()
            lost = False
            for node in made:
                try:
                    node.name = await node.actor.start.remote()
                    self._nodes[node.node_id] = node
                except self._ray.exceptions.RayError as error:
                    problem = _cause(error)
                    lost = lost or isinstance(error, self._ray.exceptions.RayActorError)
            if self._nodes:
                return
            if made and not lost:
                break  # the project cannot be opened there: it would fail again
            await asyncio.sleep(START_AGAIN_S)
        raise ConfigError(f"No node of the Ray cluster can run agents: {problem}")

    async def _make_actors(self) -> list[_Node]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        remote = self._ray.remote(NodeWorker)
        made = []
        for found in await asyncio.to_thread(self._ray.nodes):
            node_id = found["NodeID"]
            if not found["Alive"] or node_id in self._nodes or not found["Resources"].get("CPU"):
                continue
            actor = remote.options(
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=self._at_once + 2,
                num_cpus=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
            ).remote(self._open_host, self._described, self._sources)
            made.append(_Node(node_id, actor))
        return made

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        where = {"address": self._address} if self._address else {"include_dashboard": False}
        try:
            self._ray.init(log_to_driver=False, **where)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConfigError(
                f"The Ray cluster at `{self._address or 'this machine'}` cannot be used: {error}",
                hint="Start one with `ray start --head`, or leave `--address` out",
            ) from error
        self._started = True

    def _disconnect(self) -> None:
        if self._started:
            self._started = False
            self._ray.shutdown()


def _load_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("ray, which runs agents on many machines,", extra="fleet") from error
    return ray


def _cause(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().splitlines()[-1] if str(cause).strip() else type(cause).__name__


def _failed(job: Job, reason: str, message: str) -> AgentResult:
    return AgentResult(job.agent_id, job.node.node_id, job.operation, "error", reason, message[:500], verdict="failed")
