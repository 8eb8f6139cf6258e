"""All four bundled agents, end to end: real tools, real files, real streams; and one of them with the real model."""

from __future__ import annotations

import ast
import asyncio
from collections import Counter
from pathlib import Path

import pytest

import remora
from inference.real import smollm2
from projects import copy_shop
from remora.app import Project
from remora.events import ModelRequestEvent, ModelResponseEvent
from remora.ports import AgentResult
from remora.sandbox import probe


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    return copy_shop(tmp_path / "shop")


def analyzed(project: Project, path: Path, *operations: str) -> list[AgentResult]:
    return asyncio.run(project.runs.analyze([path], operations))


def test_the_four_agents_leave_code_that_parses_and_streams_that_verify(shop: Path) -> None:
    if probe().applies == "none":
        pytest.skip("no OS sandbox works here, so the `test` agent cannot run tests")
    before = {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()}
    project = remora.open_project(shop, {"server.server": "scripted", "event_stream.sync": "off"})
    results = analyzed(project, shop / "shop" / "report.py", "lint", "docstring", "test", "sample_data")
    words = Counter((result.operation, result.verdict) for result in results)
    assert words["lint", "clean"] >= 1
    assert words["docstring", "written"] + words["docstring", "unchanged"] == 2
    assert words["sample_data", "written"] + words["sample_data", "unchanged"] == 2
    assert {verdict for operation, verdict in words if operation == "test"} <= {"kept", "unchanged", "discarded"}
    assert all(result.largest_prompt <= 1000 for result in results)
    assert {path: path.read_bytes() for path in before} == before
    assert not [report for report in project.library.verify() if report.problem]

    accepted = asyncio.run(project.review.accept())
    assert not [item.conflict for item in accepted if item.conflict]
    for file in shop.rglob("*.py"):
        ast.parse(file.read_text())
    assert (shop / "shop" / "report.py").read_bytes() != before[shop / "shop" / "report.py"]


@pytest.mark.faults
def test_the_embedded_model_runs_an_agent_within_the_limit_by_its_own_count(shop: Path) -> None:
    settings = {"server.server": "embedded", "server.gguf": smollm2(), "runner.max_turns": 2}
    project = remora.open_project(shop, settings | {"event_stream.sync": "off"})
    (shop / "small.py").write_text("import os\n")
    results = analyzed(project, shop / "small.py", "lint")
    events = list(project.library.events(results[0].agent_id))
    receipts = [event for event in events if isinstance(event, ModelRequestEvent)]
    replies = [event for event in events if isinstance(event, ModelResponseEvent)]
    assert receipts
    assert all(event.counter["exact"] for event in receipts)
    assert all(event.calls or event.error for event in replies)
    for receipt, reply in zip(receipts, replies, strict=False):
        assert reply.usage["prompt_tokens"] <= receipt.tokens["total"] <= 1000
    assert events[-1].type == "agent_end"
