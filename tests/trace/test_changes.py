"""Reading only what can change the packet gives the same packet, and finds the same damage."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from remora.context.projection import EMPTY, apply, project
from remora.errors import RemoraError
from remora.events import Event, ModelRequestEvent, canonical, digest, encode
from remora.trace import read_changes, read_events
from strategies import streams

GOLDEN = Path(__file__).parents[1] / "golden" / "format-1-lint.jsonl"
Read = Callable[[Path], Iterator[Any]]


def written(path: Path, events: list[Event]) -> Path:
    prev, lines = None, []
    for seq, event in enumerate(events):
        ts = f"2026-11-15T18:20:45.{seq:06d}Z"
        lines.append(encode(event.model_copy(update={"seq": seq, "ts": ts, "prev": prev})))
        prev = digest(lines[-1])
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def outcome(read: Read, path: Path) -> str:
    """The packet as far as it could be folded, and what stopped it."""
    packet = EMPTY
    try:
        for event in read(path):
            packet = project([event], start=packet)
    except RemoraError as error:
        return f"{canonical(packet)!r} {error.message}"
    return f"{canonical(packet)!r}"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(streams)
def test_any_stream_folds_to_the_same_packet(tmp_path: Path, events: list[Event]) -> None:
    path = written(tmp_path / "a.jsonl", events)
    assert outcome(read_changes, path) == outcome(read_events, path)


def test_only_what_can_change_the_packet_is_given() -> None:
    kinds = {change.type for change in read_changes(GOLDEN)}
    assert {"agent_start", "turn_start", "tool_result"} <= kinds
    assert not kinds & {"model_request", "model_response", "tool_call"}


@pytest.mark.parametrize("turn", range(7))
def test_the_packet_of_a_turn_is_the_one_that_replaying_to_it_gives(turn: int) -> None:
    packet = EMPTY
    for event in read_events(GOLDEN):
        if event.turn > turn:
            break
        packet = apply(packet, event)
    assert project(read_changes(GOLDEN, to=turn)) == packet


def test_a_receipt_names_the_packet_that_the_changes_before_it_fold_to() -> None:
    shown = [event for event in read_events(GOLDEN) if isinstance(event, ModelRequestEvent)]
    last = shown[-1]
    before = [change for change in read_changes(GOLDEN) if change.seq < last.seq]
    assert digest(canonical(project(before))) == last.packet_sha256


def test_the_first_damage_is_the_same_wherever_it_is(tmp_path: Path) -> None:
    path, whole, chance = tmp_path / "a.jsonl", GOLDEN.read_bytes(), random.Random(4)
    last_line = whole[:-1].rindex(b"\n") + 1
    for place in chance.sample(range(last_line), 150):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
        assert outcome(read_changes, path) == outcome(read_events, path), f"byte {place}"


@pytest.mark.parametrize("keep", [0, 1, 200, -1, -200])
def test_a_cut_stream_is_told(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOLDEN.read_bytes()[:keep])
    assert outcome(read_changes, path) == outcome(read_events, path)


@pytest.mark.parametrize(
    "record",
    [
        b'{"v":2,"seq":1,"ts":"","type":"turn_start","turn":7,"data":{}',
        b'{"v":1,"seq":1,"ts":"2026-11-15T18:20:45.000001Z","type":"turn_start","turn":"7","data":{}',
        b'{"v":1,"seq":1,"ts":"2026-11-15T18:20:45.000001Z","type":"turn_start","turn":7,"node_id":5,"data":{}',
        b'{"v":1,"seq":1,"ts":"2026-11-15T18:20:45.000001Z","type":"turn_start","turn":7,"data":[]',
        b'{"v":1,"seq":1,"ts":"2026-11-15T18:20:45.000001Z","type":"new","turn":7,"data":{"delta":{"v":9}}',
        b'{"v":1,"seq":1,"ts":"2026-11-15T18:20:45.000001Z","type":"agent_end","turn":7,"data":{}',
        b'{"v":1,"seq":2,"ts":"2026-11-15T18:20:45.000001Z","type":"turn_start","turn":7,"data":{}',
        b'{"v":1,"seq":1,"ts":"2026-11-15T18:20:45.000001Z","type":"tool_result","turn":7,"data":{"delta":4}',
    ],
)
def test_strange_records_in_the_middle_do_what_their_typed_events_do(tmp_path: Path, record: bytes) -> None:
    path, prev = tmp_path / "a.jsonl", None
    lines: list[bytes] = []
    for line in [b'{"v":1,"seq":0,"ts":"2026-11-15T18:20:45.000001Z","type":"notice","data":{}', record, record]:
        named = line.replace(b'"seq":1', b'"seq":%d' % len(lines)) if lines else line
        lines.append(named + (b',"prev":"%b"}' % prev.encode() if prev else b',"prev":null}'))
        prev = digest(lines[-1])
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    assert outcome(read_changes, path) == outcome(read_events, path)
