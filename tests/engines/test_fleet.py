"""The fleet engine on a scripted cluster: workers are lost, nodes come and go. No Ray is needed for these."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from remora.engines import FleetEngine, WorkerLost, Workers
from remora.engines._fleet import LOSSES
from remora.engines._ray import _connect
from remora.errors import AgentError, ConfigError, TraceFenced, TraceLocked
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import AgentResult, Job

LINES = LineRange(first=1, last=1)


def job(number: int) -> Job:
    node = CodeNode(
        node_id=f"a.py:f{number}",
        node_type=NodeType.FUNCTION,
        name=f"f{number}",
        file_path=Path("a.py"),
        lines=LINES,
        owned=(LINES,),
        text="",
    )
    return Job("R", f"A{number}", "lint", node)


class ScriptedCluster:
    """Nodes as the test says. A worker runs an agent until the test lets it end, loses it or fails it."""

    def __init__(self, *alive: str) -> None:
        self.alive = list(alive)
        self.asked: list[tuple[str, str, bool]] = []
        """Node, agent and whether it was resumed."""
        self.killed: list[str] = []
        self.stopped: list[str] = []
        self.behave: Callable[[str, Job], BaseException | AgentResult | None] = lambda node_id, job: None
        self.starting: Callable[[str], BaseException | None] = lambda node_id: None
        self.most: Counter[str] = Counter()
        self.running: Counter[str] = Counter()
        self.hold = asyncio.Event()
        self.hold.set()
        self.touched = asyncio.Event()
        self.two_asked = asyncio.Event()

    async def nodes(self) -> Sequence[str]:
        return list(self.alive)

    def worker(self, node_id: str) -> ScriptedWorker:
        return ScriptedWorker(self, node_id)


class ScriptedWorker:
    def __init__(self, cluster: ScriptedCluster, node_id: str) -> None:
        self._cluster = cluster
        self._node_id = node_id

    async def start(self) -> str:
        if error := self._cluster.starting(self._node_id):
            raise error
        return f"{self._node_id}:1"

    async def run(self, job: Job, *, resumed: bool) -> AgentResult:
        at = self._cluster
        at.asked.append((self._node_id, job.agent_id, resumed))
        if len(at.asked) == 2:
            at.two_asked.set()
        at.running[self._node_id] += 1
        at.most[self._node_id] = max(at.most[self._node_id], at.running[self._node_id])
        try:
            await at.hold.wait()
            await asyncio.sleep(0)
            outcome = at.behave(self._node_id, job)
        finally:
            at.running[self._node_id] -= 1
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome is not None:
            return outcome
        return AgentResult(job.agent_id, job.node.node_id, job.operation, "success")

    async def touch(self) -> None:
        self._cluster.touched.set()

    async def stop(self) -> None:
        self._cluster.stopped.append(self._node_id)

    def kill(self) -> None:
        self._cluster.killed.append(self._node_id)


async def run(cluster: ScriptedCluster, jobs: int, at_once: int = 2) -> tuple[list[AgentResult], FleetEngine]:
    async with Workers(cluster, look_s=0.001, patience_s=5) as workers:
        engine = FleetEngine(workers, at_once=at_once)
        return [result async for result in engine.run([job(number) for number in range(jobs)])], engine


async def test_every_node_runs_its_share_and_never_more_than_allowed_at_once() -> None:
    cluster = ScriptedCluster("a", "b", "c")
    results, engine = await run(cluster, 30)
    assert sorted(result.agent_id for result in results) == sorted(f"A{number}" for number in range(30))
    assert max(cluster.most.values()) <= 2
    assert sorted(agent_id for ran in engine.placed.agents.values() for agent_id in ran) == sorted(
        result.agent_id for result in results
    )
    assert sorted(cluster.stopped) == ["a", "b", "c"]


async def test_an_agent_of_a_lost_worker_goes_on_elsewhere_as_resumed_and_ends_once() -> None:
    cluster = ScriptedCluster("a", "b")
    lost = []

    def behave(node_id: str, job: Job) -> BaseException | None:
        if node_id == "a" and not lost:
            lost.append(job.agent_id)
            cluster.alive.remove("a")
            return WorkerLost("the node died")
        return None

    cluster.behave = behave
    results, engine = await run(cluster, 8)
    assert Counter(result.agent_id for result in results) == Counter({f"A{number}": 1 for number in range(8)})
    assert ("b", lost[0], True) in cluster.asked
    assert engine.placed.moved == lost
    assert {result.agent_id: result.worker for result in results}[lost[0]] == "b:1", "who ended it is not said"
    assert "a" in cluster.killed


async def test_a_worker_that_is_waited_for_is_sent_something_now_and_then() -> None:
    """As on a connection that broke in silence: the agent's call fails only when something is sent."""
    cluster = ScriptedCluster("a")
    cluster.hold.clear()
    async with Workers(cluster, look_s=0.001, patience_s=5, touch_s=0.001) as workers:
        running = asyncio.ensure_future(anext(FleetEngine(workers, at_once=1).run([job(0)])))
        await cluster.touched.wait()
        cluster.hold.set()
        assert (await running).outcome == "success"


