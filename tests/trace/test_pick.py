"""Picking some types of events gives what reading all of them and leaving out the others gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from remora.errors import TraceError
from remora.events import AgentStartEvent, Event, NoticeEvent, digest, encode
from remora.trace import pick_events, read_events
from strategies import streams

GOLDEN = Path(__file__).parents[1] / "golden" / "format-1-lint.jsonl"
TYPES = ("tool_result", "agent_end", "workspace_accepted")


def left_over(path: Path) -> list[Event]:
    """Of all that is intact, the events of these types."""
    found = []
    try:
        for event in read_events(path, torn_ok=True):
            found.append(event)
    except TraceError:
        pass
    return [event for event in found if event.type in TYPES]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(streams)
def test_any_stream_gives_the_same(tmp_path: Path, events: list[Event]) -> None:
    path, prev, lines = tmp_path / "a.jsonl", None, []
    for seq, event in enumerate(events):
        lines.append(encode(event.model_copy(update={"seq": seq, "ts": "2026-11-15T18:20:45.000000Z", "prev": prev})))
        prev = digest(lines[-1])
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    assert list(pick_events(path, TYPES)) == left_over(path)


def test_wherever_it_is_damaged_or_torn_the_same_is_given(tmp_path: Path) -> None:
    path, whole, chance = tmp_path / "a.jsonl", GOLDEN.read_bytes(), random.Random(4)
    assert left_over(GOLDEN)
    for place in chance.sample(range(len(whole)), 150):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
        assert list(pick_events(path, TYPES)) == left_over(path), f"byte {place}"
        path.write_bytes(whole[:place])
        assert list(pick_events(path, TYPES)) == left_over(path), f"cut at byte {place}"


@pytest.mark.parametrize("text", ['","type":"tool_result"', '"type":"tool_result"'])
def test_words_of_a_tool_are_no_type(tmp_path: Path, text: str) -> None:
    path, prev, lines = tmp_path / "a.jsonl", None, []
    for seq, draft in enumerate([AgentStartEvent(format=1, goal=text), NoticeEvent(message=text, run_id=text)] * 2):
        lines.append(encode(draft.model_copy(update={"seq": seq, "ts": "2026-11-15T18:20:45.000000Z", "prev": prev})))
        prev = digest(lines[-1])
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    assert list(pick_events(path, TYPES)) == []


def test_of_a_file_that_is_not_there_nothing_is_given(tmp_path: Path) -> None:
    assert list(pick_events(tmp_path / "none.jsonl", TYPES)) == []
