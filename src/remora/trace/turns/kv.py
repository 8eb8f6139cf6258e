"""`KVTraceView`: the specification's keys in a key-value file beside the streams.

{state_dir}/trace.kv

    trace:{run_id}:{operation}:{node_id}:{turn}    the turn's tool calls, by the stream that holds them
    index:run:{run_id}:{stream}                    the trace keys of one stream's turns in which a tool was called
    index:node:{node_id}:{stream}                  (parts are percent-encoded, as in a trace key)
    index:operation:{operation}:{stream}
    stream:{stream}                                how the stream's file looked when it was read
    held:{stream}                                  all keys that it has a part in

It is a view. A question first takes in what the streams hold beyond it, and lets go of what they hold no more; where
another process is just writing it, the rest of the answer comes from the streams. A large raw output stays in its blob.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote

from remora.errors import ConfigError, KVConflict, KVDamaged, KVError, TraceError, TraceNotFound
from remora.events import BlobRef, Event, from_record
from remora.kv import KVManager, KVTransaction
from remora.ports import BlobStore
from remora.trace.files.reader import read_records
from remora.trace.index.update import scan
from remora.trace.turns.keys import TraceKey, parse_key, trace_key
from remora.trace.turns.store import TraceEntry, entries_of, with_raw

Indexing = Literal["node", "run", "operation"]

KV_FILE = "trace.kv"
_CALLS = ("tool_call", "tool_result")
_BATCH = 32
_ATTEMPTS = 3


@dataclass
class _Stream:
    """What one stream holds, as the view keeps it."""

    name: str
    looks: str
    """Of the file before it was read: if it has grown since, it will be read again."""
    turns: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The tool calls by trace key."""
    lists: dict[str, list[str]] = field(default_factory=dict)
    """Trace keys of turns with calls, by the beginning of an index key."""


class KVTraceView:
    """Reads turns of `state_dir` by key, run, node or operation, as a `TraceStore` does, from `trace.kv`."""

    def __init__(
        self, state_dir: Path, blobs: BlobStore, *, by: Collection[Indexing] = ("node", "run", "operation")
    ) -> None:
        self._state_dir = state_dir
        self._blobs = blobs
        self._by = tuple(sorted(set(by)))
        self._kv = KVManager(state_dir / KV_FILE, durable=False)
        self._checked = False
        self.notices: list[str] = []
        """What was thrown away and made anew, or could not be written, and why."""

    async def get(self, key: str) -> list[TraceEntry]:
        """The tool calls of one turn, in order. Raises `ConfigError` for what is no key, `TraceNotFound`."""
        parse_key(key)
        answer = await self._answer(_Question(key=key))
        if not answer:
            raise TraceNotFound(f"No stream has the turn `{key}`")
        kept = (entry for stream in sorted(answer) for entry in answer[stream])
        return [await with_raw(*_entry(each), self._blobs) for each in kept]

    async def list_by_run(self, run_id: str) -> list[str]:
        """The keys of the run's turns in which a tool was called. Raises `ConfigError` if runs are not indexed."""
        return await self._list("run", run_id)

    async def list_by_node(self, node_id: str) -> list[str]:
        """The keys of the node's turns in which a tool was called. Raises `ConfigError` if nodes are not indexed."""
        return await self._list("node", node_id)

    async def list_by_operation(self, operation: str) -> list[str]:
        """The keys of the operation's turns in which a tool was called. Raises `ConfigError` unless indexed."""
        return await self._list("operation", operation)

    async def catch_up(self, only: Collection[str] | None = None) -> bool:
        """Whether the file now holds what all streams hold, or the `only` ones. What hinders it is in `notices`."""
        for _ in range(_ATTEMPTS):
            try:
                await self._take_in(only)
            except KVDamaged as damage:
                await self._throw_away(damage)
            except KVConflict:
                continue  # another process takes the same streams in
            except KVError as error:
                self._note(f"The key-value view was not brought up to date: {error.message}")
                return False
            else:
                return True
        return False

    async def aclose(self) -> None:
        """No file is held open."""
        await self._kv.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _list(self, what: Indexing, value: str) -> list[str]:
        if what not in self._by:
            raise ConfigError(
                f"Turns cannot be listed by {what}: the view is made by {', '.join(self._by) or 'nothing'}",
                hint=f"Add `{what}` to `runner.memory.trace_indexing`",
            )
        answer = await self._answer(_Question(prefix=_index_key(what, value)))
        return list(dict.fromkeys(key for stream in sorted(answer) for key in answer[stream]))

    async def _answer(self, question: _Question) -> dict[str, list[Any]]:
        """What each stream has to say: from the file where that is up to date, else from the stream."""
        await self.catch_up()
        try:
            async with self._kv.transaction() as moment:
                known = await self._known(moment)
                kept = await question.ask(moment)
        except KVDamaged as damage:
            await self._throw_away(damage)
            known, kept = {}, {}
        except KVError:
            known, kept = {}, {}
        there = await asyncio.to_thread(_looks, self._state_dir, scan(self._state_dir))
        changed = [name for name, looks in there.items() if known.get(name) != (looks, self._by)]
        answer = {name: found for name, found in kept.items() if name in there and name not in changed}
        for name in changed:
            stream = await asyncio.to_thread(_read, self._state_dir, name, there[name], self._by)
            found = question.of(stream)
            if found is not None:
                answer[name] = found
        return answer

    async def _take_in(self, only: Collection[str] | None) -> None:
        if not self._checked:
            await self._kv.check()
            self._checked = True
        there = await asyncio.to_thread(_looks, self._state_dir, scan(self._state_dir) if only is None else only)
        known = await self._known(self._kv, only)
        changed = [name for name, looks in there.items() if known.get(name) != (looks, self._by)]
        changed += [name for name in known if name not in there]
        for start in range(0, len(changed), _BATCH):
            async with self._kv.transaction() as change:
                for name in changed[start : start + _BATCH]:
                    await self._replace(change, name, there.get(name))

    async def _known(
        self, keys: KVManager | KVTransaction, only: Collection[str] | None = None
    ) -> dict[str, tuple[str, tuple[str, ...]]]:
        if only is None:
            found: Iterable[Any] = await keys.scan("stream:")
        else:
            found = (await keys.get_many([f"stream:{name}" for name in only])).values()
        return {each.key.removeprefix("stream:"): (each.value["looks"], tuple(each.value["by"])) for each in found}

    async def _replace(self, change: KVTransaction, name: str, looks: str | None) -> None:
        """What the file holds of the stream is what the stream holds; nothing, if it is gone (no looks)."""
        held = await change.get(f"held:{name}") or {"turns": [], "lists": []}
        for key in held["lists"]:
            await change.delete(key)
        stream = await asyncio.to_thread(_read, self._state_dir, name, looks, self._by) if looks else _Stream(name, "")
        keys = list(dict.fromkeys([*held["turns"], *stream.turns]))
        old = await change.get_many(keys)
        for key in keys:
            parts = dict(old[key].value) if key in old else {}
            parts.pop(name, None)
            if key in stream.turns:
                parts[name] = stream.turns[key]
            await (change.set(key, parts) if parts else change.delete(key))
        for prefix, listed in stream.lists.items():
            await change.set(prefix + name, listed)
        if looks is None:
            await change.delete(f"stream:{name}")
            await change.delete(f"held:{name}")
        else:
            await change.set(f"stream:{name}", {"looks": looks, "by": self._by})
            lists = [prefix + name for prefix in stream.lists]
            await change.set(f"held:{name}", {"turns": list(stream.turns), "lists": lists})

    async def _throw_away(self, damage: KVDamaged) -> None:
        """The next write begins a new file; the old one holds nothing that the streams do not."""
        self._checked = False
        try:
            aside = await self._kv.set_aside()
        except KVError as error:
            self._note(f"The key-value view is damaged and was left: {error.message}")
            return
        for suffix in ("", "-wal", "-shm"):
            aside.with_name(aside.name + suffix).unlink(missing_ok=True)
        self._note(f"The key-value view was thrown away and made anew: {damage.problem}")

    def _note(self, notice: str) -> None:
        if notice not in self.notices:
            self.notices.append(notice)


