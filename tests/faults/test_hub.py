"""Reliability row 33: a Hub that is absent, damaged, stale, slow or lying fails no run and shows nothing untrue."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

import remora
from damage import emptied, garbage, truncated
from hub.conftest import FILES, write
from remora.context.models import DecisionPacket
from remora.context.projection import project as fold
from remora.context.pulling import Pulling
from remora.events import Event, HubUpdateEvent, NoticeEvent
from remora.hub import HubClient, index_now
from remora.kv import KVFile
from remora.ports import Pulled
from remora.trace import claim, read_events

TAKE, ADD = "shop/stock.py:take", "shop/cart.py:Cart.add"
NODES = [ADD, TAKE, "shop/cart.py:Cart.put", "shop/stock.py", "shop/stock.py:OutOfStock"]
NOW = "2026-11-16T00:00:00.000000Z"
Damage = Callable[[Path, random.Random], None]


def rewritten(db: Path, change: Callable[[str, Any], Any]) -> None:
    """Records that are not what they were, and whose checksums are right."""
    kv = KVFile(db, durable=False)
    kv.commit({row.key: orjson.dumps(change(row.key, orjson.loads(row.data))) for row in kv.scan("")}, {})
    kv.close()


def lies_about_hashes(db: Path, rnd: random.Random) -> None:
    rewritten(
        db,
        lambda key, value: (
            {**value, "file_hash": "0" * 64, "signature": "def lie()"} if "file_hash" in value else value
        ),
    )


def lies_about_nodes(db: Path, rnd: random.Random) -> None:
    kv = KVFile(db, durable=False)
    stored = {row.key: row.data for row in kv.scan("node:")}
    keys, values = list(stored), list(stored.values())
    rnd.shuffle(values)
    kv.commit(dict(zip(keys, values, strict=True)), {})
    kv.close()


def lies_about_callers(db: Path, rnd: random.Random) -> None:
    def ghosts(key: str, value: Any) -> Any:
        return {f"ghost_{name}": targets for name, targets in value.items()} if key.startswith("ref:") else value

    rewritten(db, ghosts)


def of_another_kind(db: Path, rnd: random.Random) -> None:
    rewritten(db, lambda key, value: rnd.choice([[], "text", {"a": 1}, 7, None]))


def knows_files_that_never_were(db: Path, rnd: random.Random) -> None:
    kv = KVFile(db, durable=False)
    moved = {row.key.replace("shop/cart.py", "shop/ghost.py"): row.data for row in kv.scan("")}
    kv.commit({key: data.replace(b"shop/cart.py", b"shop/ghost.py") for key, data in moved.items()}, {})
    kv.close()


def absent(db: Path, rnd: random.Random) -> None:
    db.unlink()


def bytes_changed(db: Path, rnd: random.Random) -> None:
    with db.open("r+b") as file:
        for _ in range(rnd.choice([1, 10, 1000])):
            file.seek(rnd.randrange(db.stat().st_size))
            file.write(rnd.randbytes(1))


def a_folder(db: Path, rnd: random.Random) -> None:
    db.unlink()
    db.mkdir()


def unreadable(db: Path, rnd: random.Random) -> None:
    db.unlink()
    db.symlink_to("/dev/full")


def stale(db: Path, rnd: random.Random) -> None:
    root = db.parent.parent
    write(root, {"shop/stock.py": "def take(much):\n    return other(much)\n\n\ndef other(much): ...\n"})
    (root / rnd.choice(["shop/__init__.py", "shop/cart.py", "tests/test_cart.py"])).unlink()


DAMAGES: list[tuple[Damage, int]] = [
    (absent, 1), (emptied, 1), (garbage, 8), (truncated, 20), (bytes_changed, 60), (a_folder, 1), (unreadable, 1),
    (stale, 6), (lies_about_hashes, 1), (lies_about_nodes, 6), (lies_about_callers, 1), (of_another_kind, 6),
    (knows_files_that_never_were, 1),
]  # fmt: skip


def is_so(shown: dict[str, Any], truth: dict[str, Any]) -> bool:
    """Whether all that is shown is true; less may be shown than is."""
    plain = all(shown.get(key) == truth.get(key) for key in ("signature", "doc", "raises"))
    lists = all(set(shown.get(key, ())) <= set(truth.get(key, ())) for key in ("callers", "tests"))
    return plain and lists and shown.get("calls", {}).items() <= truth.get("calls", {}).items()


async def pulled(hub: Any, turns: int = 3) -> tuple[list[Event], DecisionPacket]:
    packet = DecisionPacket(agent_id="A", goal="g", operation="lint", node_id=ADD)
    pulling, events = Pulling(hub), []
    for turn in range(1, turns + 1):
        news = await pulling.drafts(packet, turn, NOW)
        packet = fold(news, start=packet)
        events += news
    return events, packet


async def truth_of(root: Path, tmp_path: Path) -> dict[str, Any]:
    fresh = tmp_path / "truth"
    index_now(root, fresh, [".agentfs"])
    found = await HubClient(root, fresh).pull(NODES)
    return dict(found.facts)


async def test_whatever_is_wrong_with_the_index_nothing_is_shown_that_is_not_so(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    rnd, states, longest = random.Random(33), 0, 0.0
    whole = tmp_path / "whole"
    write(whole, FILES)
    index_now(whole, whole / ".agentfs")
    unchanged = await truth_of(whole, tmp_path)
    for damage, times in DAMAGES:
        for number in range(times):
            root = tmp_path / f"{damage.__name__}{number}"
            shutil.copytree(whole, root)
            damage(root / ".agentfs" / "hub.db", rnd)
            client = HubClient(root, root / ".agentfs")
            began = time.monotonic()
            answer = await client.pull(NODES)
            longest = max(longest, time.monotonic() - began)
            events, packet = await pulled(client)
            client.close()
            truth = await truth_of(root, root) if damage is stale else unchanged
            for node, facts in {**answer.facts, **(packet.hub_context or {})}.items():
                assert is_so(facts, truth[node]), (damage.__name__, number, node, facts, truth[node])
            assert sum(isinstance(event, NoticeEvent) for event in events) <= 1
            states += 1
    record_property("row 33", f"{states} states of the index: 0 wrong facts, longest pull {longest * 1000:.0f} ms")


@pytest.mark.parametrize("damage", [absent, garbage, a_folder, stale, of_another_kind, lies_about_callers])
def test_a_run_beside_it_succeeds_and_says_so_once(
    damage: Damage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("REMORA_EVENT_STREAM__SYNC", "off")
    root = tmp_path / "project"
    write(root, FILES | {"remora.yaml": "hub: {mode: read}\n"})
    index_now(root, root / ".agentfs")
    claim(root / ".agentfs")
    damage(root / ".agentfs" / "hub.db", random.Random(1))
    project = remora.open_project(root, {"server.server": "scripted"})
    place = root / "shop/stock.py"
    results = asyncio.run(project.runs.analyze([place], ["docstring"]))
    assert {result.outcome for result in results} == {"success"}
    for result in results:
        events = list(read_events(project.library.find(result.agent_id)))
        notices = [event for event in events if isinstance(event, NoticeEvent) and event.code.startswith("hub")]
        assert len(notices) <= 1


class SlowView:
    """Files that take long to read."""

    def __init__(self) -> None:
        self.release = __import__("threading").Event()
        self.reads = 0

    def look(self, path: str) -> bytes:
        self.reads += 1
        self.release.wait(30)
        raise FileNotFoundError(path)

    def changed(self) -> Sequence[str]:
        return ()


async def test_a_hub_whose_disk_hangs_is_asked_once(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    write(tmp_path / "p", FILES)
    view, asked = SlowView(), []

    class Counting(HubClient):
        async def pull(self, node_ids: Sequence[str]) -> Pulled:
            asked.append(node_ids)
            return await super().pull(node_ids)

    client = Counting(tmp_path / "p", tmp_path / "p" / ".agentfs", view=view)
    began = time.monotonic()
    events, packet = await pulled(client, turns=30)
    took = time.monotonic() - began
    view.release.set()
    assert [event.type for event in events] == ["notice"]
    assert (packet.hub_context, view.reads, len(asked)) == (None, 1, 1)
    record_property("row 33", f"a Hub that hangs adds {took * 1000:.0f} ms to a run of 30 turns")


async def test_facts_vanish_from_the_packet_when_they_can_no_longer_be_proven(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    index_now(tmp_path, tmp_path / ".agentfs")
    client = HubClient(tmp_path, tmp_path / ".agentfs")
    packet = DecisionPacket(agent_id="A", goal="g", operation="lint", node_id=ADD)
    pulling = Pulling(client)
    packet = fold(await pulling.drafts(packet, 1, NOW), start=packet)
    assert packet.hub_context
    (tmp_path / "shop/cart.py").unlink()
    news = await pulling.drafts(packet, 2, NOW)
    assert [event.type for event in news] == ["hub_update"]
    assert isinstance(news[0], HubUpdateEvent)
    assert fold(news, start=packet).hub_context is None


async def test_a_hub_that_answers_for_files_it_did_not_read_is_only_believed_with_its_own_words(tmp_path: Path) -> None:
    """A client of someone's own may say anything: it is bounded, plain, and in the stream."""

    class Liar:
        async def pull(self, nodes: Sequence[str]) -> Pulled:
            return Pulled({node: {"signature": "x" * 10**6} for node in nodes})

    events, packet = await pulled(Liar(), turns=5)
    assert [event.type for event in events] == ["notice"]
    assert packet.hub_context is None
