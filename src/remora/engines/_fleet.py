"""Runs agents on the workers of a cluster, one worker a node.

The cluster starts workers and tells when one is lost; it never runs an agent twice. An agent whose worker was lost is
given to another one as *resumed*: it goes on from its stream, by the same rules as after a crash. So does one whose
worker came back without having sealed the stream: because another writer has it, or the store could not be reached.
Nodes may come and go while a run goes on: one that joins, or comes back, gets a worker.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from remora.engines._failure import degraded_result, failed_result
from remora.errors import ConfigError, RemoraError, TraceError
from remora.ports import AgentResult, Job

LOSSES = 3
"""How often one agent may go on elsewhere. After that it is reported as degraded, and `remora resume` continues it."""
STARTS = 10
"""How often a worker that dies while it starts is started again on its node."""
LOOK_S = 2.0
"""How often the cluster is asked for nodes without a worker."""
START_S = 600.0
"""How long a worker may take to open the project and its model."""
PATIENCE_S = 60.0
"""How long a run waits for the first node, and for another one when all are lost, while no worker starts."""
TOUCH_S = 5.0
"""How often each worker is sent something."""
STOP_S = 20.0
"""How long a worker may take to close."""


class WorkerLost(Exception):
    """The worker or its node is gone, or cannot be reached. What its agents have done is in their streams."""


class Worker(Protocol):
    """What runs agents on one node."""

    async def start(self) -> str:
        """Open the project; return the worker's name. Raises `WorkerLost`, or `ConfigError` if it cannot be opened."""
        ...

    async def run(self, job: Job, *, resumed: bool) -> AgentResult:
        """Run one agent; with `resumed`, from where its stream ends. Raises `WorkerLost`, or what the agent raised.

        Cancelling it cancels the agent, and waits until its stream is sealed.
        """
        ...

    async def touch(self) -> None:
        """Send something to the worker, and wait for its answer. Raises `WorkerLost`.

        A connection that broke in silence is noticed by whoever sends; one that only waits for a result waits on.
        """
        ...

    async def stop(self) -> None:
        """Close the project. Raises `WorkerLost`."""
        ...

    def kill(self) -> None:
        """End the worker, if it can be reached."""
        ...


class Cluster(Protocol):
    """Where workers can be started."""

    async def nodes(self) -> Sequence[str]:
        """The nodes that are alive and can run agents."""
        ...

    def worker(self, node_id: str) -> Worker:
        """A new worker on that node, not yet started."""
        ...


@dataclass(eq=False)
class _Ready:
    """A started worker."""

    node_id: str
    worker: Worker
    name: str
    is_troubled: bool = False
    """Whether the end of the newest agent could not be recorded there: then it gets one agent at a time."""


@dataclass
class _Work:
    """An agent to run, and how often its worker was lost or could not seal its stream."""

    job: Job
    resumed: bool
    losses: int = 0
    failed_on: frozenset[str] = frozenset()
    """Nodes where it did not end. It goes back to one of them only if there is no other."""


@dataclass
class Placement:
    """Which agents each worker ran, and which were moved."""

    agents: dict[str, list[str]] = field(default_factory=dict)
    """Agents by worker, in the order of their ends."""
    moved: list[str] = field(default_factory=list)
    """Agents that went on elsewhere after their worker was lost or could not record their end."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Nodes that could not open the project, and why."""


