"""`KVTraceView`: turns by key, stored in a key-value file beside the streams.

{state_dir}/trace.kv

    trace:{run_id}:{operation}:{node_id}:{turn}    the turn's tool calls, by stream
    index:run:{run_id}:{stream}                    the trace keys of the stream's turns in which a tool was called
    index:node:{node_id}:{stream}                  (parts are percent-encoded, as in a trace key)
    index:operation:{operation}:{stream}
    stream:{stream}                                size and times of the stream's file when it was read
    held:{stream}                                  all keys that hold a part of the stream

The file is a view. Each query first copies new turns from the streams and removes those of deleted streams. While
another process is writing the file, the missing part of the answer is read from the streams. Large raw outputs stay in
their blobs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from remora.errors import ConfigError, KVConflict, KVDamaged, KVError, TraceError
from remora.events import BlobRef, Event, from_record
from remora.kv import KVManager, KVTransaction
from remora.ports import BlobStore
from remora.trace.files.reader import read_records
from remora.trace.index.update import scan
from remora.trace.turns.keys import Indexing, TraceKey, quote_part, trace_key
from remora.trace.turns.store import StoredEntry, TraceEntry, TurnView, pair_calls

KV_FILE = "trace.kv"
_CALLS = ("tool_call", "tool_result")
_BATCH = 32
_ATTEMPTS = 3


@dataclass
class _StreamTurns:
    """The turns of one stream, in the form in which the file stores them."""

    turns: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Tool calls by trace key."""
    lists: dict[str, list[str]] = field(default_factory=dict)
    """Trace keys of turns with calls, by the prefix of an index key."""


