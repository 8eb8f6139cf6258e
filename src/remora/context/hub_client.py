"""The Pull Hook's end: where a context manager asks for fresh facts about code nodes."""

from __future__ import annotations

from typing import Any


class HubClientStub:
    """A Hub that knows nothing, for when there is none."""

    async def get_context(self, node_ids: list[str]) -> dict[str, Any]:
        """No facts."""
        return {}

    async def health_check(self) -> bool:
        """No Hub answers."""
        return False


_STUB = HubClientStub()


def get_hub_client() -> HubClientStub:
    """The Hub to ask: the stub, until there is an index of the code."""
    return _STUB
