"""Runs agents on the nodes of a Ray cluster.

One actor a node holds what its agents share: the model, the connection to the store, the sandbox. Ray never runs an
agent twice: tasks and actors have no retries. What happens when one is lost: `_fleet`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from remora.engines._fleet import FleetEngine, WorkerLost, Workers
from remora.errors import ConfigError, MissingExtra, RemoraError
from remora.ports import AgentResult, Job

REACH_S = 10.0
"""How long the head of a cluster may take to accept a connection."""
CANCEL_S = 20.0
"""How long cancelled agents may take to seal their streams."""


class Host(Protocol):
    """What runs agents on one node."""

    async def execute(self, job: Job, *, resumed: bool) -> AgentResult:
        """Run one agent to its end; with `resumed`, from where its stream ends."""
        ...


OpenHost = Callable[[Any, Callable[[], Awaitable[bytes]]], AbstractAsyncContextManager[Host]]
"""Opens a host from a description and a function that fetches the packed sources. Picklable: an importable function."""


class NodeWorker:
    """The actor of one node."""

    def __init__(self, open_host: OpenHost, described: Any, sources: Sequence[Any]) -> None:
        """`sources` holds one reference. Inside a list, Ray fetches it only when it is asked for."""
        self._sources = sources
        self._opening = open_host(described, self._fetch)
        self._host: Host | None = None

    async def start(self) -> str:
        """Open the host; return the worker's name."""
        import os
        import socket

        self._host = await self._opening.__aenter__()
        return f"{socket.gethostname()}:{os.getpid()}"

    async def _fetch(self) -> bytes:
        sources: bytes = await self._sources[0]
        return sources

    async def run(self, job: Job, resumed: bool) -> AgentResult:
        """Run one agent."""
        assert self._host is not None  # noqa: S101 (`start` comes first)
        return await self._host.execute(job, resumed=resumed)

    async def touch(self) -> None:
        """Answer."""

    async def stop(self) -> None:
        """Close the host."""
        if self._host is not None:
            self._host = None
            await self._opening.__aexit__(None, None, None)


@asynccontextmanager
async def open_ray_engine(
    open_host: OpenHost,
    describe: Callable[[], Any],
    *,
    sources: bytes,
    address: str,
    at_once: int,
    resumed: bool = False,
) -> AsyncIterator[FleetEngine]:
    """An engine on a Ray cluster. Without an `address`, one is started on this machine and stopped afterwards.

    Each worker opens a host from what `describe` returns when the worker is started.
    """
    ray = _load_ray()
    started = await asyncio.to_thread(_connect, ray, address)
    try:
        cluster = RayCluster(ray, open_host, describe, ray.put(sources), at_once=at_once)
        async with Workers(cluster) as workers:
            await workers.wait_for_one()
            yield FleetEngine(workers, at_once=at_once, resumed=resumed)
    finally:
        if started:
            await asyncio.to_thread(ray.shutdown)
            _let_print(ray, True)  # whoever uses Ray next in this process decides for themselves


