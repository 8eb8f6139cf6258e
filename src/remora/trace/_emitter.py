"""Events one at a time: a thin face over a stream."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from remora.events import Event, as_event
from remora.ports import Clock
from remora.trace._stream import SyncMode
from remora.trace._writer import FileTrace


class StreamEmitter:
    """Appends each event to the stream `traces/{agent_id}` below `state_dir`; durable once `emit` returns."""

    def __init__(self, state_dir: Path | str, agent_id: str, *, clock: Clock, sync: SyncMode = "always") -> None:
        self.stream_id = f"traces/{agent_id}"
        self._agent_id = agent_id
        self._writer = FileTrace(Path(state_dir), clock=clock, sync=sync)
        self.path = self._writer.path(self.stream_id)

    async def emit(self, event: Event | Mapping[str, Any]) -> Event:
        """The event as recorded, with `seq`, `ts` and `prev`."""
        draft = as_event(event).model_copy(update={"agent_id": self._agent_id})
        (recorded,) = await self._writer.append(self.stream_id, [draft])
        return recorded

    async def close(self) -> None:
        """Let go of the stream."""
        await self._writer.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
