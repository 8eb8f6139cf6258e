"""Row 35: whole nodes of a Ray cluster are killed or cut off, and its head is restarted; every agent ends once.

The agents post twice each, with effects outside. No post may happen twice, whatever is lost between it and its result.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from postgres import Server
from ray_cluster import LocalCluster, local_cluster, make_project, open_marked_node, run, thaw
from remora.app import Project, _fleet, make_store, open_project
from remora.events import AgentEndEvent, AgentFinishedEvent, RunEndEvent, ToolResultEvent
from remora.trace import read_events

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("ignore")]  # ray leaves files and processes open
pytest.importorskip("ray", reason="row 35: ray is not installed")
NODES = int(os.environ.get("REMORA_RAY_NODES", "3"))
AGENTS = int(os.environ.get("REMORA_RAY_AGENTS", "24"))
NODE_KILLS = int(os.environ.get("REMORA_RAY_NODE_KILLS", "10"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with local_cluster(NODES, tmp_path_factory.mktemp("head")) as found:
        yield found


@dataclass
class Posts:
    """A project whose agents post, with its streams in a store."""

    project: Project
    file: Path
    effects: Path

    def check(self, run_id: str) -> str:
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
            if event.reason != "node_lost":
                assert sum(isinstance(each, AgentEndEvent) for each in stream) == 1
            unknown += sum(isinstance(each, ToolResultEvent) and each.outcome == "unknown" for each in stream)
        assert not library.verify().damaged
        return f"{len(ended)} agents, {len(posted)} effects, none twice, {unknown} whose result was lost"


@pytest.fixture
def posts(cluster: LocalCluster, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Posts:
    monkeypatch.setattr(_fleet, "open_node", open_marked_node)
    root = tmp_path / "project"
    make_project(root, tmp_path / "effects", agents=AGENTS, wait_s=1.0)
    store = postgres.new_url()
    make_store(store)
    settings = {"engine.name": "ray", "server.server": "scripted", "runner.max_concurrent": 2}
    return Posts(open_project(root, settings, state_dir=store), root / "a.py", tmp_path / "effects")


def run_during(posts: Posts, count: int, fault: Callable[[], None]) -> str:
    """Run all agents; once so many effects have happened, the fault happens in another thread."""
    over, happened = threading.Event(), []

    def wait() -> None:
        while not over.wait(0.05):
            if posts.effects.exists() and len(posts.effects.read_text().splitlines()) >= count:
                fault()
                happened.append(True)
                return

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        run_id, _ = run(posts.project, posts.file)
    finally:
        over.set()
        thread.join()
    assert happened
    return run_id


def test_every_agent_ends_once_though_nodes_are_killed(
    cluster: LocalCluster, posts: Posts, record_property: Callable[..., None]
) -> None:
    chance, kills = random.Random(35), 0
    while kills < NODE_KILLS:
        posts.effects.unlink(missing_ok=True)

        def kill() -> None:
            cluster.kill_node(chance.randrange(len(cluster.nodes)))
            cluster.add_node()

        run_id = run_during(posts, chance.randrange(1, AGENTS), kill)
        kills += 1
        record_property("row 35", f"node {kills} killed: {posts.check(run_id)}")


def test_a_run_goes_on_though_the_head_is_restarted(
    cluster: LocalCluster, posts: Posts, record_property: Callable[..., None]
) -> None:
    run_id = run_during(posts, AGENTS // 2, partial(cluster.restart_head, after_s=5))
    record_property("row 35", f"head restarted: {posts.check(run_id)}")


def test_a_node_that_was_cut_off_repeats_nothing_when_it_comes_back(
    cluster: LocalCluster, posts: Posts, record_property: Callable[..., None]
) -> None:
    frozen: list[int] = []
    # The run ends without the node: its agents go on elsewhere once its lease is over.
    run_id = run_during(posts, AGENTS // 2, lambda: frozen.extend(cluster.freeze(0)))
    thaw(frozen)
    time.sleep(2)  # what wakes may try to go on; its appends are refused
    record_property("row 35", f"a node cut off: {posts.check(run_id)}")
    cluster.kill_node(0)
    cluster.add_node()
