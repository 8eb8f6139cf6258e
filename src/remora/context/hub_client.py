"""The Pull Hook's end: where a context manager asks for fresh facts about code nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remora.ports import HubClient


class HubClientStub:
    """A Hub that knows nothing, for when there is none."""

    async def get_context(self, node_ids: list[str]) -> dict[str, Any]:
        """No facts."""
        return {}

    async def health_check(self) -> bool:
        """No Hub answers."""
        return False


_STUB = HubClientStub()


def get_hub_client(start: Path | str = ".") -> HubClient:
    """The Hub of the project around `start`, where it has an index; else the stub."""
    from remora.app import hub_around

    return hub_around(Path(start)) or _STUB
