"""The Pull Hook: fetches fresh facts about the nodes in play at the start of each turn, as events for the stream.

The Hub is optional. If it is absent or fails, the run continues without facts that are no longer proven. A Hub that
times out is not asked again, so it delays a run by at most `HUB_PATIENCE_S`. Each kind of problem is reported once.
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
"""The Hub is asked about at most this many nodes: the target, then nodes of recent actions, newest first."""
MAX_FACTS = 16 * 1024
"""Most bytes of all facts as JSON. A larger answer is rejected."""


class Pulling:
    """Asks one Hub on behalf of one agent."""

    def __init__(self, client: HubClient) -> None:
        self._client = client
        self._last_answer: dict[str, Any] = {}
        """The Hub's last answer. The packet may hold it with secrets redacted."""
        self._reported: set[str] = set()
        self._too_slow = False

    async def drafts(self, packet: DecisionPacket, turn: int, ts: str) -> list[Event]:
        """Ask the Hub and return the events to record before this turn's prompt; empty if nothing changed."""
        nodes = nodes_in_play(packet)
        pulled, notices = await self._ask(nodes)
        update = self._update(packet, pulled)
        self._last_answer = dict(pulled.facts)
        events: list[Event] = [NoticeEvent(code=code, message=text, turn=turn) for code, text in notices]
        if update is not None:
            events.append(update.model_copy(update={"turn": turn, "ts": ts}))
        return events

    async def _ask(self, nodes: list[str]) -> tuple[Pulled, list[tuple[str, str]]]:
        if self._too_slow:
            return Pulled({}), []
        try:
            async with asyncio.timeout(HUB_PATIENCE_S):
                pulled = _validate(await _query(self._client, nodes))
        except TimeoutError:
            self._too_slow = True
            return Pulled({}), self._once("hub_slow", f"no answer in {HUB_PATIENCE_S:g} s: it is not asked again")
        except Exception as error:  # noqa: BLE001 - the Hub is optional: no failure of it may stop a run
            return Pulled({}), self._once("hub_failed", f"{type(error).__name__}: {error}")
        return pulled, self._once("hub_incomplete", pulled.problem) if pulled.problem else []

    def _once(self, code: str, text: str) -> list[tuple[str, str]]:
        if code in self._reported:
            return []
        self._reported.add(code)
        return [(code, one_line(f"The Hub: {text}"))]

    def _update(self, packet: DecisionPacket, pulled: Pulled) -> HubUpdateEvent | None:
        """An update that replaces all Hub facts and removes nodes without new facts; None if nothing changed."""
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
        return node in held and facts in (held[node], self._last_answer.get(node))


def nodes_in_play(packet: DecisionPacket) -> list[str]:
    """The target, then nodes that recent actions touched or mention, newest first."""
    named = [
        node for action in reversed(packet.recent_actions) for node in (*action.nodes, *named_nodes(action.summary))
    ]
    return list(dict.fromkeys([packet.node_id, *named]))[:MAX_NODES]


async def _query(client: HubClient, nodes: list[str]) -> Pulled:
    """Ask the Hub: by `pull`, with proofs, if the client has it, else by `get_context`."""
    pull = getattr(client, "pull", None)
    if pull is None:
        return Pulled(await client.get_context(nodes) or {})
    answer = await pull(nodes)
    if not isinstance(answer, Pulled):
        raise TypeError(f"`pull` gave {type(answer).__name__}: expected `Pulled`")
    return answer


def _validate(pulled: Pulled) -> Pulled:
    """The answer as plain JSON. Raises `TypeError` or `ValueError` if it is malformed or too large."""
    if not isinstance(pulled.facts, Mapping):
        raise TypeError(f"facts are {type(pulled.facts).__name__}: expected them by node")
    try:
        facts = orjson.dumps(dict(pulled.facts))
    except orjson.JSONEncodeError as error:
        raise ValueError(f"facts are not JSON: {error}") from error
    if len(facts) > MAX_FACTS:
        raise ValueError(f"{len(facts):,} bytes of facts: expected at most {MAX_FACTS:,}")
    return Pulled(orjson.loads(facts), pulled.hashes, pulled.freshness, str(pulled.problem))
