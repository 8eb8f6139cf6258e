"""The Short Track: the packet, its fold and its budget. Names are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "ContextManager": "manager",
    "DecisionPacket": "models",
    "HubClientStub": "hub_client",
    "KnowledgeEntry": "models",
    "PacketBuilder": "builder",
    "RecentAction": "models",
    "get_hub_client": "hub_client",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