class Workers:
    """One worker on every node that can have one. Use it as an asynchronous context manager."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        look_s: float = LOOK_S,
        patience_s: float = PATIENCE_S,
        touch_s: float = TOUCH_S,
    ) -> None:
        self._cluster = cluster
        self._look_s = look_s
        self._patience_s = patience_s
        self._touch_s = touch_s
        self._touching: dict[str, asyncio.Task[None]] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._starts: dict[str, int] = {}
        self.unfit: dict[str, str] = {}
        """Nodes that were left out, and why."""
        self._problem = "no node is alive"
        self._watching: asyncio.Task[None] | None = None
        self.ready: dict[str, _Ready] = {}
        """By node."""
        self.changed = asyncio.Event()
        """Set when a worker is ready, or a node turns out to be unfit."""

    async def __aenter__(self) -> Workers:
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._starting.values(), *self._touching.values(), *([self._watching] if self._watching else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(self._stop(each.worker) for each in self.ready.values()))
        self.ready.clear()

    async def wait_for_one(self) -> None:
        """Until a worker is ready. Raises `ConfigError` if none can be, or none was for too long."""
        waited = 0.0
        while not (self.ready or self._hopeless() or waited >= self._patience_s):
            try:
                async with asyncio.timeout(self._look_s):
                    await self.changed.wait()
                self.changed.clear()
            except TimeoutError:  # a worker that loads its model is waited for
                waited = 0.0 if self._starting else waited + self._look_s
        if not self.ready:
            raise ConfigError(
                f"No node of the Ray cluster can run agents: {self._problem}",
                hint="`ray status` shows the nodes; `remora resume` continues a run that had begun",
            )

    def lose(self, lost: _Ready) -> None:
        """Forget a worker that was lost, and end it if it is still there."""
        if self.ready.get(lost.node_id) is lost:
            del self.ready[lost.node_id]
            self._touching.pop(lost.node_id).cancel()
            lost.worker.kill()

    def kill(self) -> None:
        """End all workers without waiting for their agents."""
        for ready in list(self.ready.values()):
            self.lose(ready)

    def _hopeless(self) -> bool:
        """Whether every node that is known has said that it cannot open the project."""
        return bool(self.unfit) and not self._starting

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(WorkerLost):
                for node_id in await self._cluster.nodes():
                    if not (node_id in self.ready or node_id in self._starting or node_id in self.unfit):
                        self._starting[node_id] = asyncio.create_task(self._start(node_id))
            await asyncio.sleep(self._look_s)

    async def _start(self, node_id: str) -> None:
        """Start a worker on a node; remember a node on which that cannot be done."""
        try:
            worker = self._cluster.worker(node_id)
            try:
                async with asyncio.timeout(START_S):
                    self.ready[node_id] = _Ready(node_id, worker, await worker.start())
                self._touching[node_id] = asyncio.create_task(self._touch(worker))
            except BaseException:
                worker.kill()
                raise
        except (WorkerLost, TimeoutError) as error:
            self._problem = str(error) or f"a worker did not open the project within {START_S:g} s"
            self._starts[node_id] = self._starts.get(node_id, 0) + 1
            if self._starts[node_id] >= STARTS:
                self.unfit[node_id] = self._problem
        except Exception as error:  # noqa: BLE001 - it would be the same again; if no node is left, the error says why
            self._problem = error.message if isinstance(error, RemoraError) else f"{type(error).__name__}: {error}"
            self.unfit[node_id] = self._problem
        finally:
            del self._starting[node_id]
            self.changed.set()

    async def _touch(self, worker: Worker) -> None:
        """Touch a worker again and again, also while it does not answer. Broken connections fail then."""
        while True:
            with contextlib.suppress(WorkerLost, RemoraError, TimeoutError):
                async with asyncio.timeout(self._touch_s):
                    await worker.touch()
            await asyncio.sleep(self._touch_s)

    async def _stop(self, worker: Worker) -> None:
        with contextlib.suppress(WorkerLost, RemoraError, TimeoutError):
            await asyncio.wait_for(worker.stop(), STOP_S)
        worker.kill()


class FleetEngine:
    """Runs jobs on the workers of a cluster, `at_once` on each. Use it as an asynchronous context manager."""

    def __init__(self, workers: Workers, *, at_once: int, resumed: bool = False) -> None:
        """With `resumed`, all jobs go on from their streams."""
        self._workers = workers
        self._at_once = at_once
        self._resumed = resumed
        self.placed = Placement(left_out=workers.unfit)

    def abandon(self) -> None:
        """Kill the workers: their agents leave their streams unsealed, as when a node is lost."""
        self._workers.kill()

    async def run(self, jobs: Sequence[Job]) -> AsyncGenerator[AgentResult]:
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
                    taking.cancel()
                    feeding.result()  # raises what went wrong
                yield await taking
        finally:
            feeding.cancel()
            with contextlib.suppress(asyncio.CancelledError, RemoraError):
                await feeding

    async def _feed(self, waiting: deque[_Work], results: asyncio.Queue[AgentResult]) -> None:
        """Keep every worker busy, and bring back work whose worker was lost."""
        busy: dict[asyncio.Task[_Work | None], _Ready] = {}
        try:
            while waiting or busy:
                if waiting:
                    await self._workers.wait_for_one()
                self._assign(waiting, busy, results)
                changed = asyncio.ensure_future(self._workers.changed.wait())
                await asyncio.wait({*busy, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                self._workers.changed.clear()
                for task in [task for task in busy if task.done()]:
                    del busy[task]
                    if again := task.result():
                        waiting.appendleft(again)
        finally:
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

    def _assign(
        self,
        waiting: deque[_Work],
        busy: dict[asyncio.Task[_Work | None], _Ready],
        results: asyncio.Queue[AgentResult],
    ) -> None:
        """Give waiting agents to workers with room, evenly."""
        room = {ready: 1 if ready.is_troubled else self._at_once for ready in self._workers.ready.values()}
        for ready in busy.values():
            if ready in room:
                room[ready] -= 1
        for _ in range(len(waiting)):
            if not any(count > 0 for count in room.values()):
                return
            work = waiting.popleft()
            if (place := _choose_worker(work, room)) is None:
                waiting.append(work)
                continue
            room[place] -= 1
            busy[asyncio.create_task(self._one(place, work, results))] = place

    async def _one(self, ready: _Ready, work: _Work, results: asyncio.Queue[AgentResult]) -> _Work | None:
        """Run one agent to its end; return it if it has to go on elsewhere."""
        is_over = False
        try:
            result = replace(await ready.worker.run(work.job, resumed=work.resumed), worker=ready.name)
            is_over = result.has_ended
            ready.is_troubled = not is_over
            if is_over:
                self.placed.agents.setdefault(ready.name, []).append(result.agent_id)
        except WorkerLost as error:
            self._workers.lose(ready)
            result = degraded_result(work.job, "node_lost", f"Its node was lost {work.losses + 1} times: {error}")
        except TraceError as error:
            ready.is_troubled = True
            result = failed_result(work.job, error)
        except Exception as error:  # noqa: BLE001 - one agent's defect must not stop the others; the result says so
            result, is_over = failed_result(work.job, error), True  # it would be the same again
        if not is_over and work.losses < LOSSES:
            self.placed.moved.append(work.job.agent_id)
            return _Work(work.job, True, work.losses + 1, work.failed_on | {ready.node_id})
        results.put_nowait(result)
        return None


def _choose_worker(work: _Work, room: Mapping[_Ready, int]) -> _Ready | None:
    """The worker with the most room; one where the agent failed only if there is no other. None if they are full."""
    others = [ready for ready in room if ready.node_id not in work.failed_on] or list(room)
    most = max(others, key=lambda ready: room[ready])
    return most if room[most] > 0 else None
