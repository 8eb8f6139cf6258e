"""The Pull Hook: what the Hub can prove is an event first, and no Hub ever fails a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from remora.context.models import DecisionPacket, RecentAction
from remora.context.projection import project
from remora.context.pulling import MAX_FACTS, MAX_NODES, Pulling, nodes_in_play
from remora.events import Event, HubUpdateEvent, NoticeEvent
from remora.ports import Pulled

NOW = "2026-11-16T00:00:00.000000Z"


class Hub:
    """Answers as it is told to, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[list[str]] = []

    async def pull(self, nodes: Sequence[str]) -> Pulled:
        self.asked.append(list(nodes))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


def packet(**more: Any) -> DecisionPacket:
    return DecisionPacket(agent_id="A", goal="g", operation="lint", node_id="a.py:f", **more)


async def pulled(hub: Any, turns: int, start: DecisionPacket | None = None) -> tuple[list[list[Event]], DecisionPacket]:
    """What each turn recorded, and the packet that it comes to."""
    held, pulling, found = start or packet(), Pulling(hub), []
    for turn in range(1, turns + 1):
        found.append(await pulling.drafts(held, turn, NOW))
        held = project(found[-1], start=held)
    return found, held


async def test_facts_are_recorded_with_their_proof_once() -> None:
    answer = Pulled({"a.py:f": {"signature": "f()"}}, {"a.py": "ab" * 32}, {"a.py:f": "index"})
    turns, held = await pulled(Hub(answer), 3)
    ((update,), second, third) = turns
    assert isinstance(update, HubUpdateEvent)
    assert (update.nodes, update.hashes, update.freshness) == (("a.py:f",), answer.hashes, answer.freshness)
    assert (update.turn, second, third) == (1, [], [])
    assert held.hub_context == {"a.py:f": {"signature": "f()"}}


async def test_only_what_changed_is_recorded_and_keeps_its_place() -> None:
    one = Pulled({"a.py:f": {"s": 1}, "b.py:g": {"s": 1}})
    two = Pulled({"a.py:f": {"s": 1}, "b.py:g": {"s": 2}})
    (_, (update,)), held = await pulled(Hub(one, two), 2)
    assert update.delta is not None and update.delta.hub is not None
    assert (update.delta.hub.set, update.delta.hub.remove) == ({"b.py:g": {"s": 2}}, ())
    assert list(held.hub_context or {}) == ["a.py:f", "b.py:g"]


async def test_facts_that_can_no_longer_be_proven_are_removed() -> None:
    one = Pulled({"a.py:f": {"s": 1}, "b.py:g": {"s": 1}})
    (_, (update,)), held = await pulled(Hub(one, Pulled({"a.py:f": {"s": 1}})), 2)
    assert update.delta is not None and update.delta.hub is not None
    assert update.delta.hub.remove == ("b.py:g",)
    assert held.hub_context == {"a.py:f": {"s": 1}}


@pytest.mark.parametrize(
    "trouble",
    [
        RuntimeError("down"),
        "text",
        {"a": 1},
        None,
        Pulled("text"),  # type: ignore[arg-type]
        Pulled({"a.py:f": {1, 2}}),
        Pulled({"a.py:f": object()}),
        Pulled({"a.py:f": "x" * MAX_FACTS}),
        Pulled({7: 1}),  # type: ignore[dict-item]
    ],
    ids=["raises", "a text", "a dict", "nothing", "facts no dict", "a set", "an object", "too large", "a key no text"],
)
async def test_a_hub_that_breaks_is_told_once_and_loses_its_facts(trouble: Any) -> None:
    good = Pulled({"a.py:f": {"s": 1}})
    turns, held = await pulled(Hub(good, trouble), 4)
    kinds = [[event.type for event in turn] for turn in turns]
    assert kinds == [["hub_update"], ["notice", "hub_update"], [], []]
    assert held.hub_context is None
    assert isinstance(turns[1][0], NoticeEvent)
    assert turns[1][0].code == "hub_failed"


async def test_a_problem_is_told_once_and_the_facts_stand() -> None:
    turns, held = await pulled(Hub(Pulled({"a.py:f": 1}, problem="only\nhalf of it")), 3)
    assert [[event.type for event in turn] for turn in turns] == [["notice", "hub_update"], [], []]
    assert isinstance(turns[0][0], NoticeEvent)
    assert turns[0][0].message == "The Hub: only half of it"
    assert held.hub_context == {"a.py:f": 1}


async def test_a_slow_hub_costs_its_patience_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remora.context.pulling.HUB_PATIENCE_S", 0.02)

    class Slow(Hub):
        async def pull(self, nodes: Sequence[str]) -> Pulled:
            self.asked.append(list(nodes))
            if len(self.asked) > 1:
                await asyncio.Event().wait()
            return Pulled({"a.py:f": 1})

    hub = Slow(None)
    began = time.monotonic()
    turns, held = await pulled(hub, 20)
    assert [[event.type for event in turn] for turn in turns] == [["hub_update"], ["notice", "hub_update"], *[[]] * 18]
    assert (len(hub.asked), held.hub_context) == (2, None)
    assert time.monotonic() - began < 10


async def test_the_target_and_what_recent_actions_name_are_asked_for_newest_first() -> None:
    actions = [
        RecentAction(turn=1, tool="t", summary="looked at old.py:g", outcome="success"),
        RecentAction(turn=2, tool="t", summary="b/c.py:A.m#2 calls a.py:f, see b.py:12", outcome="success"),
        RecentAction(turn=3, tool="t", summary="", outcome="success", nodes=("d.py:h",)),
    ]
    assert nodes_in_play(packet(recent_actions=actions)) == ["a.py:f", "d.py:h", "b/c.py:A.m#2"]
    assert MAX_NODES == 3


async def test_a_hub_of_the_guide_needs_no_proof() -> None:
    class Guide:
        async def get_context(self, nodes: list[str]) -> dict[str, Any]:
            return {nodes[0]: {"summary": "s"}}

    turns, held = await pulled(Guide(), 2)
    assert [[event.type for event in turn] for turn in turns] == [["hub_update"], []]
    assert held.hub_context == {"a.py:f": {"summary": "s"}}