class KVTraceView(TurnView):
    """Reads the turns of `state_dir` from `trace.kv`, and fills that file from the streams.

    `by` says by what turns can be listed; changing it fills the file again.
    """

    def __init__(
        self, state_dir: Path, blobs: BlobStore, *, by: Collection[Indexing] = ("node", "run", "operation")
    ) -> None:
        super().__init__(blobs)
        self._state_dir = state_dir
        self._by = tuple(sorted(set(by)))
        self._kv = KVManager(state_dir / KV_FILE, durable=False)
        self._checked = False
        self.notices: list[str] = []
        """Why the file was rebuilt, or could not be written."""

    async def catch_up(self, only: Collection[str] | None = None) -> bool:
        """Copy new turns of all streams, or of the `only` ones, into the file. False, with a notice, if that fails."""
        for _ in range(_ATTEMPTS):
            try:
                await self._update(only)
            except KVDamaged as damage:
                await self._discard(damage)
            except KVConflict:
                continue  # another process is copying the same streams
            except KVError as error:
                self._notify(f"The key-value view was not brought up to date: {error.message}")
                return False
            else:
                return True
        return False

    async def aclose(self) -> None:
        """Close the file."""
        await self._kv.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _read_turn(self, key: TraceKey) -> Sequence[StoredEntry] | None:
        found = await self._query(_Query(key=trace_key(*key)))
        return [_load_entry(entry) for stream in sorted(found) for entry in found[stream]] if found else None

    async def _list_keys(self, by: Indexing, value: str) -> list[str]:
        if by not in self._by:
            raise ConfigError(
                f"Turns cannot be listed by {by}: the view is indexed by {', '.join(self._by) or 'nothing'}",
                hint=f"Add `{by}` to `runner.memory.trace_indexing`",
            )
        found = await self._query(_Query(prefix=_index_prefix(by, value)))
        return list(dict.fromkeys(key for stream in sorted(found) for key in found[stream]))

    async def _query(self, query: _Query) -> dict[str, list[Any]]:
        """The answer by stream: from the file for streams that it has as they are now, else from the stream."""
        await self.catch_up()
        try:
            async with self._kv.transaction() as snapshot:
                known = await self._known_streams(snapshot)
                stored = await query.ask_file(snapshot)
        except KVDamaged as damage:
            await self._discard(damage)
            known, stored = {}, {}
        except KVError:
            known, stored = {}, {}
        current = await asyncio.to_thread(_fingerprints, self._state_dir, scan(self._state_dir))
        changed = self._changed(current, known)
        answer = {name: found for name, found in stored.items() if name in current and name not in changed}
        for name in changed:
            found = query.ask_stream(await asyncio.to_thread(_read_stream, self._state_dir, name, self._by))
            if found is not None:
                answer[name] = found
        return answer

    async def _update(self, only: Collection[str] | None) -> None:
        if not self._checked:
            await self._kv.check()
            self._checked = True
        names = scan(self._state_dir) if only is None else only
        current = await asyncio.to_thread(_fingerprints, self._state_dir, names)
        known = await self._known_streams(self._kv, only)
        outdated = [*self._changed(current, known), *(name for name in known if name not in current)]
        for start in range(0, len(outdated), _BATCH):
            async with self._kv.transaction() as change:
                for name in outdated[start : start + _BATCH]:
                    await self._replace(change, name, current.get(name))

    def _changed(self, current: Mapping[str, str], known: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[str]:
        return [name for name, fingerprint in current.items() if known.get(name) != (fingerprint, self._by)]

    async def _known_streams(
        self, keys: KVManager | KVTransaction, only: Collection[str] | None = None
    ) -> dict[str, tuple[str, tuple[str, ...]]]:
        """By stream, the fingerprint of its file and what its turns were indexed by, when it was last read."""
        if only is None:
            found: Iterable[Any] = await keys.scan("stream:")
        else:
            found = (await keys.get_many([f"stream:{name}" for name in only])).values()
        return {each.key.removeprefix("stream:"): (each.value["looks"], tuple(each.value["by"])) for each in found}

    async def _replace(self, change: KVTransaction, name: str, fingerprint: str | None) -> None:
        """Store the stream's turns in place of those stored before; without a fingerprint the stream is deleted."""
        held = await change.get(f"held:{name}") or {"turns": [], "lists": []}
        for key in held["lists"]:
            await change.delete(key)
        stream = _StreamTurns()
        if fingerprint is not None:
            # The fingerprint is older than this read. If the file has grown since, it will be read again.
            stream = await asyncio.to_thread(_read_stream, self._state_dir, name, self._by)
        keys = list(dict.fromkeys([*held["turns"], *stream.turns]))
        stored = await change.get_many(keys)
        for key in keys:
            by_stream = dict(stored[key].value) if key in stored else {}
            by_stream.pop(name, None)
            if key in stream.turns:
                by_stream[name] = stream.turns[key]
            await (change.set(key, by_stream) if by_stream else change.delete(key))
        for prefix, listed in stream.lists.items():
            await change.set(prefix + name, listed)
        if fingerprint is None:
            await change.delete(f"stream:{name}")
            await change.delete(f"held:{name}")
        else:
            await change.set(f"stream:{name}", {"looks": fingerprint, "by": self._by})
            lists = [prefix + name for prefix in stream.lists]
            await change.set(f"held:{name}", {"turns": list(stream.turns), "lists": lists})

    async def _discard(self, damage: KVDamaged) -> None:
        """Delete the damaged file. The next write creates a new one from the streams."""
        self._checked = False
        try:
            aside = await self._kv.set_aside()
        except KVError as error:
            self._notify(f"The key-value view is damaged and cannot be replaced: {error.message}")
            return
        for suffix in ("", "-wal", "-shm"):
            aside.with_name(aside.name + suffix).unlink(missing_ok=True)
        self._notify(f"The key-value view was rebuilt: {damage.problem}")

    def _notify(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


@dataclass(frozen=True)
class _Query:
    """A query for one trace key, or for the lists under the prefix of an index key."""

    key: str = ""
    prefix: str = ""

    async def ask_file(self, kv: KVTransaction) -> dict[str, list[Any]]:
        """The file's answer, by stream."""
        if self.key:
            return dict(await kv.get(self.key) or {})
        return {each.key.removeprefix(self.prefix): each.value for each in await kv.scan(self.prefix)}

    def ask_stream(self, stream: _StreamTurns) -> list[Any] | None:
        """The answer of one stream."""
        return stream.turns.get(self.key) if self.key else stream.lists.get(self.prefix)


def forget_streams(state_dir: Path, blobs: BlobStore, streams: Collection[str]) -> None:
    """Remove deleted streams from the file, if there is one. Blocks; works with and without a running event loop."""

    async def update() -> None:
        async with KVTraceView(state_dir, blobs) as view:
            await view.catch_up(only=streams)

    if streams and (state_dir / KV_FILE).exists():
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, update()).result()


def _read_stream(state_dir: Path, name: str, by: Iterable[str]) -> _StreamTurns:
    turns: dict[TraceKey, list[tuple[str, Event]]] = {}
    with_calls: dict[TraceKey, None] = {}
    for event in _readable_events(state_dir / f"{name}.jsonl"):
        key = TraceKey(event.run_id, event.operation, event.node_id, event.turn)
        turns.setdefault(key, [])
        if event.type in _CALLS:
            turns[key].append((name, event))
            with_calls[key] = None
    stored = {trace_key(*key): [_dump_entry(*each) for each in pair_calls(events)] for key, events in turns.items()}
    return _StreamTurns(stored, _index_lists(with_calls, by))


def _readable_events(path: Path) -> Iterator[Event]:
    """The stream's events up to its first damage, without those whose envelope is invalid."""
    try:
        for record in read_records(path, torn_ok=True):
            try:
                yield from_record(record.fields or {})
            except TraceError:
                continue
    except TraceError:
        return


def _index_lists(keys: Iterable[TraceKey], by: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in keys:
        values = {"run": key.run_id, "node": key.node_id, "operation": key.operation}
        for name in by:
            found.setdefault(_index_prefix(name, values[name]), []).append(trace_key(*key))
    return found


def _index_prefix(by: str, value: str) -> str:
    return f"index:{by}:{quote_part(value)}:"


def _dump_entry(entry: TraceEntry, reference: BlobRef | None) -> dict[str, Any]:
    return asdict(entry) | ({"raw_ref": reference.model_dump(mode="json")} if reference else {})


def _load_entry(stored: Mapping[str, Any]) -> StoredEntry:
    fields = dict(stored)
    reference = fields.pop("raw_ref", None)
    return StoredEntry(TraceEntry(**fields), BlobRef.model_validate(reference) if reference else None)


def _fingerprints(state_dir: Path, names: Iterable[str]) -> dict[str, str]:
    """Inode, size and times of the stream files that exist. The time of a change cannot be set back by `utime`."""
    found = {}
    for name in names:
        try:
            stat = os.stat(state_dir / f"{name}.jsonl")  # noqa: PTH116 (many files)
        except OSError:
            continue
        found[name] = f"{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"
    return found
