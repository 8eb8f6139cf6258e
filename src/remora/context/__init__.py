"""The Short Track: the packet, its fold and its budget. Names are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remora._lazy import lazy_names

if TYPE_CHECKING:
    from remora.context.builder import PacketBuilder
    from remora.context.hub_client import HubClientStub, get_hub_client
    from remora.context.manager import ContextManager
    from remora.context.models import DecisionPacket, KnowledgeEntry, RecentAction

__all__ = [
    "ContextManager",
    "DecisionPacket",
    "HubClientStub",
    "KnowledgeEntry",
    "PacketBuilder",
    "RecentAction",
    "get_hub_client",
]

_MODULES = {
    "builder": "PacketBuilder",
    "hub_client": "HubClientStub get_hub_client",
    "manager": "ContextManager",
    "models": "DecisionPacket KnowledgeEntry RecentAction",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
