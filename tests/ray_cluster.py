"""A Ray cluster of several nodes on this machine, and agents whose effects outside can be counted."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remora.app import Project, open_project
from remora.app._fleet import Described, Fetch, NodeHost, open_node
from remora.events import AgentEndEvent, AgentFinishedEvent, NoticeEvent, RunEndEvent, ToolResultEvent
from remora.ports import AgentResult, Job
from remora.trace import read_events

AGENT: ContextVar[str] = ContextVar("AGENT", default="")
"""The agent that calls a tool, for the tools below."""

PATIENT = {
    "RAY_raylet_start_wait_time_s": "60",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_gcs_server_request_timeout_seconds": "180",
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
}
"""Ray's own processes may start slowly on a busy machine. Workers have the priority of other processes: by default Ray
gives them the lowest, and while others are busy they need minutes instead of seconds to open a project."""
STARTS = 8
PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")

DEFINITION = """
name: poster
goal: Post about {node}
system_prompt: Post, wait, post.
tools:
  - {name: post_first, effects: outside, python: posting.py:post_first}
  - {name: wait, effects: none, python: posting.py:wait}
  - {name: post_second, effects: outside, python: posting.py:post_second}
script: [post_first, wait, post_second, wait, submit_result]
"""
POSTING = '''
import asyncio
import os

import remora
from ray_cluster import AGENT


async def post(which):
    place = os.open("{effects}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(place, f"{{AGENT.get()}} {{which}}\\n".encode())
    os.close(place)
    await asyncio.sleep({wait_s})  # the effect has happened, and its result is not recorded yet
    return {{"summary": "posted"}}


@remora.tool
async def post_first():
    """Post the first time."""
    return await post("first")


@remora.tool
async def post_second():
    """Post the second time."""
    return await post("second")


@remora.tool
async def wait():
    """Wait, as for a model on another machine."""
    await asyncio.sleep({wait_s})
    return {{"summary": "waited"}}
'''


class Marked:
    """A host whose tools know for which agent they run."""

    def __init__(self, host: NodeHost) -> None:
        self._host = host

    async def execute(self, job: Job, *, resumed: bool) -> AgentResult:
        AGENT.set(job.agent_id)
        return await self._host.execute(job, resumed=resumed)


@asynccontextmanager
async def open_marked_node(described: Described, fetch: Fetch) -> AsyncIterator[Marked]:
    async with open_node(described, fetch) as host:
        yield Marked(host)


def make_project(root: Path, effects: Path, *, agents: int, wait_s: float) -> None:
    """A project with so many functions, and a trusted agent that posts twice for each."""
    folder = root / "agents" / "poster"
    folder.mkdir(parents=True)
    (root / "remora.yaml").touch()
    (root / "a.py").write_text("\n\n".join(f"def f{number}():\n    return {number}" for number in range(agents)))
    (folder / "subagent.yaml").write_text(DEFINITION)
    (folder / "posting.py").write_text(POSTING.format(effects=effects, wait_s=wait_s))
    open_project(root).agents.trust(root / "agents")


def run(project: Project, path: Path) -> tuple[str, list[AgentResult]]:
    """Run the poster on every function of a file."""
    plan = project.runs.plan([path], ["poster"])

    async def results() -> list[AgentResult]:
        return [result async for result in project.runs.run(plan)]

    return plan.run_id, asyncio.run(results())


@dataclass
class Posts:
    """A project whose agents post, with its streams in a store."""

    project: Project
    file: Path
    effects: Path

    def count(self) -> int:
        """How many effects have happened."""
        return len(self.effects.read_text().splitlines()) if self.effects.exists() else 0

    def check(self, run_id: str, *, some_moved: bool = True) -> str:
        """Every agent has ended once, no effect was repeated, and all streams verify."""
        library = self.project.library
        events = list(read_events(library.find(run_id)))
        ended = [event for event in events if isinstance(event, AgentFinishedEvent)]
        assert set(Counter(event.agent_id for event in ended).values()) == {1}
        assert [event.outcome for event in events if isinstance(event, RunEndEvent)] == ["finished"]
        posted = Counter(self.effects.read_text().splitlines())
        assert set(posted.values()) == {1}, "an effect was repeated"
        unknown = 0
        for event in ended:
            stream = list(library.events(event.agent_id))
            ends = sum(isinstance(each, AgentEndEvent) for each in stream)
            assert ends == 1, f"{event}: {[each.type for each in stream]}"
            unknown += sum(isinstance(each, ToolResultEvent) and each.outcome == "unknown" for each in stream)
        assert not library.verify().damaged
        (placed,) = (event.message for event in events if isinstance(event, NoticeEvent) and event.code == "placement")
        moved = re.search(r"(\d+) agents? went on elsewhere", placed)
        assert moved or not some_moved, "the fault hit no agent"
        lost = sum(isinstance(event, NoticeEvent) and event.code == "not_over" for event in events)
        return (
            f"{len(ended)} agents ended once, {moved[1] if moved else 0} moved, {lost} given up, "
            f"{len(posted)} effects, none twice, {unknown} whose result was lost"
        )


class LocalCluster:
    """A head without workers, which survives a restart, and nodes beside it."""

    def __init__(self, nodes: int) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster()
        self._start(num_cpus=0, include_dashboard=False, include_log_monitor=False, no_monitor=True)
        self.nodes: list[Any] = []
        for _ in range(nodes):
            self.add_node()
        self.address = self._cluster.address

    def add_node(self) -> None:
        self.nodes.append(self._start(num_cpus=1))

    def _start(self, **settings: Any) -> Any:
        """Start a node, again if it was too slow: Ray gives its helper processes 15 s."""
        for _ in range(STARTS):
            try:
                return self._cluster.add_node(wait=False, **settings, **self._known_ports())
            except Exception as error:  # noqa: BLE001 - Ray raises nothing more precise
                slow = error
        raise slow

    def _known_ports(self) -> dict[str, Any]:
        """Settings of a node whose ports stand where its raylet looks for them: it waits only 15 s for its helpers."""
        from ray import NodeID

        node_id, ports = NodeID.from_random().hex(), _free_ports()
        if self._cluster.head_node is None:
            name = f"session_remora_{os.getpid()}_{node_id[:8]}"
            folder, more = Path(tempfile.gettempdir()) / "ray" / name, {"session_name": name}
        else:
            folder, more = Path(self._cluster.head_node.get_session_dir_path()), {}
        folder.mkdir(parents=True, exist_ok=True)
        for port, number in ports.items():
            (folder / f"{port}_{node_id}").write_text(str(number if port == "runtime_env_agent_port" else -1))
        return {**ports, **more, "env_vars": {"RAY_OVERRIDE_NODE_ID_FOR_TESTING": node_id}}

    def kill_node(self, place: int) -> None:
        """Kill every process of a node at once, its agents included, as if its machine lost power.

        Ray's own way kills only the raylet; the agents then have time to record what they did.
        """
        node = self.nodes.pop(place)
        signal_all(processes(node), signal.SIGKILL)
        self._cluster.remove_node(node, allow_graceful=False)

    def restart_head(self, after_s: float) -> None:
        """Kill the head's server, and start it again."""
        import time

        self._cluster.head_node.kill_gcs_server()
        time.sleep(after_s)
        self._cluster.head_node.start_gcs_server()

    def freeze(self, place: int) -> list[int]:
        """Stop every process of a node, as if nothing reached it and it reached nothing."""
        pids = processes(self.nodes[place])
        signal_all(pids, signal.SIGSTOP)
        return pids

    def close(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()


def processes(node: Any) -> list[int]:
    """The processes of a node: its raylet, and all that it started."""
    raylet = node.all_processes["raylet"][0].process.pid
    return [raylet, *children(raylet)]


def signal_all(pids: Sequence[int], which: signal.Signals) -> None:
    """Send a signal to all that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, which)


@contextmanager
def local_cluster(nodes: int, storage: Path) -> Iterator[LocalCluster]:
    """A cluster that this process is connected to. The head keeps its state in `storage`; all trust the same agents."""
    import ray

    tests = str(Path(__file__).parent)
    kept = {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(storage / "head"), "PYTHONPATH": tests}
    kept["REMORA_CONFIG_DIR"] = str(storage / "own")
    before = {name: os.environ.get(name) for name in PATIENT | kept}
    os.environ.update(PATIENT | kept)
    try:
        cluster = LocalCluster(nodes)
        try:
            ray.init(address=cluster.address, log_to_driver=False)
            yield cluster
        finally:
            cluster.close()
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def children(pid: int) -> list[int]:
    """All processes below a process."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found += [int(folder.name), *children(int(folder.name))]
        except OSError:
            continue
    return found


def _free_ports() -> dict[str, int]:
    """Ports for a node: a raylet that has to wait for them to be chosen gives up after 15 s."""
    sockets = [socket.socket() for _ in PORTS]
    for each in sockets:
        each.bind(("", 0))
    found = {name: each.getsockname()[1] for name, each in zip(PORTS, sockets, strict=True)}
    for each in sockets:
        each.close()
    return found
