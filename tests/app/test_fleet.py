"""A node of a fleet: sources that travel, and agents that are resumed there. No cluster is needed for these."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import shutil
from pathlib import Path

import pytest

from postgres import Server
from remora.app import _fleet, open_project
from remora.app._fleet import Described, describe_placement, open_node, pack_sources, unpack_sources
from remora.cli._analyze import engine_flags
from remora.engines import Placement
from remora.errors import ConfigError, MissingExtra
from remora.events import AgentEndEvent

SHOP = Path(__file__).parents[2] / "examples" / "shop"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CACHE_DIR", str(tmp_path / "cache"))
    return Path(shutil.copytree(SHOP, tmp_path / "shop", ignore=shutil.ignore_patterns(".agentfs", "__pycache__")))


def test_sources_arrive_as_they_were_and_are_unpacked_once(shop: Path) -> None:
    (shop / ".gitignore").write_text("secret.txt\n")
    (shop / "secret.txt").write_text("not for others")
    (shop / "link.py").symlink_to("/etc/passwd")
    project = open_project(shop)
    packed = asyncio.run(pack_sources(project))
    assert packed == asyncio.run(pack_sources(project))
    digest = hashlib.sha256(packed).hexdigest()
    place = unpack_sources(digest, packed)
    assert (place / "shop" / "cart.py").read_bytes() == (shop / "shop" / "cart.py").read_bytes()
    assert not (place / "secret.txt").exists() and not (place / "link.py").exists()
    (place / "mark").touch()
    assert (unpack_sources(digest, packed) / "mark").exists()
    with pytest.raises(ConfigError, match="not those that were sent"):
        unpack_sources("0" * 64, packed)


def test_a_node_without_the_project_runs_and_resumes_agents_into_the_store(shop: Path, postgres: Server) -> None:
    url = postgres.new_url()
    project = open_project(shop, state_dir=url)
    plan = project.runs.plan([shop / "shop" / "pricing.py"], ["lint"])
    job = plan.jobs[0]

    async def work() -> None:
        sources = await pack_sources(project)
        digest = hashlib.sha256(sources).hexdigest()
        described = Described("elsewhere", "/nowhere", "/nowhere", project.config, plan.operations, digest)
        async with open_node(described, sources) as host:
            first = await host.execute(job, resumed=False)
        async with open_node(described, sources) as host:
            again = await host.execute(job, resumed=True)
            other = await host.execute(plan.jobs[1], resumed=True)
        assert (first.outcome, first.head, first.files) == (again.outcome, again.head, again.files)
        assert other.outcome == "success"

    asyncio.run(work())
    library = project.library
    assert [info.outcome for info in library.agents()] == ["success", "success"]
    for info in library.agents():
        assert sum(isinstance(event, AgentEndEvent) for event in library.events(info.agent_id)) == 1
    assert not library.verify().damaged


def test_other_machines_need_a_store_that_all_reach(shop: Path) -> None:
    project = open_project(shop, {"engine.name": "ray", "engine.address": "auto"})
    with pytest.raises(ConfigError, match="need a store that all of them reach"):
        project.runs.plan([shop / "shop" / "pricing.py"], ["lint"])


def test_a_ladder_is_refused_with_ray(shop: Path) -> None:
    settings = {"engine.name": "ray", "escalation": ["scripted", "first-candidate"]}
    with pytest.raises(ConfigError, match="ladder"):
        open_project(shop, settings).runs.plan([shop / "shop" / "pricing.py"], ["lint"])


def test_a_missing_ray_is_said_before_anything_is_planned(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="ray, which runs agents on many machines"):
        open_project(shop, {"engine.name": "ray"}).runs.plan([shop / "shop" / "pricing.py"], ["lint"])


def test_an_address_needs_the_engine_that_it_is_for() -> None:
    with pytest.raises(ConfigError, match="`--engine ray`"):
        engine_flags("local", "auto")


def test_the_run_says_who_did_what_where() -> None:
    event = describe_placement(Placement({"a:1": ["X", "Y"], "b:2": ["Z"]}, ["Y"]), "R")
    assert event is not None
    assert event.message == "ray: a:1 ran 2 agents, b:2 ran 1 agent; 1 agent went on elsewhere after a worker was lost"
    assert describe_placement(Placement(), "R") is None
    assert _fleet.FREE_S > 30
