"""The Pull Hook: at the start of each turn, fresh facts about the nodes in play, as events for the stream.

The Hub is optional. One that is absent, broken or wrong changes nothing but what it can no longer prove, and one that
is slow is not asked again: in all it adds at most `HUB_PATIENCE_S` to a run. Each kind of trouble is told once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from remora.context.models import DecisionPacket
from remora.context.text import one_line
from remora.events import Event, HubDelta, HubUpdateEvent, NoticeEvent, PacketDelta
from remora.nodes import named_nodes
from remora.ports import HubClient, Pulled

HUB_PATIENCE_S = 0.5
MAX_NODES = 3
"""The target, and as many of the nodes that recent actions name, the newest first."""
MAX_FACTS = 16 * 1024
"""Bytes of all facts as JSON; a Hub that gives more is not believed."""


class Pulling:
    """Asks one Hub for one agent."""

    def __init__(self, client: HubClient) -> None:
        self._client = client
        self._given: dict[str, Any] = {}
        """What the Hub said last: the packet may hold it without its secrets."""
        self._told: set[str] = set()
        self._too_slow = False

    async def drafts(self, packet: DecisionPacket, turn: int, ts: str) -> list[Event]:
        """What there is to record before this turn's prompt: nothing where nothing has changed."""
        nodes = nodes_in_play(packet)
        pulled, notices = await self._ask(nodes)
        update = self._update(packet, pulled)
        self._given = dict(pulled.facts)
        found: list[Event] = [NoticeEvent(code=code, message=text, turn=turn) for code, text in notices]
        if update is not None:
            found.append(update.model_copy(update={"turn": turn, "ts": ts}))
        return found

    async def _ask(self, nodes: list[str]) -> tuple[Pulled, list[tuple[str, str]]]:
        if self._too_slow:
            return Pulled({}), []
        try:
            async with asyncio.timeout(HUB_PATIENCE_S):
                pulled = _checked(await _answer(self._client, nodes))
        except TimeoutError:
            self._too_slow = True
            return Pulled({}), self._once("hub_slow", f"no answer in {HUB_PATIENCE_S:g} s: it is not asked again")
        except Exception as error:  # noqa: BLE001 - the Hub is optional: whatever it does, the run goes on
            return Pulled({}), self._once("hub_failed", f"{type(error).__name__}: {error}")
        return pulled, self._once("hub_incomplete", pulled.problem) if pulled.problem else []

    def _once(self, code: str, text: str) -> list[tuple[str, str]]:
        if code in self._told:
            return []
        self._told.add(code)
        return [(code, one_line(f"The Hub: {text}"))]

    def _update(self, packet: DecisionPacket, pulled: Pulled) -> HubUpdateEvent | None:
        """The facts in place of those before: a node that the Hub no longer speaks of is not known any more."""
        held = packet.hub_context or {}
        gone = tuple(node for node in held if node not in pulled.facts)
        new = {node: facts for node, facts in pulled.facts.items() if not self._is_held(node, facts, held)}
        if not gone and not new:
            return None
        return HubUpdateEvent(
            nodes=tuple(pulled.facts),
            hashes=dict(pulled.hashes),
            freshness=dict(pulled.freshness),
            delta=PacketDelta(hub=HubDelta(set=new, remove=gone)),
        )

    def _is_held(self, node: str, facts: Any, held: Mapping[str, Any]) -> bool:
        return node in held and facts in (held[node], self._given.get(node))


def nodes_in_play(packet: DecisionPacket) -> list[str]:
    """The target, then nodes that recent actions touched or name, the newest first."""
    named = [
        node for action in reversed(packet.recent_actions) for node in (*action.nodes, *named_nodes(action.summary))
    ]
    return list(dict.fromkeys([packet.node_id, *named]))[:MAX_NODES]


async def _answer(client: HubClient, nodes: list[str]) -> Pulled:
    """What the Hub says, and how it was proven if it can tell that."""
    pull = getattr(client, "pull", None)
    if pull is None:
        return Pulled(await client.get_context(nodes) or {})
    answer = await pull(nodes)
    if not isinstance(answer, Pulled):
        raise TypeError(f"`pull` gave {type(answer).__name__}: expected `Pulled`")
    return answer


def _checked(pulled: Pulled) -> Pulled:
    """The answer as plain JSON. Raises `ValueError` for what a packet cannot hold."""
    if not isinstance(pulled.facts, Mapping):
        raise TypeError(f"facts are {type(pulled.facts).__name__}: expected them by node")
    try:
        facts = orjson.dumps(dict(pulled.facts))
    except orjson.JSONEncodeError as error:
        raise ValueError(f"facts are not JSON: {error}") from error
    if len(facts) > MAX_FACTS:
        raise ValueError(f"{len(facts):,} bytes of facts: expected at most {MAX_FACTS:,}")
    return Pulled(orjson.loads(facts), pulled.hashes, pulled.freshness, str(pulled.problem))
