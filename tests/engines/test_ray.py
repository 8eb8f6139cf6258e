"""A small run on real Ray, where its wheel is installed. Faults at random moments: `make test-fleet`."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from ray_cluster import PATIENT
from ray_host import open_echo_host
from remora.engines import Placement, open_ray_engine
from remora.nodes import CodeNode, LineRange, NodeType
from remora.values import AgentResult, Job

pytestmark = pytest.mark.filterwarnings("ignore")  # ray leaves files and processes open
ray = pytest.importorskip("ray", reason="ray is not installed: no small run on it")
LINES = LineRange(first=1, last=1)


def job(agent_id: str, operation: str) -> Job:
    node = CodeNode(
        node_id=f"a.py:{agent_id}",
        node_type=NodeType.FUNCTION,
        name=agent_id,
        file_path=Path("a.py"),
        lines=LINES,
        owned=(LINES,),
        text="",
    )
    return Job("R", agent_id, operation, node)


async def run_all(folder: Path, jobs: list[Job]) -> tuple[dict[str, AgentResult], Placement]:
    async with open_ray_engine(open_echo_host, lambda: str(folder), sources=b"packed", address="", at_once=2) as engine:
        return {result.agent_id: result async for result in engine.run(jobs)}, engine.placed


def test_ray_runs_every_agent_once_and_resumes_those_of_a_lost_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (PATIENT | {"PYTHONPATH": str(Path(__file__).parents[1])}).items():
        monkeypatch.setenv(name, value)
    jobs = [job("A", "work"), job("B", "fail"), job("C", "work"), job("D", "work"), job("E", "die")]
    results, placed = asyncio.run(run_all(tmp_path, jobs))
    asked = Counter((tmp_path / "asked").read_text().splitlines())
    assert set(results) == {"A", "B", "C", "D", "E"}
    assert results["E"].summary == "resumed=True" and asked["E False"] == asked["E True"] == 1
    assert (results["B"].outcome, results["B"].reason) == ("error", "AgentError") and asked["B False"] == 1
    assert set(asked.values()) == {1}, "an agent was repeated"
    assert "E" in placed.moved and {agent for ran in placed.agents.values() for agent in ran} == set("ACDE")
    assert (tmp_path / "sources").read_bytes() == b"packed" and (tmp_path / "closed").exists()
    assert ray._private.worker._worker_logs_enabled, "Ray stays silent for whoever uses it next in this process"
