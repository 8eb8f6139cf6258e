"""Row 35 on several hosts: power cuts, pulled cables, half-open networks; every agent ends once.

The hosts are namespaces of this machine, set up as the guide says: a database, a head with the project, and nodes that
have nothing but what is installed. The agents post twice each, with effects outside. No post may happen twice.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hosts import network
from ray_cluster import Posts, make_project
from ray_hosts import BIN, TESTS, Fleet
from remora.app import open_project

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("ignore")]  # ray leaves files and processes open
pytest.importorskip("ray", reason="row 35: ray is not installed")
SHOP = Path(__file__).parents[2] / "examples" / "shop"
AGENTS = int(os.environ.get("REMORA_RAY_AGENTS", "24"))
POWER_CUTS = int(os.environ.get("REMORA_RAY_POWER_CUTS", "2"))
SHORT_S = 20.0
"""A cut that everybody waits out: shorter than a lease and than Ray's patience."""
RUN_S = 600.0
WAIT_S = 1.0
"""How long each tool of an agent takes."""


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that only the head sees: the project, and what its user trusts."""
    return tmp_path_factory.mktemp("private")


@pytest.fixture(scope="module")
def fleet(private: Path) -> Iterator[Fleet]:
    with network() as built:
        found = Fleet(built, [private])
        try:
            yield found
        finally:
            found.close()


@pytest.fixture
def posts(fleet: Fleet, private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Posts:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(private / "config"))
    root = private / tmp_path.name
    make_project(root, tmp_path / "effects", agents=AGENTS, wait_s=WAIT_S)
    return Posts(open_project(root, state_dir=fleet.own_url()), root / "a.py", tmp_path / "effects")


def run_during(fleet: Fleet, posts: Posts, fault: Callable[[], None], moment: int = AGENTS // 2) -> str:
    """Run all agents on the cluster, from its head; the fault happens when there are so many effects."""
    root = posts.file.parent
    config = f"REMORA_CONFIG_DIR={root.parent / 'config'}"
    running = fleet.start("env", config, sys.executable, TESTS / "ray_hosts.py", root, fleet.url("ci"))
    try:
        while posts.count() < moment and running.poll() is None:
            time.sleep(0.05)
        assert running.poll() is None, running.communicate()[0]
        fault()
        said, _ = running.communicate(timeout=RUN_S)
    finally:
        running.kill()
    assert running.returncode == 0, said
    return said.split()[-2]


def test_a_repository_is_analyzed_on_other_hosts_with_commands_alone(fleet: Fleet, private: Path) -> None:
    """What a user types, with the roles of the guide. The nodes do not see the project."""
    ignored = shutil.ignore_patterns(".agentfs", "__pycache__")
    shop = Path(shutil.copytree(SHOP, private / "shop", ignore=ignored))
    store, viewer = ("--store", fleet.url("ci")), ("--store", fleet.url("viewer"))
    engine = ("--engine", "ray", "--address", "auto", "--policy", "scripted")
    done = subprocess.run(
        fleet.head.command(BIN / "remora", "analyze", shop / "shop", "-o", "lint", *engine, *store),
        env=fleet.environment(fleet.head),
        capture_output=True,
        text=True,
        cwd=shop,
    )
    assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr, done.stdout + done.stderr
    ran = re.search(r"ray: (.*)", done.stderr)
    # A node whose worker is late may find nothing left to do.
    assert ran and set(re.findall(r"(\w+):\d+ ran", ran[1])) <= {host.name for host in fleet.nodes}, done.stderr
    assert "open run, 26 sealed" in fleet.call("remora", "trace", "verify", *viewer)


def test_every_agent_ends_once_though_hosts_lose_power(
    fleet: Fleet, posts: Posts, record_property: Callable[..., None]
) -> None:
    for _ in range(POWER_CUTS):

        def cut() -> None:
            fleet.nodes.pop(0).kill()
            fleet.add_node()

        posts.effects.unlink(missing_ok=True)
        run_id = run_during(fleet, posts, cut)
        record_property("row 35", f"a host lost power: {posts.check(run_id)}")


def test_a_run_goes_on_though_a_cable_was_pulled_for_a_while(
    fleet: Fleet, posts: Posts, record_property: Callable[..., None]
) -> None:
    def pull() -> None:
        fleet.nodes[0].unplug()
        time.sleep(SHORT_S)
        fleet.nodes[0].plug()

    run_id = run_during(fleet, posts, pull)
    record_property("row 35", f"a cable pulled for {SHORT_S:g} s: {posts.check(run_id, some_moved=False)}")


def test_a_host_that_was_cut_off_repeats_nothing_when_it_comes_back(
    fleet: Fleet, posts: Posts, record_property: Callable[..., None]
) -> None:
    host = fleet.nodes.pop(0)
    run_id = run_during(fleet, posts, host.unplug)
    host.plug()
    time.sleep(5)  # what comes back may try to go on; its appends are refused
    record_property("row 35", f"a host cut off: {posts.check(run_id)}")
    host.kill()
    fleet.add_node()


def test_a_host_that_loses_only_the_head_writes_nothing_twice(
    fleet: Fleet, posts: Posts, record_property: Callable[..., None]
) -> None:
    """It still reaches the database, and its agents go on until Ray ends them."""
    host = fleet.nodes.pop(0)
    run_id = run_during(fleet, posts, lambda: host.lose(fleet.head))
    record_property("row 35", f"a host without the head: {posts.check(run_id)}")
    host.kill()
    fleet.add_node()


def test_agents_of_a_host_that_loses_only_the_database_go_on_elsewhere(
    fleet: Fleet, posts: Posts, record_property: Callable[..., None]
) -> None:
    host = fleet.nodes.pop(0)
    run_id = run_during(fleet, posts, lambda: host.lose(fleet.database))
    record_property("row 35", f"a host without the database: {posts.check(run_id)}")
    host.kill()
    fleet.add_node()


@pytest.mark.parametrize("which", ["database", "head"])
def test_everybody_waits_for_the_database_and_the_head(
    fleet: Fleet, posts: Posts, record_property: Callable[..., None], which: str
) -> None:
    host = getattr(fleet, which)

    def pull() -> None:
        host.unplug()
        time.sleep(SHORT_S)
        host.plug()

    run_id = run_during(fleet, posts, pull)
    record_property("row 35", f"the {which} cut off for {SHORT_S:g} s: {posts.check(run_id, some_moved=False)}")


def test_a_slow_cable_only_takes_longer(fleet: Fleet, posts: Posts, record_property: Callable[..., None]) -> None:
    host = fleet.nodes.pop(0)
    run_id = run_during(fleet, posts, lambda: host.slow("256kbit"))
    record_property("row 35", f"a host at 256 kbit/s: {posts.check(run_id, some_moved=False)}")
    host.kill()
    fleet.add_node()
