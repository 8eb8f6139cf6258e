"""The packet at any turn of a long stream, as `Project.packet` gives it, is that of folding every event."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remora.app import Project
from remora.app._streams import Streams
from remora.config import Config
from remora.context.contracts import ToolSpec, make_success_result
from remora.context.models import DecisionPacket
from remora.context.projection import EMPTY, apply, project
from remora.errors import TraceDamaged
from remora.events import AgentEndEvent, Call
from remora.inference import EstimatedCounter
from remora.ports import Decision
from remora.trace import FileBlobs, FileTrace, read_events, verify
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

TURNS = 160
AGENT = "01LONG"
STREAM = f"traces/{AGENT}"


async def make_long_stream(state_dir: Path, clock: Any, *, turns: int = TURNS, goal: str = "count") -> Path:
    """A stream as our own loop records it, of about five events a turn."""
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        track = TwoTrack.of(
            Wiring(
                identity=Identity(AGENT),
                goal=goal,
                tools=[ToolSpec(name="count", description="Count on.", effects="none")],
                system_prompt="Count.",
                prompts=PromptSettings(2000),
                writer=trace,
                blobs=FileBlobs(state_dir),
                counter=EstimatedCounter(),
                clock=clock,
            )
        )
        await track.start()
        for turn in range(turns):
            await track.request()
            known = {f"key_{turn % 40}": {"number": turn, "text": "é\n" * (turn % 3)}}
            done = make_success_result(turn, f"counted {turn}", knowledge_delta=known)
            call = Call(call_id=f"c{turn}", tool="count", args={})
            for chosen in await track.response(Decision(calls=(call,), text="", model="m", usage={}, finish="")):
                await track.call(chosen, lambda value=done: value)
        await track.end(AgentEndEvent())
        return trace.path(STREAM)


def full_folds(path: Path) -> Iterator[tuple[int, DecisionPacket]]:
    """The packet after each turn, every event folded."""
    packet, turn = EMPTY, 0
    for event in read_events(path):
        if event.turn > turn:
            yield turn, packet
            turn = event.turn
        packet = apply(packet, event)
    yield turn, packet


@pytest.fixture
def reading(tmp_path: Path, state_dir: Path) -> Streams:
    return Project(tmp_path, state_dir, Config()).streams


async def test_the_packet_of_every_turn_is_that_of_a_full_fold(state_dir: Path, clock: Any, reading: Streams) -> None:
    path = await make_long_stream(state_dir, clock)
    expected = list(full_folds(path))
    assert len(expected) == TURNS + 1
    assert reading.packet(AGENT) == expected[-1][1]
    for turn, packet in expected:
        found = reading.packet(AGENT, turn)
        assert found == packet
        assert list(found.knowledge) == list(packet.knowledge)
    assert reading.packet(AGENT) == expected[-1][1]


async def test_damage_is_reported_as_a_full_fold_reports_it(state_dir: Path, clock: Any, reading: Streams) -> None:
    path = await make_long_stream(state_dir, clock)
    reading.packet(AGENT)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"counted 7", b"counted 8", 1))
    assert verify(path).status == "damaged"
    with pytest.raises(TraceDamaged) as quick:
        reading.packet(AGENT)
    with pytest.raises(TraceDamaged) as full:
        project(read_events(path))
    assert (quick.value.line, quick.value.message) == (full.value.line, full.value.message)
    path.write_bytes(whole)
    assert reading.packet(AGENT).turn == TURNS


async def test_the_packet_is_folded_without_making_an_index(state_dir: Path, clock: Any, reading: Streams) -> None:
    path = await make_long_stream(state_dir, clock, turns=3)
    assert reading.packet(AGENT) == project(read_events(path))
    assert not (state_dir / "index.db").exists()
