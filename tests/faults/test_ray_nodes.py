"""Row 35: whole nodes of a Ray cluster are killed or cut off, and its head is restarted; every agent ends once.

The agents post twice each, with effects outside. No post may happen twice, whatever is lost between it and its result.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from postgres import Server
from ray_cluster import LocalCluster, Posts, local_cluster, make_project, open_marked_node, run, signal_all
from remora.app import _fleet, make_store, open_project

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("ignore")]  # ray leaves files and processes open
pytest.importorskip("ray", reason="row 35: ray is not installed")
NODES = int(os.environ.get("REMORA_RAY_NODES", "3"))
AGENTS = int(os.environ.get("REMORA_RAY_AGENTS", "24"))
NODE_KILLS = int(os.environ.get("REMORA_RAY_NODE_KILLS", "10"))
KILLS_A_RUN = int(os.environ.get("REMORA_RAY_KILLS_A_RUN", "3"))
SEED = int(os.environ.get("REMORA_RAY_SEED", "35"))
STOPPED_S = [float(each) for each in os.environ.get("REMORA_RAY_STOPPED_S", "45").split(",")]
"""How long a node is stopped: longer than a writer's patience, and shorter than Ray waits for it, about 65 s."""
WAIT_S = 1.0
"""How long each tool of an agent takes."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with local_cluster(NODES, tmp_path_factory.mktemp("head")) as found:
        yield found


@pytest.fixture
def posts(cluster: LocalCluster, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Posts:
    monkeypatch.setattr(_fleet, "open_node", open_marked_node)
    root = tmp_path / "project"
    make_project(root, tmp_path / "effects", agents=AGENTS, wait_s=WAIT_S)
    store = postgres.new_url()
    make_store(store)
    settings = {"engine.name": "ray", "server.server": "scripted", "runner.max_concurrent": 2}
    return Posts(open_project(root, settings, state_dir=store), root / "a.py", tmp_path / "effects")


def run_during(posts: Posts, fault: Callable[[], None], moments: Sequence[int]) -> str:
    """Run all agents; a fault happens each time so many effects have happened.

    The agents run in another thread: Ray starts nodes from the main thread only.
    """
    posts.effects.unlink(missing_ok=True)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(run, posts.project, posts.file)
        happened = 0
        while happened < len(moments) and not running.done():
            if posts.count() >= moments[happened]:
                fault()
                happened += 1
            time.sleep(0.05)
        run_id, _ = running.result()
    assert happened == len(moments), f"{happened} of {len(moments)} faults before the run was over"
    return run_id


def test_every_agent_ends_once_though_nodes_are_killed(
    cluster: LocalCluster, posts: Posts, record_property: Callable[..., None]
) -> None:
    chance, kills = random.Random(SEED), 0

    def kill() -> None:
        time.sleep(2 * WAIT_S * chance.random())  # also between two effects, and while a worker starts
        cluster.kill_node(chance.randrange(len(cluster.nodes)))
        cluster.add_node()

    while kills < NODE_KILLS:
        moments = sorted(chance.sample(range(1, 2 * AGENTS - 2 * NODES), min(KILLS_A_RUN, NODE_KILLS - kills)))
        run_id = run_during(posts, kill, moments)
        kills += len(moments)
        record_property("row 35", f"{kills} nodes killed: {posts.check(run_id)}")


DRIVER = """
import sys
import ray
from remora.engines._ray import _connect
_connect(ray, sys.argv[1])
print("connected", flush=True)
sys.stdin.readline()
"""


def test_a_lost_node_prints_nothing_where_the_data_of_a_run_goes(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [sys.executable, "-c", DRIVER, cluster.address]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "connected\n"
        cluster.kill_node(0)
        cluster.add_node()
        while "raylet" not in capsys.readouterr().out:  # this process is a driver too, as Ray makes them
            time.sleep(0.1)
        assert driver.communicate("\n")[0] == ""


def test_a_run_goes_on_though_the_head_is_restarted(
    cluster: LocalCluster, posts: Posts, record_property: Callable[..., None]
) -> None:
    run_id = run_during(posts, partial(cluster.restart_head, after_s=5), [AGENTS // 2])
    record_property("row 35", f"head restarted: {posts.check(run_id, some_moved=False)}")


@pytest.mark.parametrize("stopped_s", STOPPED_S)
def test_every_agent_ends_once_though_a_node_was_stopped_and_woken(
    cluster: LocalCluster, posts: Posts, record_property: Callable[..., None], stopped_s: float
) -> None:
    def stop() -> None:
        frozen = cluster.freeze(0)
        time.sleep(stopped_s)
        signal_all(frozen, signal.SIGCONT)

    run_id = run_during(posts, stop, [AGENTS // 2])
    record_property("row 35", f"a node stopped for {stopped_s:g} s: {posts.check(run_id, some_moved=False)}")
    cluster.kill_node(0)  # Ray may have given it up
    cluster.add_node()


def test_a_node_that_was_cut_off_repeats_nothing_when_it_comes_back(
    cluster: LocalCluster, posts: Posts, record_property: Callable[..., None]
) -> None:
    frozen: list[int] = []
    # The run ends without the node: its agents go on elsewhere once its lease is over.
    run_id = run_during(posts, lambda: frozen.extend(cluster.freeze(0)), [AGENTS // 2])
    signal_all(frozen, signal.SIGCONT)
    time.sleep(2)  # what wakes may try to go on; its appends are refused
    record_property("row 35", f"a node cut off: {posts.check(run_id)}")
    cluster.kill_node(0)
    cluster.add_node()