@dataclass(frozen=True)
class _Question:
    """What is asked of every stream: its part in one trace key, or its list under the beginning of an index key."""

    key: str = ""
    prefix: str = ""

    async def ask(self, kv: KVTransaction) -> dict[str, list[Any]]:
        """The file's answer, by stream."""
        if self.key:
            return dict(await kv.get(self.key) or {})
        return {each.key.removeprefix(self.prefix): each.value for each in await kv.scan(self.prefix)}

    def of(self, stream: _Stream) -> list[Any] | None:
        """The stream's own answer."""
        return stream.turns.get(self.key) if self.key else stream.lists.get(self.prefix)


def forget(state_dir: Path, blobs: BlobStore, streams: Collection[str]) -> None:
    """The file, where there is one, holds nothing of these streams, which are gone. Blocks, in any thread."""

    async def let_go() -> None:
        async with KVTraceView(state_dir, blobs) as view:
            await view.catch_up(only=streams)

    if streams and (state_dir / KV_FILE).exists():
        with ThreadPoolExecutor(1) as beside:  # whoever prunes may be in an event loop
            beside.submit(asyncio.run, let_go()).result()


def _read(state_dir: Path, name: str, looks: str, by: Iterable[str]) -> _Stream:
    turns: dict[TraceKey, list[tuple[str, Event]]] = {}
    called: dict[TraceKey, None] = {}
    for event in _events(state_dir / f"{name}.jsonl"):
        key = TraceKey(event.run_id, event.operation, event.node_id, event.turn)
        turns.setdefault(key, [])
        if event.type in _CALLS:
            turns[key].append((name, event))
            called[key] = None
    kept = {trace_key(*key): [_plain(*each) for each in entries_of(events)] for key, events in turns.items()}
    return _Stream(name, looks, kept, _lists(called, by))


def _events(path: Path) -> Iterator[Event]:
    """The stream's events up to its first damage, but for those that no reader gives out."""
    try:
        for record in read_records(path, torn_ok=True):
            try:
                yield from_record(record.fields or {})
            except TraceError:
                continue
    except TraceError:
        return


def _lists(called: Iterable[TraceKey], by: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in called:
        values = {"run": key.run_id, "node": key.node_id, "operation": key.operation}
        for what in by:
            found.setdefault(_index_key(what, values[what]), []).append(trace_key(*key))
    return found


def _index_key(what: str, value: str) -> str:
    return f"index:{what}:{quote(value, safe='/', errors='surrogatepass')}:"


def _plain(entry: TraceEntry, reference: BlobRef | None) -> dict[str, Any]:
    return asdict(entry) | ({"raw_ref": reference.model_dump(mode="json")} if reference else {})


def _entry(kept: Mapping[str, Any]) -> tuple[TraceEntry, BlobRef | None]:
    fields = dict(kept)
    reference = fields.pop("raw_ref", None)
    return TraceEntry(**fields), BlobRef.model_validate(reference) if reference else None


def _looks(state_dir: Path, names: Iterable[str]) -> dict[str, str]:
    """How the files look that are there. The time of a change cannot be set back, as that of the content can."""
    found = {}
    for name in names:
        try:
            stat = os.stat(state_dir / f"{name}.jsonl")  # noqa: PTH116 (many files)
        except OSError:
            continue
        found[name] = f"{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"
    return found
