"""The specification's view of the Long Track: the tool calls of a turn, by trace key.

`TurnView` has the logic. `TraceStore` reads turns from the streams through the index, `KVTraceView` (in `kv.py`) from a
key-value file.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from remora.errors import TraceNotFound
from remora.events import BlobRef, Event, PacketDelta, ToolCallEvent, ToolResultEvent, UnreadableDelta, unpack
from remora.ports import BlobStore, Draft, TraceWriter, blob_limit
from remora.trace.index.index import TraceIndex
from remora.trace.index.query import Filter, Hit
from remora.trace.turns.keys import Indexing, TraceKey, parse_index_key, parse_key, trace_key


@dataclass(frozen=True)
class TraceEntry:
    """One tool call with its result."""

    turn: int
    timestamp: str
    """Of the result; of the call, if there is no result."""
    tool: str
    args: dict[str, Any] = field(default_factory=dict)
    raw_output: Any = None
    parsed_output: Any = None
    """The value of a text that is JSON; the raw output itself if it has parts."""
    packet_delta: dict[str, Any] | None = None


class StoredEntry(NamedTuple):
    """An entry whose raw output may still be in a blob."""

    entry: TraceEntry
    raw_ref: BlobRef | None


class TurnView(ABC):
    """Reads tool calls by key, and lists keys by run, node or operation. Subclasses say where turns are stored."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def get(self, key: str) -> list[TraceEntry]:
        """The tool calls of one turn, in order. Raises `ConfigError` for an invalid key, `TraceNotFound`."""
        stored = await self._read_turn(parse_key(key))
        if stored is None:
            raise TraceNotFound(f"No stream has the turn `{key}`")
        return [await self._load_raw(*each) for each in stored]

    async def read(self, key: str) -> list[TraceEntry] | list[str]:
        """What the specification's key holds: the tool calls of `trace:…`, or the trace keys of `index:BY:VALUE`.

        Raises `ConfigError` for another key, `TraceNotFound` for a turn that no stream has.
        """
        wanted = parse_index_key(key)
        return await self.get(key) if wanted is None else await self._list_keys(*wanted)

    async def list_by_run(self, run_id: str) -> list[str]:
        """The keys of the run's turns in which a tool was called. Raises `ConfigError` if runs are not indexed."""
        return await self._list_keys("run", run_id)

    async def list_by_node(self, node_id: str) -> list[str]:
        """The keys of the node's turns in which a tool was called. Raises `ConfigError` if nodes are not indexed."""
        return await self._list_keys("node", node_id)

    async def list_by_operation(self, operation: str) -> list[str]:
        """The keys of the operation's turns in which a tool was called. Raises `ConfigError` if not indexed."""
        return await self._list_keys("operation", operation)

    @abstractmethod
    async def _read_turn(self, key: TraceKey) -> Sequence[StoredEntry] | None:
        """The entries of a turn, or None if no stream has the turn."""

    @abstractmethod
    async def _list_keys(self, by: Indexing, value: str) -> list[str]:
        """The keys of the turns with calls whose run, node or operation is `value`, each once."""

    async def _load_raw(self, entry: TraceEntry, reference: BlobRef | None) -> TraceEntry:
        """The entry with its raw output. Raises `TraceError` if the blob is missing or damaged."""
        if reference is not None:
            data = await self._blobs.get(reference.blob, limit=blob_limit(reference))
            entry = replace(entry, raw_output=unpack(data, reference.encoding))
        structured = entry.parsed_output is None and isinstance(entry.raw_output, dict | list)
        return replace(entry, parsed_output=entry.raw_output) if structured else entry


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


def pair_calls(events: Iterable[tuple[str, Event]]) -> list[StoredEntry]:
    """One entry for each tool call among the events of these streams, in order of the calls.

    A result is matched to its call by stream and `call_id`. A result without a call is an entry of its own.
    """
    pairs: list[tuple[ToolCallEvent | None, ToolResultEvent | None]] = []
    unanswered: dict[tuple[str, str], int] = {}
    for stream_id, event in events:
        if isinstance(event, ToolCallEvent):
            unanswered[stream_id, event.call_id] = len(pairs)
            pairs.append((event, None))
        elif isinstance(event, ToolResultEvent):
            position = unanswered.pop((stream_id, event.call_id), None)
            if position is None:
                pairs.append((None, event))
            else:
                pairs[position] = (pairs[position][0], event)
    return [_entry(call, result) for call, result in pairs]


def _entry(call: ToolCallEvent | None, result: ToolResultEvent | None) -> StoredEntry:
    last = result or call
    assert last is not None  # noqa: S101 (every pair has at least one of them)
    entry = TraceEntry(
        turn=last.turn,
        timestamp=last.ts,
        tool=last.tool,
        args=call.args if call else {},
        raw_output=result.raw if result else None,
        parsed_output=result.parsed if result else None,
        packet_delta=_delta_as_dict(result.delta) if result else None,
    )
    return StoredEntry(entry, result.raw_ref if result else None)


def _delta_as_dict(delta: PacketDelta | UnreadableDelta | None) -> dict[str, Any] | None:
    if isinstance(delta, UnreadableDelta):
        return delta.stored if isinstance(delta.stored, dict) else {"unreadable": delta.stored}
    return delta.model_dump(mode="json", exclude_defaults=True) if delta else None