async def test_a_node_that_joins_or_comes_back_gets_work() -> None:
    cluster = ScriptedCluster("a")
    cluster.hold.clear()
    async with Workers(cluster, look_s=0.001, patience_s=5) as workers:
        engine = FleetEngine(workers, at_once=1)
        results = engine.run([job(0), job(1)])
        running = asyncio.ensure_future(anext(results))
        await asyncio.sleep(0)
        cluster.alive.append("b")
        await cluster.two_asked.wait()
        cluster.hold.set()
        await running
        assert [result.outcome async for result in results] == ["success"]
    assert {node_id for node_id, _, _ in cluster.asked} == {"a", "b"}


async def test_a_worker_that_dies_while_it_starts_is_started_again() -> None:
    cluster = ScriptedCluster("a")
    deaths = [WorkerLost("killed"), WorkerLost("killed")]
    cluster.starting = lambda node_id: deaths.pop() if deaths else None
    results, _ = await run(cluster, 1)
    assert [result.outcome for result in results] == ["success"]


async def test_a_node_that_cannot_open_the_project_is_left_out_and_alone_it_is_an_error() -> None:
    cluster = ScriptedCluster("a", "b")
    cluster.starting = lambda node_id: ConfigError("no sandbox here") if node_id == "a" else None
    results, engine = await run(cluster, 4)
    assert list(engine.placed.agents) == ["b:1"] and len(results) == 4
    assert engine.placed.left_out == {"a": "no sandbox here"}, "nobody learns that a node ran nothing"
    cluster.alive = ["a"]
    with pytest.raises(ConfigError, match="No node of the Ray cluster can run agents: no sandbox here"):
        await run(cluster, 1)


async def test_a_node_on_which_no_worker_can_be_made_is_an_error_that_says_why() -> None:
    cluster = ScriptedCluster("a")
    cluster.starting = lambda node_id: ValueError("cannot be pickled")
    with pytest.raises(ConfigError, match="ValueError: cannot be pickled"):
        await run(cluster, 1)
    assert cluster.killed == ["a"]


async def test_a_worker_that_takes_long_to_start_is_waited_for() -> None:
    class Slow(ScriptedWorker):
        async def start(self) -> str:
            await asyncio.sleep(0.1)  # far longer than the patience
            return await super().start()

    class SlowCluster(ScriptedCluster):
        def worker(self, node_id: str) -> ScriptedWorker:
            return Slow(self, node_id)

    async with Workers(SlowCluster("a"), look_s=0.001, patience_s=0.002) as workers:
        await workers.wait_for_one()
        assert list(workers.ready) == ["a"]


async def test_a_run_without_any_node_ends_with_an_error() -> None:
    async with Workers(ScriptedCluster(), look_s=0.001, patience_s=0.01) as workers:
        with pytest.raises(ConfigError, match="no node is alive"):
            await workers.wait_for_one()


async def test_an_agent_that_loses_its_worker_too_often_fails_and_the_others_end() -> None:
    cluster = ScriptedCluster("a", "b")
    cluster.behave = lambda node_id, job: WorkerLost("died") if job.agent_id == "A0" else None
    results, _ = await run(cluster, 4)
    assert Counter((result.reason, result.has_ended) for result in results) == {("node_lost", False): 1, ("", True): 3}
    assert sum(agent_id == "A0" for _, agent_id, _ in cluster.asked) == LOSSES + 1


def not_sealed(job: Job) -> AgentResult:
    """What a worker returns that was stopped, and woken after another writer had taken the stream."""
    return AgentResult(job.agent_id, job.node.node_id, job.operation, "degraded", "trace", "taken over")


@pytest.mark.parametrize(
    "outcome", [not_sealed, lambda job: TraceFenced("taken over"), lambda job: TraceLocked("busy")]
)
async def test_an_agent_whose_end_was_not_recorded_is_not_over_and_goes_on_from_its_stream(
    outcome: Callable[[Job], BaseException | AgentResult],
) -> None:
    cluster = ScriptedCluster("a")
    refused = iter([True, True])
    cluster.behave = lambda node_id, job: outcome(job) if job.agent_id == "A0" and next(refused, False) else None
    results, engine = await run(cluster, 3)
    assert {result.agent_id: result.outcome for result in results} == dict.fromkeys(["A0", "A1", "A2"], "success")
    assert [resumed for _, agent_id, resumed in cluster.asked if agent_id == "A0"] == [False, True, True]
    assert engine.placed.moved == ["A0", "A0"]
    assert cluster.killed == ["a"], "a worker that works for others was ended before the run was over"


