"""`TraceStore`: turns by key, read from the streams through the index."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from remora.events import Event
from remora.ports import BlobStore, Draft, TraceWriter
from remora.trace.index.index import TraceIndex
from remora.trace.index.query import Filter, Hit
from remora.trace.turns.keys import TraceKey, trace_key
from remora.trace.turns.view import Indexing, StoredEntry, TurnView, pair_calls


class TraceStore(TurnView):
    """Appends to streams through `writer` and reads turns from them; `index` finds the events."""

    def __init__(self, writer: TraceWriter, blobs: BlobStore, index: TraceIndex) -> None:
        super().__init__(blobs)
        self._writer = writer
        self._index = index

    async def append(self, stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
        """Record the drafts. They are durable once this returns."""
        return await self._writer.append(stream_id, drafts)

    async def search(self, text: str, wanted: Filter | None = None, *, limit: int = 50) -> list[Hit]:
        """The newest events that match `wanted` and contain every word of `text`. Raises `ConfigError` without one."""
        return await asyncio.to_thread(self._index.search, text, wanted or Filter(), limit=limit)

    async def _read_turn(self, key: TraceKey) -> Sequence[StoredEntry] | None:
        found = await asyncio.to_thread(self._index.turn, key)
        return pair_calls((each.stream_id, each.event) for each in found) if found else None

    async def _list_keys(self, by: Indexing, value: str) -> list[str]:
        wanted = {"run": Filter(run=value), "node": Filter(node=value), "operation": Filter(operation=value)}[by]
        return [trace_key(*key) for key in await asyncio.to_thread(self._index.turns, wanted)]
