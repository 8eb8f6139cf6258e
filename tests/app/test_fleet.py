"""A node of a fleet: sources that travel, and agents that are resumed there. No cluster is needed for these."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import io
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cutting_proxy import CuttingProxy
from postgres import Server
from projects import copy_shop
from ray_cluster import make_project
from remora.app import SystemClock, _fleet, make_store, open_project
from remora.app._fleet import Described, Fetch, describe_placement, open_node, pack_sources, unpack_sources
from remora.cli._analyze import engine_flags
from remora.engines import FleetEngine, Placement, Workers
from remora.errors import ConfigError, MissingExtra, TraceFenced
from remora.events import AgentEndEvent, AgentStartEvent, Event, NoticeEvent
from remora.ports import AgentResult, Draft, Job
from remora.trace import PostgresTrace, parse_address


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CACHE_DIR", str(tmp_path / "cache"))
    return copy_shop(tmp_path / "shop")


def sent(sources: bytes) -> Fetch:
    """What fetches these sources on a node."""

    async def fetch() -> bytes:
        return sources

    return fetch


def unpack(sources: bytes, digest: str = "") -> Path:
    return asyncio.run(unpack_sources(digest or hashlib.sha256(sources).hexdigest(), sent(sources)))


def test_sources_arrive_as_they_were_and_are_unpacked_once(shop: Path) -> None:
    (shop / "shop" / "cart.py").chmod(0o775)
    (shop / ".gitignore").write_text("secret.txt\n")
    (shop / "secret.txt").write_text("not for others")
    (shop / "link.py").symlink_to("/etc/passwd")
    project = open_project(shop)
    packed = asyncio.run(pack_sources(project))
    assert packed == asyncio.run(pack_sources(project))
    place = unpack(packed)
    assert (place / "shop" / "cart.py").read_bytes() == (shop / "shop" / "cart.py").read_bytes()
    assert (place / "shop" / "cart.py").stat().st_mode & 0o777 == 0o775, "what is a program stays one"
    assert not (place / "secret.txt").exists() and not (place / "link.py").exists()
    (place / "mark").touch()
    assert (unpack(packed) / "mark").exists()
    with pytest.raises(ConfigError, match="not those that were sent"):
        unpack(packed, "0" * 64)


def test_sources_are_unpacked_also_by_a_python_whose_tarfile_has_no_filters(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.11.2, as in Debian 12."""

    def extractall(
        self: tarfile.TarFile, path: str = ".", members: object = None, *, numeric_owner: bool = False
    ) -> None:
        raise AssertionError("it would follow links and absolute paths")

    monkeypatch.setattr(tarfile.TarFile, "extractall", extractall)
    place = unpack(asyncio.run(pack_sources(open_project(shop))))
    assert (place / "shop" / "cart.py").read_bytes() == (shop / "shop" / "cart.py").read_bytes()


