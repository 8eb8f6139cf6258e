"""The packet at any turn of a long stream: sooner through checkpoints, and never another one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remora import analysis
from remora.app import _streams
from remora.app._streams import Reading
from remora.config import Config
from remora.context.contracts import ToolSpec, make_success_result
from remora.context.models import DecisionPacket
from remora.context.projection import EMPTY, apply, project
from remora.errors import TraceDamaged
from remora.events import AgentEndEvent, Call, Event
from remora.inference import EstimatedCounter
from remora.ports import Decision
from remora.trace import FileBlobs, FileTrace, TraceIndex, read_events, verify
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
def reading(tmp_path: Path, state_dir: Path) -> Reading:
    return Reading(tmp_path, state_dir, Config())


@pytest.fixture
def folded_events(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each fold took."""
    counts: list[int] = []

    def counting(events: Iterator[Event], *args: Any, **more: Any) -> analysis.Folded:
        taken = list(events)
        counts.append(len(taken))
        return analysis.fold(taken, *args, **more)

    monkeypatch.setattr(_streams, "fold", counting)
    return counts


def kept(state_dir: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(state_dir / "index.db")) as db:
        return db.execute("SELECT seq, packet_json FROM checkpoints ORDER BY seq").fetchall()


def change(state_dir: Path, *statements: str) -> None:
    with closing(sqlite3.connect(state_dir / "index.db")) as db, db:
        for statement in statements:
            db.execute(statement)


async def test_the_packet_of_every_turn_is_that_of_a_full_fold(
    state_dir: Path, clock: Any, reading: Reading, folded_events: list[int]
) -> None:
    path = await make_long_stream(state_dir, clock)
    expected = list(full_folds(path))
    assert len(expected) == TURNS + 1
    assert reading.packet(AGENT) == expected[-1][1]
    assert len(kept(state_dir)) == 3
    first = folded_events[-1]
    for turn, packet in expected:
        found = reading.packet(AGENT, turn)
        assert found == packet
        assert list(found.knowledge) == list(packet.knowledge)
    assert reading.packet(AGENT) == expected[-1][1]
    assert folded_events[-1] < first / 2


async def test_checkpoints_missing_in_the_middle_are_filled(state_dir: Path, clock: Any, reading: Reading) -> None:
    await make_long_stream(state_dir, clock)
    reading.packet(AGENT, 60)
    assert len(kept(state_dir)) == 1
    reading.packet(AGENT)
    before = kept(state_dir)
    assert len(before) == 3
    change(state_dir, "DELETE FROM checkpoints WHERE seq > 300")
    reading.packet(AGENT)
    assert kept(state_dir)[-2:] == before[-2:]


@pytest.mark.parametrize(
    "mistake",
    [
        "UPDATE checkpoints SET packet_json = replace(packet_json, 'counted', 'guessed')",
        "UPDATE checkpoints SET packet_json = CAST('{}' AS BLOB)",
        "UPDATE checkpoints SET packet_json = zeroblob(100)",
        "UPDATE checkpoints SET packet_json = NULL_, head = head",
        "UPDATE checkpoints SET head = 'sha256:0'",
        "UPDATE checkpoints SET seq = seq + 1",
        "UPDATE events SET offset = offset + 1",
        "UPDATE events SET turn = 0",
        "DROP TABLE checkpoints",
    ],
)
async def test_a_damaged_checkpoint_never_changes_the_answer(
    state_dir: Path, clock: Any, reading: Reading, mistake: str
) -> None:
    path = await make_long_stream(state_dir, clock)
    packet = reading.packet(AGENT)
    halfway = project(event for event in read_events(path) if event.turn <= 100)
    change(state_dir, mistake.replace("NULL_", "CAST('null' AS BLOB)"))
    assert reading.packet(AGENT) == packet
    assert reading.packet(AGENT, 100) == halfway


async def test_a_checkpoint_that_fits_its_line_but_is_another_packet_is_not_believed(
    state_dir: Path, clock: Any, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_long_stream(state_dir, clock)
    packet = reading.packet(AGENT)
    with TraceIndex(state_dir) as index:
        wrong = {seq: data.replace(b"counted", b"guessed") for seq, data in kept(state_dir)}
        assert index.save_checkpoints(STREAM, "1", wrong) == 3
    assert reading.packet(AGENT) == packet
    with TraceIndex(state_dir) as index:
        assert index.save_checkpoints(STREAM, "1", wrong) == 3

    # The seeded mistake: whatever is kept is believed.
    monkeypatch.setattr(_streams, "restored", lambda data, _: DecisionPacket.model_validate_json(data))
    assert reading.packet(AGENT) != packet


async def test_a_rewritten_stream_uses_none_of_the_old_checkpoints(
    state_dir: Path, clock: Any, reading: Reading
) -> None:
    path = await make_long_stream(state_dir, clock)
    reading.packet(AGENT)
    path.unlink()
    await make_long_stream(state_dir, clock, goal="count again")
    assert reading.packet(AGENT).goal == "count again"
    assert reading.packet(AGENT) == project(read_events(path))


async def test_damage_before_a_checkpoint_is_told_as_a_full_fold_tells_it(
    state_dir: Path, clock: Any, reading: Reading
) -> None:
    path = await make_long_stream(state_dir, clock)
    reading.packet(AGENT)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"counted 7", b"counted 8", 1))
    assert verify(path).status == "damaged"
    with pytest.raises(TraceDamaged):
        reading.packet(AGENT)
    path.write_bytes(whole)
    assert reading.packet(AGENT).turn == TURNS


async def test_another_projector_uses_none_of_the_old_checkpoints(
    state_dir: Path, clock: Any, reading: Reading, folded_events: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_long_stream(state_dir, clock)
    packet = reading.packet(AGENT)
    monkeypatch.setattr(_streams, "PROJECTOR", "2")
    assert reading.packet(AGENT) == packet
    assert folded_events[0] == folded_events[1]
    assert reading.packet(AGENT) == packet
    assert folded_events[2] < folded_events[1] / 2


async def test_a_short_stream_makes_no_index(state_dir: Path, clock: Any, reading: Reading) -> None:
    path = await make_long_stream(state_dir, clock, turns=3)
    assert reading.packet(AGENT) == project(read_events(path))
    assert not (state_dir / "index.db").exists()
