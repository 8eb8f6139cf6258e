"""Asking the Hub: what is known of code nodes now, as one workspace sees them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Self, TypeVar

from remora.discovery import CodeFiles, languages
from remora.errors import KVError
from remora.hub._facts import IN_PACKETS, packet_facts
from remora.hub._models import DB, FILE_KEY, REPAIR, NodeState, split_node_id
from remora.hub._reader import Kept, ProjectView, Reader, View
from remora.kv import KVFile
from remora.nodes import named_nodes
from remora.ports import Pulled

__all__ = ["HubClient", "refresh_context"]

T = TypeVar("T")

MAX_NODES = 16
"""Nodes that are looked up in one pull."""


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
        self._kept = Kept()
        self._view: View = view or ProjectView(self._files)
        self._catching_up: Callable[[], Awaitable[str]] | None = None
        self._one = threading.Lock()

    def seen_by(self, view: View) -> Self:
        """The same index, as another workspace sees the files."""
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__ | {"_view": view}
        return other

    def after(self, catching_up: Callable[[], Awaitable[str]]) -> Self:
        """The same; `catching_up` is awaited before each pull, and says what is not in the index yet."""
        other = self.seen_by(self._view)
        other._catching_up = catching_up
        return other

    async def get_context(self, node_ids: list[str]) -> dict[str, Any]:
        """Facts by node id; nothing for a node whose facts cannot be proven fresh."""
        return dict((await self.pull(node_ids)).facts)

    async def pull(self, node_ids: Sequence[str]) -> Pulled:
        """Facts, and how they were proven."""
        waiting = await self._catching_up() if self._catching_up else ""
        return await asyncio.to_thread(self._pull, node_ids, waiting)

    async def node(self, node_id: str) -> NodeState | None:
        """All that is known of one node; None where there is no such node now."""
        return await asyncio.to_thread(self._look, lambda reader: reader.states([node_id]).get(node_id))

    async def hint(self, node_id: str) -> str:
        """What there is in place of a node that is not there."""
        path = split_node_id(node_id)[0]
        found = await asyncio.to_thread(self._look, lambda reader: reader.names_in(path))
        if found is None:
            return f"`{path:.200}` is not a file of code here: expected `path:qualified.name`"
        return f"`{path:.200}` has " + (", ".join(f"`{name}`" for name in found[:20]) or "no definitions")

    async def health_check(self) -> bool:
        """Whether there is an index that can be read."""
        return await asyncio.to_thread(self._is_healthy)

    def close(self) -> None:
        """No file is held open."""
        self._kv.close()

    def facts(self, node_ids: Sequence[str]) -> Pulled:
        """As `pull`, where nobody can wait."""
        return self._pull(node_ids, "")

    def _pull(self, node_ids: Sequence[str], waiting: str) -> Pulled:
        def pull(reader: Reader) -> Pulled:
            states = reader.states(list(dict.fromkeys(node_ids))[:MAX_NODES], IN_PACKETS)
            facts = {
                node: packet_facts(state, reader, brief=place > 0) for place, (node, state) in enumerate(states.items())
            }
            freshness = {node: reader.freshness(node) for node in facts}
            return Pulled(facts, dict(reader.hashes), freshness, reader.problem or waiting)

        return self._look(pull)

    def _look(self, ask: Callable[[Reader], T]) -> T:
        """What the index says, proven; where it cannot be used, what the files say."""
        problem = ""

        def with_index(db: Connection | None) -> tuple[T, str]:
            reader = Reader(self._kv, db, self._view, self._kept)
            reader.problem = problem
            return ask(reader), reader.problem

        with self._one:
            try:
                found = self._kv.read(with_index, None)
            except KVError as error:
                found, problem = None, error.message
            if found is None:
                problem = problem or "There is no index yet: other files are not known"
                found = with_index(None)
        if found[1] and self._kv.path.exists():
            self._ask_for_repair()
        return found[0]

    def _is_healthy(self) -> bool:
        try:
            return bool(self._kv.scan(FILE_KEY, 1))
        except KVError:
            return False

    def _ask_for_repair(self) -> None:
        """Leave a note for whoever writes the index: it looked damaged from here."""
        try:
            self._kv.path.with_name(REPAIR).touch(mode=0o600)
        except OSError:
            return  # a place where nothing can be written has no daemon either


def refresh_context(packet: Any, hub: HubClient | None = None) -> None:
    """The plan's hook: signatures of the nodes that the packet's history names, into its knowledge.

    For `run_middleware`. Without `hub`, that of the project around the current folder is asked, if it has one. A Hub
    that is absent or broken changes nothing.
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
    pulled = hub.facts(nodes)
    for node, facts in pulled.facts.items():
        line = " ".join(part for part in (facts.get("signature", ""), facts.get("doc", "")) if part)
        if not line:
            continue
        if hasattr(packet, "update_knowledge"):
            packet.update_knowledge(node, line)
        else:
            packet.knowledge[node] = line
