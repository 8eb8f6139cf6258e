"""Hub clients for the Pull Hook, which fetches fresh facts about code nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remora.ports import HubClient


class HubClientStub:
    """A client without a Hub: it has no facts."""

    async def get_context(self, node_ids: list[str]) -> dict[str, Any]:
        """Return no facts."""
        return {}

    async def health_check(self) -> bool:
        """Return False: there is no Hub."""
        return False


_STUB = HubClientStub()


def get_hub_client(start: Path | str = ".") -> HubClient:
    """The Hub of the project that contains `start` if it has an index, else the stub."""
    from remora.app import hub_around

    return hub_around(Path(start)) or _STUB
