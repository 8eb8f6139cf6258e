"""`TraceStore`: the specification's view of the Long Track, entries by key.

    trace:{run_id}:{operation}:{node_id}:{turn}     the tool calls of one turn

What is appended goes into the stream; what is read comes from the stream. The index only says where.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from remora.errors import TraceNotFound
from remora.events import BlobRef, Event, PacketDelta, ToolCallEvent, ToolResultEvent, UnreadableDelta, unpack
from remora.ports import BlobStore, Draft, TraceWriter, blob_limit
from remora.trace.index.index import TraceIndex
from remora.trace.index.query import Filter, Hit
from remora.trace.turns.keys import parse_key, trace_key


@dataclass(frozen=True)
class TraceEntry:
    """One tool call, with everything that came out of it."""

    turn: int
    timestamp: str
    """Of the result; of the call, if there is no result."""
    tool: str
    args: dict[str, Any] = field(default_factory=dict)
    raw_output: Any = None
    parsed_output: Any = None
    packet_delta: dict[str, Any] | None = None


class TraceStore:
    """Entries by key over streams that `writer` writes, `blobs` that they name, and an `index` of them."""

    def __init__(self, writer: TraceWriter, blobs: BlobStore, index: TraceIndex) -> None:
        self._writer = writer
        self._blobs = blobs
        self._index = index

    async def append(self, stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
        """The drafts as recorded, durable once this returns."""
        return await self._writer.append(stream_id, drafts)

    async def get(self, key: str) -> list[TraceEntry]:
        """The tool calls of one turn, in order. Raises `ConfigError` for what is no key, `TraceNotFound`."""
        found = await asyncio.to_thread(self._index.turn, parse_key(key))
        if not found:
            raise TraceNotFound(f"No stream has the turn `{key}`")
        entries = entries_of((each.stream_id, each.event) for each in found)
        return [await with_raw(entry, reference, self._blobs) for entry, reference in entries]

    async def list_by_run(self, run_id: str) -> list[str]:
        """The keys of the run's turns in which a tool was called."""
        return await self._keys(Filter(run=run_id))

    async def list_by_node(self, node_id: str) -> list[str]:
        """The keys of the node's turns in which a tool was called."""
        return await self._keys(Filter(node=node_id))

    async def list_by_operation(self, operation: str) -> list[str]:
        """The keys of the operation's turns in which a tool was called."""
        return await self._keys(Filter(operation=operation))

    async def search(self, text: str, wanted: Filter | None = None, *, limit: int = 50) -> list[Hit]:
        """The newest wanted events that hold every word of `text`. Raises `ConfigError` if there is no word in it."""
        return await asyncio.to_thread(self._index.search, text, wanted or Filter(), limit=limit)

    async def _keys(self, wanted: Filter) -> list[str]:
        return [trace_key(*key) for key in await asyncio.to_thread(self._index.turns, wanted)]


async def with_raw(entry: TraceEntry, reference: BlobRef | None, blobs: BlobStore) -> TraceEntry:
    """The entry with its raw output, which `reference` says where to find. Raises `TraceError` if it is gone."""
    if reference is None:
        return entry
    data = await blobs.get(reference.blob, limit=blob_limit(reference))
    return replace(entry, raw_output=unpack(data, reference.encoding))


def entries_of(events: Iterable[tuple[str, Event]]) -> list[tuple[TraceEntry, BlobRef | None]]:
    """The tool calls among the events, in order, each with the reference to its raw output where that is in a blob."""
    return [(_entry(call, result), result.raw_ref if result else None) for call, result in _calls(events)]


def _entry(call: ToolCallEvent | None, result: ToolResultEvent | None) -> TraceEntry:
    last = result or call
    assert last is not None  # noqa: S101 (one of them made the entry)
    return TraceEntry(
        turn=last.turn,
        timestamp=last.ts,
        tool=last.tool,
        args=call.args if call else {},
        raw_output=result.raw if result else None,
        parsed_output=result.parsed if result else None,
        packet_delta=_plain(result.delta) if result else None,
    )


def _calls(events: Iterable[tuple[str, Event]]) -> list[tuple[ToolCallEvent | None, ToolResultEvent | None]]:
    """Calls with their results, in order of the calls; a result without a call stands for itself."""
    pairs: list[tuple[ToolCallEvent | None, ToolResultEvent | None]] = []
    waiting: dict[tuple[str, str], int] = {}
    for stream_id, event in events:
        if isinstance(event, ToolCallEvent):
            waiting[stream_id, event.call_id] = len(pairs)
            pairs.append((event, None))
        elif isinstance(event, ToolResultEvent):
            place = waiting.pop((stream_id, event.call_id), None)
            if place is None:
                pairs.append((None, event))
            else:
                pairs[place] = (pairs[place][0], event)
    return pairs


def _plain(delta: PacketDelta | UnreadableDelta | None) -> dict[str, Any] | None:
    if isinstance(delta, UnreadableDelta):
        return delta.stored if isinstance(delta.stored, dict) else {"unreadable": delta.stored}
    return delta.model_dump(mode="json", exclude_defaults=True) if delta else None