class RayCluster:
    """The nodes of a Ray cluster that this process is connected to."""

    def __init__(
        self, ray: Any, open_host: OpenHost, describe: Callable[[], Any], sources: Any, *, at_once: int
    ) -> None:
        """`sources` is a reference to the packed sources in Ray's object store."""
        self._ray = ray
        self._open_host = open_host
        self._describe = describe
        self._sources = sources
        self._at_once = at_once

    async def nodes(self) -> Sequence[str]:
        """The nodes that are alive and have cores."""
        try:
            found = await asyncio.to_thread(self._ray.nodes)
        except (self._ray.exceptions.RayError, RuntimeError) as error:  # the head does not answer
            raise WorkerLost(_cause(error)) from error
        return [each["NodeID"] for each in found if each["Alive"] and each["Resources"].get("CPU")]

    def worker(self, node_id: str) -> RayWorker:
        """A new actor on that node. Neither it nor its tasks are ever repeated."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor = (
            self._ray.remote(NodeWorker)
            .options(
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=self._at_once + 2,
                num_cpus=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
            )
            .remote(self._open_host, self._describe(), [self._sources])
        )
        return RayWorker(self._ray, actor)


class RayWorker:
    """An actor, and what its errors mean."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor

    async def start(self) -> str:
        """Open the project there; return the worker's name."""
        return str(await self._outcome(self._actor.start.remote()))

    async def run(self, job: Job, *, resumed: bool) -> AgentResult:
        """Run one agent there."""
        reference = self._actor.run.remote(job, resumed)
        try:
            result: AgentResult = await self._outcome(reference)
        except asyncio.CancelledError:
            await self._cancel(reference)
            raise
        return result

    async def touch(self) -> None:
        """Send something there. Ray itself would notice a connection that broke in silence after five minutes."""
        await self._outcome(self._actor.touch.remote())

    async def stop(self) -> None:
        """Close the project there."""
        await self._outcome(self._actor.stop.remote())

    def kill(self) -> None:
        """End the actor, if it can be reached."""
        with contextlib.suppress(Exception):  # a lost one cannot be
            self._ray.kill(self._actor)

    async def _outcome(self, reference: Any) -> Any:
        """The result of a call, or what the call raised. Everything else that Ray raises means that it was lost."""
        try:
            return await reference
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, self._ray.exceptions.RayError):  # the sources could not be fetched
                raise WorkerLost(_cause(error)) from error
            cause = error.cause if isinstance(error.cause, RemoraError) else None
            raise cause or RemoraError(_cause(error)) from error
        except self._ray.exceptions.RayError as error:
            raise WorkerLost(_cause(error)) from error

    async def _cancel(self, reference: Any) -> None:
        """Cancel the agent, and wait until its stream is sealed."""
        with contextlib.suppress(Exception):
            self._ray.cancel(reference)
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(reference.future())), CANCEL_S)


def _connect(ray: Any, address: str) -> bool:
    """Connect to the cluster; whether this was the first time. Raises `ConfigError`."""
    if ray.is_initialized():
        return False
    _check_address(address)
    # `local` starts one also where another cluster runs: without it, Ray would join that one.
    where = {"address": address} if address else {"address": "local", "include_dashboard": False}
    logging.getLogger("ray").setLevel(logging.ERROR)  # what it says about itself is not about the run
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **where)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigError(
            f"The Ray cluster at `{address or 'this machine'}` cannot be used: {str(error).strip()[:500]}",
            hint="Start one with `ray start --head`, or leave `--address` out",
        ) from error
    _let_print(ray, False)
    return True


def _let_print(ray: Any, allowed: bool) -> None:
    """Whether Ray prints to stdout what happens to its nodes: data goes there, and a lost node is no error of ours.

    `log_to_driver` does not turn that off, and no other setting does.
    """
    if (worker := getattr(getattr(ray, "_private", None), "worker", None)) is not None:
        worker._worker_logs_enabled = allowed


def _check_address(address: str) -> None:
    """Raises `ConfigError` for the address of another service, or if nobody listens at `HOST:PORT`.

    Ray itself would try for about a quarter of an hour.
    """
    if "://" in address:
        raise ConfigError(
            f"The Ray cluster at `{address:.200}` cannot be used: expected `auto` or HOST:PORT of its head",
            hint="Run the command on a node of the cluster: `ray start --address=HOST:PORT` makes this machine one",
        )
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S).close()
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"The Ray cluster at `{address:.200}` cannot be reached: {why}",
            hint="Start one with `ray start --head`, or leave `--address` out",
        ) from error


def _load_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("ray, which runs agents on many machines,", extra="fleet") from error
    return ray


def _cause(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    said = str(cause).strip()
    return said.splitlines()[-1][:500] if said else type(cause).__name__
