"""A stream that ended is gone on with as a new one, with the same packet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import remora
from remora.context.models import DecisionPacket
from remora.context.projection import project
from remora.errors import TraceDamaged, TraceLocked, TraceNotFound
from remora.events import AgentStartEvent, Call, Event, PacketUpdateEvent, ToolResultEvent
from remora.testing import MemoryTwoTrack
from remora.trace import read_events, verify
from remora.twotrack import carried, read_parent

LOOK = {"name": "look", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}}


async def first_run(folder: Path, *results: Any) -> remora.TwoTrack:
    async with remora.TwoTrack("Find the order", name="support", tools=[LOOK], state_dir=folder) as tt:
        for number, result in enumerate(results):
            await tt.request()
            await tt.call({"tool": "look", "args": {"id": str(number)}}, lambda result=result, **_: result)
    return tt


def shown(packet: DecisionPacket) -> dict[str, Any]:
    """What a prompt can show of a packet: all but numbers of events and turns."""
    fields = packet.model_dump(exclude={"agent_id", "turn", "error_count", "hub_freshness", "evidence"})
    fields["knowledge"] = {key: (entry["value"], entry["pinned"]) for key, entry in fields["knowledge"].items()}
    fields["recent_actions"] = [action | {"turn": 0} for action in fields["recent_actions"]]
    entries = packet.evidence.entries
    return fields | {"evidence": [(e.speaker, e.text, e.given, e.lines, e.failed, e.omitted) for e in entries]}


RESULTS = st.one_of(
    st.text(max_size=200),
    st.dictionaries(st.text("abc_", min_size=1, max_size=8), st.integers() | st.text(max_size=30), max_size=6),
    st.fixed_dictionaries(
        {
            "summary": st.text(max_size=50),
            "knowledge_delta": st.dictionaries(st.text("xyz", min_size=1, max_size=3), st.integers(), max_size=3),
            "diagnostics": st.lists(st.text(max_size=20), max_size=2),
            "outcome": st.sampled_from(["success", "error", "partial"]),
        }
    ),
)


@given(st.lists(RESULTS, max_size=8), st.text(max_size=60))
def test_the_carried_events_fold_to_the_same_packet(results: list[Any], said: str) -> None:
    async def run() -> list[Event]:
        async with MemoryTwoTrack("Find the order", tools=[LOOK]) as tt:
            await tt.user(said)
            for number, result in enumerate(results):
                await tt.request()
                await tt.call(Call(call_id=str(number), tool="look"), lambda result=result: result)
        return tt.events

    events = asyncio.run(run())
    parent = read_parent(events, "01PARENT", "sha256:0")
    start = AgentStartEvent(goal=parent.start.goal, projector=parent.start.projector)
    drafts = [event.model_copy(update={"seq": seq}) for seq, event in enumerate([start, *carried(parent)])]
    assert shown(project(drafts)) == shown(project(events))
    assert parent.sealed


async def test_a_continued_run_begins_with_the_packet_and_names_its_parent(tmp_path: Path) -> None:
    old = await first_run(tmp_path, {"order_id": "W7712", "total": 12}, {"summary": "s", "knowledge_delta": {"k": 1}})
    async with remora.TwoTrack.continue_(old.identity.agent_id[-7:], tools=[LOOK], state_dir=tmp_path) as new:
        assert shown(new.packet) == shown(old.packet)
        await new.user("And its total?")
        prompt = await new.request()
    assert "W7712" in prompt.text
    assert prompt.text.index("W7712") < prompt.text.index("And its total?")
    start, *rest = read_events(new.path)
    last = list(read_events(old.path))[-1]
    assert start.parent["agent_id"] == old.identity.agent_id
    assert (start.parent["seq"], start.parent["relation"]) == (last.seq, "continue")
    assert (start.goal, start.name) == ("Find the order", "support")
    assert start.parent["head"] == verify(old.path).head
    assert {event.source for event in rest if isinstance(event, PacketUpdateEvent)} == {"continue"}
    assert verify(new.path).status == verify(old.path).status == "sealed"
    assert project(read_events(new.path)).model_copy(update={"turn": 1}) == new.packet


async def test_recall_reaches_the_raw_result_in_the_old_stream(tmp_path: Path) -> None:
    lines = [f"line {number} of the log" for number in range(2000)]
    old = await first_run(tmp_path, "\n".join(lines))
    middle = remora.TwoTrack.continue_(old)
    async with middle:
        pass
    async with remora.TwoTrack.continue_(middle.path) as new:
        seq = next(entry.seq for entry in new.packet.evidence.entries if "look" in entry.text)
        found = await new.recall(seq=seq, lines="1500-1501")
        assert found["excerpts"][0]["text"] == "line 1499 of the log\nline 1500 of the log"
        old.path.unlink()
        assert "look" in (await new.recall(seq=seq))["excerpts"][0]["text"]
        assert (await new.recall(text="line 3 of"))["result"]


async def test_a_stream_that_was_never_sealed_is_gone_on_with_and_its_open_call_is_shown(tmp_path: Path) -> None:
    old = remora.TwoTrack("Send it", state_dir=tmp_path)
    await old.open()
    await old.request()
    await old.called(Call(call_id="1", tool="send_mail", args={"to": "x@y.z"}))
    with pytest.raises(TraceLocked, match="still being written"):
        remora.TwoTrack.continue_(old)
    await old._writer.close(old.identity.stream_id)  # as when its process is killed
    async with remora.TwoTrack.continue_(old) as new:
        prompt = await new.request()
    assert '{"to":"x@y.z"}}\ntool: Failed: It was interrupted' in prompt.text
    assert not [event for event in read_events(new.path) if isinstance(event, ToolResultEvent)]


async def test_identifiers_of_outputs_that_were_shortened_are_carried(tmp_path: Path) -> None:
    results = [
        {"order_id": f"W{number:07}", "lines": [f"row {row} of {number * 17 + row}: some text" for row in range(150)]}
        for number in range(30)
    ]
    old = await first_run(tmp_path, *results)
    assert old.packet.evidence.ledger
    async with remora.TwoTrack.continue_(old) as new:
        held = {value for entry in new.packet.evidence.entries for _, value in entry.identifiers}
        held |= {item.value for item in new.packet.evidence.ledger}
    assert {item.value for item in old.packet.evidence.ledger} <= held
    assert new.packet.evidence.size <= 48 * 1024


@pytest.mark.parametrize("stream", ["NOPE", Path("missing.jsonl")])
async def test_a_stream_that_is_not_there_is_told(stream: Any, tmp_path: Path) -> None:
    with pytest.raises(TraceNotFound):
        remora.TwoTrack.continue_(stream, state_dir=tmp_path)


async def test_a_damaged_stream_is_not_gone_on_with(tmp_path: Path) -> None:
    old = await first_run(tmp_path, {"a": 1}, {"a": 2})
    data = old.path.read_bytes()
    old.path.write_bytes(data.replace(b'"look"', b'"lock"', 1))
    with pytest.raises(TraceDamaged):
        remora.TwoTrack.continue_(old)
