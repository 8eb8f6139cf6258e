"""The specification's names for the Hub: `get_hub_client` and `refresh_context`."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora.context import ContextManager, HubClientStub, get_hub_client
from remora.hub import HubClient
from remora.hub.client import refresh_context
from remora.memory.schemas import DecisionPacket as PlanPacket
from remora.trace import claim

TAKE = "shop/stock.py:take"


async def test_a_project_with_an_index_has_a_real_client(
    project: Path, hub: HubClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(project / "shop")
    (project / "remora.yaml").write_text("")
    assert isinstance(get_hub_client(), HubClientStub)  # an index that could have come with the project
    claim(project / ".agentfs")
    client = get_hub_client()
    assert isinstance(client, HubClient)
    assert await client.health_check()
    assert (await client.get_context([TAKE]))[TAKE]["doc"] == "Take some."
    assert isinstance(get_hub_client(tmp_path / "nowhere"), HubClientStub)
    assert isinstance(get_hub_client(tmp_path), HubClientStub)


async def test_the_guides_manager_pulls_from_it(hub: HubClient) -> None:
    manager = ContextManager({"agent_id": "a", "goal": "g", "operation": "lint", "node_id": TAKE})
    manager.set_hub_client(hub)
    await manager.pull_hub_context()
    assert manager.packet.hub_context is not None
    assert manager.packet.hub_context[TAKE]["raises"] == ["OutOfStock"]
    assert manager.packet.hub_freshness is not None


def test_the_plans_hook_puts_signatures_of_named_nodes_into_knowledge(hub: HubClient) -> None:
    manager = ContextManager({"agent_id": "a", "goal": "g", "operation": "lint", "node_id": TAKE})
    manager.apply_event({"type": "tool_result", "data": {"summary": "looked at shop/cart.py:Cart.add"}})
    manager.run_middleware([lambda packet: refresh_context(packet, hub)])
    known = {key: entry.value for key, entry in manager.packet.knowledge.items()}
    assert known == {TAKE: "def take(count: int) -> int Take some.", "shop/cart.py:Cart.add": "def add(self, count)"}


def test_the_plans_own_packet_works_too(hub: HubClient) -> None:
    packet = PlanPacket(goal="g", recent_history=[f"Read {TAKE}", "Read shop/gone.py:f"])
    refresh_context(packet, hub)
    assert packet.knowledge == {TAKE: "def take(count: int) -> int Take some."}


def test_without_a_hub_the_hook_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    packet = PlanPacket(goal="g", recent_history=[f"Read {TAKE}"])
    refresh_context(packet)
    assert packet.knowledge == {}
