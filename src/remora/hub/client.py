"""Client of the Hub: facts about code nodes as one workspace sees them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Self, TypeVar

from remora.discovery import CodeFiles, languages
from remora.errors import KVError
from remora.hub._facts import PACKET_LIMITS, packet_facts
from remora.hub._models import DB, FILE_KEY, REPAIR, NodeState, split_node_id
from remora.hub._reader import Cache, ProjectView, Reader, View
from remora.kv import KVFile
from remora.nodes import named_nodes
from remora.ports import Pulled

__all__ = ["HubClient", "refresh_context"]

T = TypeVar("T")

MAX_NODES = 16
"""Most nodes in one pull."""


class HubClient:
    """Reads the index of one project directly, also while the daemon writes it. Writes nothing."""

    def __init__(
        self,
        root: Path,
        state_dir: Path,
        *,
        view: View | None = None,
        exclude: Sequence[str] = (),
    ) -> None:
        self._files = CodeFiles(root, state_dir=state_dir, exclude=exclude, suffixes=tuple(languages()))
        self._kv = KVFile(state_dir / DB, durable=False)
        self._cache = Cache()
        self._view: View = view or ProjectView(self._files)
        self._catching_up: Callable[[], Awaitable[str]] | None = None
        self._lock = threading.Lock()

    def seen_by(self, view: View) -> Self:
        """The same index, with files as another workspace sees them."""
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__ | {"_view": view}
        return other

    def after(self, catching_up: Callable[[], Awaitable[str]]) -> Self:
        """The same client. It awaits `catching_up` before each pull, which says what is missing in the index."""
        other = self.seen_by(self._view)
        other._catching_up = catching_up
        return other

    async def get_context(self, node_ids: list[str]) -> dict[str, Any]:
        """Facts by node id; none for a node whose facts cannot be proven fresh."""
        return dict((await self.pull(node_ids)).facts)

    async def pull(self, node_ids: Sequence[str]) -> Pulled:
        """Facts, and how they were proven."""
        missing = await self._catching_up() if self._catching_up else ""
        return await asyncio.to_thread(self._pull, node_ids, missing)

    async def node(self, node_id: str) -> NodeState | None:
        """Everything known about one node; None if there is no such node."""
        return await asyncio.to_thread(self._query, lambda reader: reader.states([node_id]).get(node_id))

    async def hint(self, node_id: str) -> str:
        """What exists in place of a node that was not found."""
        path = split_node_id(node_id)[0]
        names = await asyncio.to_thread(self._query, lambda reader: reader.names_in(path))
        if names is None:
            return f"`{path:.200}` is not a code file here: expected `path:qualified.name`"
        return f"`{path:.200}` has " + (", ".join(f"`{name}`" for name in names[:20]) or "no definitions")

    async def health_check(self) -> bool:
        """Whether there is a readable index."""
        return await asyncio.to_thread(self._is_healthy)

    def close(self) -> None:
        """Close the file."""
        self._kv.close()

    def facts(self, node_ids: Sequence[str]) -> Pulled:
        """Like `pull`, without waiting."""
        return self._pull(node_ids, "")

    def _pull(self, node_ids: Sequence[str], missing: str) -> Pulled:
        def pull(reader: Reader) -> Pulled:
            states = reader.states(list(dict.fromkeys(node_ids))[:MAX_NODES], PACKET_LIMITS)
            facts = {
                node: packet_facts(state, reader, brief=place > 0) for place, (node, state) in enumerate(states.items())
            }
            freshness = {node: reader.freshness(node) for node in facts}
            return Pulled(facts, dict(reader.hashes), freshness, reader.problem or missing)

        return self._query(pull)

    def _query(self, ask: Callable[[Reader], T]) -> T:
        """Run a query with a proving reader. If the index cannot be used, with the files alone."""
        problem = ""

        def with_index(db: Connection | None) -> tuple[T, str]:
            reader = Reader(self._kv, db, self._view, self._cache)
            reader.problem = problem
            return ask(reader), reader.problem

        with self._lock:
            try:
                result = self._kv.read(with_index, None)
            except KVError as error:
                result, problem = None, error.message
            if result is None:
                problem = problem or "There is no index yet: other files are not known"
                result = with_index(None)
        if result[1] and self._kv.path.exists():
            self._ask_for_repair()
        return result[0]

    def _is_healthy(self) -> bool:
        try:
            return bool(self._kv.scan(FILE_KEY, 1))
        except KVError:
            return False

    def _ask_for_repair(self) -> None:
        """Leave a note for the writer of the index that it looked damaged."""
        try:
            self._kv.path.with_name(REPAIR).touch(mode=0o600)
        except OSError:
            return  # a read-only folder has no daemon either


def refresh_context(packet: Any, hub: HubClient | None = None) -> None:
    """The plan's hook: adds signatures of the nodes named in the packet's history to its knowledge, and when they were
    fetched to its `hub_context_freshness`.

    For `run_middleware`. Without `hub`, uses the Hub of the project around the current folder, if there is one. A
    missing or broken Hub changes nothing.
    """
    if hub is None:
        from remora.app import hub_around

        hub = hub_around(Path())
    if hub is None:
        return
    nodes = [
        *filter(None, [getattr(packet, "node_id", "")]),
        *(node for line in reversed(packet.recent_history) for node in named_nodes(line)),
    ]
    pulled, fetched = hub.facts(nodes), time.time()
    for node, facts in pulled.facts.items():
        line = " ".join(part for part in (facts.get("signature", ""), facts.get("doc", "")) if part)
        if not line:
            continue
        if hasattr(packet, "update_knowledge"):
            packet.update_knowledge(node, line)
        else:
            packet.knowledge[node] = line
        _note_freshness(packet, node, fetched)


def _note_freshness(packet: Any, node: str, fetched: float) -> None:
    """Record when the facts of a node were fetched, in the plan's packet or in the real one."""
    known = packet.hub_context_freshness | {node: fetched}
    if hasattr(packet, "extensions"):
        packet.extensions["hub_context_freshness"] = known
    else:
        packet.hub_context_freshness = known