async def test_a_node_that_cannot_record_holds_up_one_agent_at_a_time_and_each_only_once() -> None:
    cluster = ScriptedCluster("a", "b")
    cluster.behave = lambda node_id, job: not_sealed(job) if node_id == "a" else None
    results, engine = await run(cluster, 12, at_once=3)
    assert {result.worker for result in results if result.has_ended} == {"b:1"}
    assert sum(result.has_ended for result in results) == 12
    tried = Counter(agent_id for node_id, agent_id, _ in cluster.asked if node_id == "a")
    assert max(tried.values()) == 1, "an agent went back to the node where it had failed"
    assert sorted(engine.placed.moved) == sorted(tried)


async def test_an_agent_whose_end_can_never_be_recorded_is_reported_as_not_over() -> None:
    cluster = ScriptedCluster("a", "b")
    cluster.behave = lambda node_id, job: not_sealed(job) if job.agent_id == "A0" else None
    results, engine = await run(cluster, 3)
    assert {result.agent_id: result.has_ended for result in results} == {"A0": False, "A1": True, "A2": True}
    assert "A0" not in [agent_id for ran in engine.placed.agents.values() for agent_id in ran]
    assert sum(agent_id == "A0" for _, agent_id, _ in cluster.asked) == LOSSES + 1


async def test_what_an_agent_raises_is_its_result_and_is_not_repeated() -> None:
    cluster = ScriptedCluster("a")
    cluster.behave = lambda node_id, job: AgentError("no such node") if job.agent_id == "A0" else None
    results, _ = await run(cluster, 2)
    assert {result.agent_id: result.reason for result in results} == {"A0": "AgentError", "A1": ""}
    assert len(cluster.asked) == 2


async def test_stopping_early_cancels_what_runs() -> None:
    cluster = ScriptedCluster("a")
    async with Workers(cluster, look_s=0.001, patience_s=5) as workers:
        results = FleetEngine(workers, at_once=2).run([job(number) for number in range(9)])
        await anext(results)
        await results.aclose()
    assert sum(cluster.running.values()) == 0
    assert len(cluster.asked) < 9


async def test_abandoning_a_run_kills_the_workers_so_that_no_agent_is_sealed_as_cancelled() -> None:
    cluster = ScriptedCluster("a", "b")
    async with Workers(cluster, look_s=0.001, patience_s=5) as workers:
        engine = FleetEngine(workers, at_once=2)
        results = engine.run([job(number) for number in range(9)])
        await anext(results)
        begun = set(workers.ready)
        engine.abandon()
        assert set(cluster.killed) == begun
        await results.aclose()
    assert sum(cluster.running.values()) == 0


def test_an_address_where_nobody_listens_is_refused_before_ray_is_asked() -> None:
    def init(**_: object) -> None:
        raise AssertionError("Ray would try for a quarter of an hour")

    ray = SimpleNamespace(is_initialized=lambda: False, init=init)
    with socket.socket() as bound:  # a port that is taken, but does not listen
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ConfigError, match=r"`127.0.0.1:\d+` cannot be reached: Connection refused"):
            _connect(ray, f"127.0.0.1:{bound.getsockname()[1]}")
    for wrong in ("127.0.0.1:70000", f"{'a' * 70}.example:6379"):
        with pytest.raises(ConfigError, match="cannot be reached"):
            _connect(ray, wrong)


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "http://127.0.0.1:8265"])
def test_the_address_of_another_service_of_ray_is_refused_with_what_to_name(address: str) -> None:
    def init(**_: object) -> None:
        raise AssertionError("Ray was asked")

    with pytest.raises(ConfigError, match="expected `auto` or HOST:PORT of its head"):
        _connect(SimpleNamespace(is_initialized=lambda: False, init=init), address)


@pytest.mark.parametrize("known", [True, False])
def test_a_cluster_that_refuses_is_named_with_what_ray_said(known: bool) -> None:
    class RayError(Exception):
        """As Ray's own, for a wrong token."""

    def init(**_: object) -> None:
        raise RayError("Authentication token is missing") if known else ConnectionError("nobody answers")

    ray = SimpleNamespace(is_initialized=lambda: False, init=init, exceptions=SimpleNamespace(RayError=RayError))
    with pytest.raises(ConfigError, match=r"`auto` cannot be used: (Authentication token|nobody answers)"):
        _connect(ray, "auto")