@pytest.mark.parametrize("kind", ["/etc/x", "../x", "shop/../../x", "link", "folder"])
def test_sources_with_anything_but_files_below_the_project_are_refused(shop: Path, kind: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo(kind)
        entry.type, entry.linkname = (
            {"link": tarfile.SYMTYPE, "folder": tarfile.DIRTYPE}.get(kind, tarfile.REGTYPE),
            "/",
        )
        archive.addfile(entry)
    with pytest.raises(ConfigError, match="expected only files below the project"):
        unpack(packed.getvalue())
    assert not list((_fleet.cache_dir(os.environ) / "sources").iterdir()), "a part of them is left"


def test_sources_that_a_node_has_do_not_travel_again_and_are_on_disk_before_they_have_a_name(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = asyncio.run(pack_sources(open_project(shop)))
    digest = hashlib.sha256(packed).hexdigest()
    fetched, named = [], []
    place = _fleet.cache_dir(os.environ) / "sources" / digest[:32]

    async def fetch() -> bytes:
        fetched.append(digest)
        return packed

    monkeypatch.setattr(os, "sync", lambda: named.append(place.exists()))
    for _ in range(3):
        assert asyncio.run(unpack_sources(digest, fetch)) == place
    assert (fetched, named) == ([digest], [False])


def test_sources_that_no_run_has_used_for_a_while_are_deleted(shop: Path) -> None:
    project = open_project(shop)
    first = asyncio.run(pack_sources(project))
    place = unpack(first)
    os.utime(place, (0, 0))
    used = unpack(first)
    assert used == place and place.stat().st_mtime > 0, "it was not used"
    os.utime(place, (0, 0))
    (shop / "new.py").touch()
    second = asyncio.run(pack_sources(project))
    other = unpack(second)
    assert not place.exists() and other.is_dir()


def test_a_node_on_another_machine_trusts_what_the_process_with_the_project_trusts(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMORA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    root = tmp_path / "project"
    make_project(root, tmp_path / "effects", agents=1, wait_s=0)
    project = open_project(root, {"server.server": "scripted"}, state_dir=postgres.new_url())
    plan = project.runs.plan([root / "a.py"], ["poster"])
    (agent,) = project.agents.load(["poster"]).values()
    sources = asyncio.run(pack_sources(project))
    digest = hashlib.sha256(sources).hexdigest()
    described = Described("elsewhere", "/nowhere", "/nowhere", project.config, plan.operations, digest)
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "of another machine"))

    async def work(described: Described) -> AgentResult:
        async with open_node(described, sent(sources)) as host:
            return await host.execute(plan.jobs[0], resumed=False)

    with pytest.raises(ConfigError, match="needs trust"):
        asyncio.run(work(described))
    result = asyncio.run(work(replace(described, trusted=frozenset({agent.files.digest}))))
    assert result.outcome == "success"


def test_a_node_begins_no_agent_when_the_time_of_the_run_is_over_and_ends_those_that_had_begun(
    shop: Path, postgres: Server
) -> None:
    project = open_project(shop, state_dir=postgres.new_url())
    plan = project.runs.plan([shop / "shop" / "pricing.py"], ["lint"])
    begun, other = plan.jobs[:2]
    runner = project.config.runner.model_copy(update={"total_deadline_s": 0.001})
    late = project.config.model_copy(update={"runner": runner})

    async def work() -> tuple[AgentResult, AgentResult]:
        sources = await pack_sources(project)
        digest = hashlib.sha256(sources).hexdigest()
        async with project.writer() as writer:
            await writer.append(f"traces/{begun.agent_id}", [AgentStartEvent(format=1, agent_id=begun.agent_id)])
        described = Described("elsewhere", "/nowhere", "/nowhere", late, plan.operations, digest)
        async with open_node(described, sent(sources)) as host:
            return await host.execute(begun, resumed=True), await host.execute(other, resumed=False)

    ended, not_begun = asyncio.run(work())
    assert (not_begun.outcome, not_begun.reason) == ("cancelled", "deadline")
    assert not project.library.files([f"traces/{other.agent_id}"])
    assert list(project.library.events(ended.agent_id))[-1].type == "agent_end"


def test_a_folder_with_the_same_path_on_another_machine_is_another_folder(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = _fleet.identify(shop)
    assert here and here == _fleet.identify(shop)
    assert _fleet.identify(shop / "nowhere") == ""
    (tmp_path / "boot_id").write_text("another machine")
    monkeypatch.setattr(_fleet, "BOOT_ID", tmp_path / "boot_id")
    assert _fleet.identify(shop) != here


def test_a_node_without_the_project_runs_and_resumes_agents_into_the_store(shop: Path, postgres: Server) -> None:
    url = postgres.new_url()
    project = open_project(shop, state_dir=url)
    plan = project.runs.plan([shop / "shop" / "pricing.py"], ["lint"])
    job = plan.jobs[0]

    async def work() -> None:
        sources = await pack_sources(project)
        digest = hashlib.sha256(sources).hexdigest()
        described = Described("elsewhere", "/nowhere", "/nowhere", project.config, plan.operations, digest)
        async with open_node(described, sent(sources)) as host:
            first = await host.execute(job, resumed=False)
        async with open_node(described, sent(sources)) as host:
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


def fence(url: str, agent_id: str) -> None:
    """Another writer takes the agent's stream over and leaves it, as while this one was stopped."""
    import psycopg

    address = parse_address(url)
    with psycopg.connect(address.url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {address.schema}")
        sql = "UPDATE streams SET epoch = epoch + 1, writer = NULL WHERE stream_id = %s"
        connection.execute(sql, [f"traces/{agent_id}"])


class HostWorker:
    """A worker of the fleet in this process, whose writer is fenced before its n-th append to an agent's stream."""

    def __init__(self, described: Described, sources: bytes, url: str, fenced: Iterator[int]) -> None:
        self._opening = open_node(described, sent(sources))
        self._url = url
        self._fenced = fenced

    async def start(self) -> str:
        self._host = await self._opening.__aenter__()
        return "here:1"

    async def run(self, job: Job, *, resumed: bool) -> AgentResult:
        writer, left = self._host._session.writer, next(self._fenced, 0)
        append = PostgresTrace.append

        async def wake_up_fenced(stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
            nonlocal left
            left -= stream_id == f"traces/{job.agent_id}"
            if left == 0:
                fence(self._url, job.agent_id)
            return await append(writer, stream_id, drafts)  # type: ignore[arg-type]

        writer.append = wake_up_fenced  # type: ignore[method-assign]
        return await self._host.execute(job, resumed=resumed)

    async def touch(self) -> None:
        pass

    async def stop(self) -> None:
        await self._opening.__aexit__(None, None, None)

    def kill(self) -> None:
        pass


@pytest.mark.parametrize("fenced", [[2], [5], [9, 3], [14, 1, 6]])
def test_an_agent_whose_worker_was_fenced_is_over_only_when_its_stream_is(
    shop: Path, postgres: Server, fenced: list[int]
) -> None:
    """What a node does that was stopped, and woken after its stream had been taken over."""
    url = postgres.new_url()
    project = open_project(shop, state_dir=url)
    plan = project.runs.plan([shop / "shop" / "pricing.py"], ["lint"])
    described = Described("elsewhere", "/nowhere", "/nowhere", project.config, plan.operations, "")

    async def work() -> tuple[list[AgentResult], Placement]:
        sources = await pack_sources(project)
        found = replace(described, digest=hashlib.sha256(sources).hexdigest())
        times = iter(fenced)

        class Here:
            async def nodes(self) -> Sequence[str]:
                return ["here"]

            def worker(self, node_id: str) -> HostWorker:
                return HostWorker(found, sources, url, times)

        async with Workers(Here()) as workers:
            engine = FleetEngine(workers, at_once=1)
            return [result async for result in engine.run(plan.jobs[:2])], engine.placed

    results, placed = asyncio.run(work())
    assert [result.outcome for result in results] == ["success", "success"]
    assert placed.moved == [plan.jobs[0].agent_id] * len(fenced)
    for result in results:
        events = list(project.library.events(result.agent_id))
        assert [event.type for event in events].count("agent_end") == 1 and events[-1].type == "agent_end"
    assert not project.library.verify().damaged


async def test_a_stream_that_a_sleeping_worker_opened_and_never_wrote_is_taken_over_after_its_lease(
    shop: Path, postgres: Server
) -> None:
    url = postgres.new_url()
    make_store(url)
    project = open_project(shop, state_dir=url)
    plan = project.runs.plan([shop / "shop" / "pricing.py"], ["lint"])
    job = plan.jobs[0]
    sources = await pack_sources(project)
    digest = hashlib.sha256(sources).hexdigest()
    described = Described("elsewhere", "/nowhere", "/nowhere", project.config, plan.operations, digest)
    proxy = CuttingProxy(postgres.port)
    through = url.replace(f":{postgres.port}/", f":{proxy.port}/") + "&sslmode=disable&gssencmode=disable"
    asleep = PostgresTrace(through, clock=SystemClock(), lease_s=2.0, patience_s=60, attempt_s=60)
    await asleep.claim(f"traces/{job.agent_id}")
    proxy.freeze()
    async with open_node(described, sent(sources)) as host:
        result = await host.execute(job, resumed=True)
    assert (result.outcome, bool(result.head)) == ("success", True)
    proxy.thaw()
    with pytest.raises(TraceFenced):
        await asleep.append(f"traces/{job.agent_id}", [NoticeEvent(code="late")])
    await asleep.aclose()
    proxy.close()


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


def test_an_address_needs_the_engine_that_it_is_for(shop: Path) -> None:
    with pytest.raises(ConfigError, match="`--engine ray`"):
        engine_flags("local", "auto")
    with pytest.raises(ConfigError, match="`auto` names a Ray cluster"):
        open_project(shop, engine_flags(None, "auto")).runs.plan([shop / "shop" / "pricing.py"], ["lint"])
    assert engine_flags("local", None)["engine.address"] == "", "one of the settings is not for this run"


def test_the_run_says_who_did_what_where() -> None:
    event = describe_placement(Placement({"a:1": ["X", "Y"], "b:2": ["Z"]}, ["Y"]), "R")
    assert event is not None
    assert event.message == "ray: a:1 ran 2 agents, b:2 ran 1 agent; 1 agent went on elsewhere after a fault"
    event = describe_placement(Placement({"a:1": ["X"]}, left_out={"c": "no sandbox", "d": "no weights"}), "R")
    assert event is not None
    assert event.message == "ray: a:1 ran 1 agent; 2 nodes could not run agents: no sandbox"
    assert describe_placement(Placement(), "R") is None
    assert _fleet.FREE_S > 30
