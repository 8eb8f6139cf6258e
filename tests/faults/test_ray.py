"""Row 35: workers of a Ray cluster are killed at any moment; every agent ends once."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postgres import Server
from ray_cluster import PATIENT, children
from remora.app import Project, make_store, open_project
from remora.events import AgentEndEvent, AgentFinishedEvent, NoticeEvent, RunEndEvent
from remora.trace import read_events

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("ignore")]  # ray leaves files and processes open
ray = pytest.importorskip("ray", reason="row 35: ray is not installed")
SHOP = Path(__file__).parents[2] / "examples" / "shop"
KILLS = int(os.environ.get("REMORA_RAY_KILLS", "50"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PATIENT.items():
            patch.setenv(name, value)
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


def workers() -> list[int]:
    """The processes of our actors. Another test may have a cluster of its own."""
    found = []
    for pid in children(os.getpid()):
        try:
            if b"NodeWorker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


class Killer:
    """Kills a worker at random moments until it is stopped or has killed enough."""

    def __init__(self, most: int, chance: random.Random) -> None:
        self._most = most
        self._chance = chance
        self._stop = threading.Event()
        self.kills = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while self.kills < self._most and not self._stop.wait(self._chance.uniform(0.2, 4.0)):
            for pid in workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                self.kills += 1


def analyze(project: Project, path: Path, kills: int, seed: int) -> tuple[str, int]:
    plan = project.runs.plan([path], ["lint"])

    async def run() -> None:
        async for _ in project.runs.run(plan):
            pass

    with Killer(kills, random.Random(seed)) as killer:
        asyncio.run(run())
    return plan.run_id, killer.kills


@pytest.mark.parametrize("kind", ["postgres", "files"])
def test_every_agent_ends_once_though_its_worker_is_killed(
    cluster: None, postgres: Server, tmp_path: Path, kind: str, record_property: Callable[..., None]
) -> None:
    shop = Path(shutil.copytree(SHOP, tmp_path / "shop", ignore=shutil.ignore_patterns(".agentfs", "__pycache__")))
    store = postgres.new_url() if kind == "postgres" else None
    if store:
        make_store(store)
    kills, seed = 0, 35
    while kills < KILLS // 2:
        project = open_project(shop, {"engine.name": "ray"}, state_dir=store)
        run_id, more = analyze(project, shop / "shop", min(6, KILLS - kills), seed)
        kills, seed = kills + max(more, 1), seed + 1
        check(project, run_id)
    record_property("row 35", f"{kills} workers killed, streams in {kind}: every agent ended once, all verify")


def check(project: Project, run_id: str) -> None:
    library = project.library
    events = list(read_events(library.find(run_id)))
    finished = Counter(event.agent_id for event in events if isinstance(event, AgentFinishedEvent))
    assert set(finished.values()) == {1}
    assert [event.outcome for event in events if isinstance(event, RunEndEvent)] == ["finished"]
    for agent_id in finished:
        assert sum(isinstance(event, AgentEndEvent) for event in library.events(agent_id)) == 1
    assert [event.code for event in events if isinstance(event, NoticeEvent)].count("placement") == 1
    assert not library.verify().damaged


def test_a_run_that_is_stopped_seals_what_had_begun(cluster: None, tmp_path: Path) -> None:
    shop = Path(shutil.copytree(SHOP, tmp_path / "shop", ignore=shutil.ignore_patterns(".agentfs", "__pycache__")))
    project = open_project(shop, {"engine.name": "ray"})
    plan = project.runs.plan([shop / "shop"], ["lint"])

    async def run() -> None:
        results = project.runs.run(plan)
        await anext(results)
        await results.aclose()

    asyncio.run(run())
    events = list(read_events(project.library.find(plan.run_id)))
    assert [event.outcome for event in events if isinstance(event, RunEndEvent)] == ["cancelled"]
    assert all(info.sealed for info in project.library.agents())
    assert 1 <= len(project.library.agents()) < len(plan.jobs)
