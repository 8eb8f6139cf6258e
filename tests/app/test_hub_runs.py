"""A run with the Hub knows what lives in other files; one without does not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import remora
from remora.app import Project
from remora.context.projection import project as fold
from remora.events import Event, HubUpdateEvent, ModelRequestEvent
from remora.trace import read_events

FILES = {
    "remora.yaml": "",
    "shop/__init__.py": "",
    "shop/stock.py": (
        '"""What is there."""\n\n\n'
        "class OutOfStock(Exception):\n"
        '    """There is not enough of it."""\n\n\n'
        "def reserve(sku: str, count: int) -> int:\n"
        '    """Set some aside."""\n'
        "    if count > 3:\n"
        "        raise OutOfStock(sku)\n"
        "    return count\n"
    ),
    "shop/checkout.py": (
        '"""Paying."""\n\n'
        "from shop.stock import reserve\n\n\n"
        "def check_out(skus: list[str]) -> int:\n"
        "    if not skus:\n"
        "        raise ValueError('nothing to pay')\n"
        "    return reserve(skus[0], len(skus))\n"
    ),
    "shop/app.py": "from shop.checkout import check_out\n\n\ndef main(skus):\n    return check_out(skus)\n",
    "tests/test_checkout.py": (
        "from shop.checkout import check_out\n\n\ndef test_paying():\n    assert check_out(['a']) == 1\n"
    ),
}
NODE = "shop/checkout.py:check_out"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "off")
    for path, text in FILES.items():
        place = tmp_path / "project" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "project"


def run(root: Path, operation: str = "docstring", **settings: Any) -> tuple[Project, list[Event]]:
    """The stream of one agent on the node whose answer lives elsewhere."""
    told = {"server.server": "scripted", "runner.memory.packet_size_limit": 4000}
    project = remora.open_project(root, told | {name.replace("__", "."): each for name, each in settings.items()})
    results = asyncio.run(project.runs.analyze([root / "shop/checkout.py"], [operation]))
    (agent,) = [result.agent_id for result in results if result.node_id == NODE]
    return project, list(read_events(project.library.find(agent)))


def first_prompt(project: Project, events: list[Event]) -> str:
    request = next(event for event in events if isinstance(event, ModelRequestEvent))
    return json.dumps(request.messages)


def test_a_run_with_the_hub_has_facts_in_its_prompt_that_one_without_lacks(root: Path) -> None:
    with_it = first_prompt(*run(root))
    without = first_prompt(*run(root, hub__enabled=False))
    for fact in ("raises OutOfStock", "shop/app.py:main", "tests/test_checkout.py:test_paying"):
        assert fact in with_it
        assert fact not in without


def test_facts_are_in_the_stream_with_their_proof_before_they_are_in_a_packet(root: Path) -> None:
    _, events = run(root)
    place = next(n for n, event in enumerate(events) if isinstance(event, HubUpdateEvent))
    update = events[place]
    assert isinstance(update, HubUpdateEvent)
    assert update.nodes == (NODE,)
    assert update.freshness == {NODE: "index"}
    assert {"shop/checkout.py", "shop/stock.py", "shop/app.py", "tests/test_checkout.py"} <= set(update.hashes)
    assert fold(events[:place]).hub_context is None
    assert fold(events[: place + 1]).hub_context
    assert isinstance(events[place + 1], ModelRequestEvent)


def test_what_the_agent_wrote_is_what_the_next_turn_knows(root: Path) -> None:
    _, events = run(root)
    updates = [event for event in events if isinstance(event, HubUpdateEvent)]
    docs = [(update.delta.hub.set[NODE].get("doc", ""), update.freshness[NODE]) for update in updates if update.delta]  # type: ignore[union-attr]
    assert docs[0] == ("", "index")
    assert docs[-1][0]
    assert docs[-1][1] == "workspace"
    assert len(updates) == 2


def test_receipts_of_a_run_with_the_hub_hold(root: Path) -> None:
    from remora.analysis import replay

    project, events = run(root)
    assert replay(events).first_difference is None
    assert {report.problem for report in project.library.verify()} == {None}


def test_a_repository_with_no_index_gets_one_beside_the_run(root: Path) -> None:
    run(root)
    assert (root / ".agentfs" / "hub.db").exists()


def test_a_run_that_only_reads_writes_no_index(root: Path) -> None:
    _, events = run(root, hub__mode="read")
    assert not (root / ".agentfs" / "hub.db").exists()
    assert [event.code for event in events if event.type == "notice"] == ["hub_incomplete"]  # type: ignore[attr-defined]
