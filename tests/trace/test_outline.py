from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remora.events import (
    AgentEndEvent,
    AgentStartEvent,
    Event,
    FileChange,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolResultEvent,
    TurnStartEvent,
    UserInputEvent,
    digest,
    encode,
)
from remora.trace import Outline, read_events
from strategies import streams, texts

GOLDEN = Path(__file__).parents[1] / "golden" / "format-1-lint.jsonl"


def lines_of(events: list[Event]) -> list[bytes]:
    prev, lines = None, []
    for seq, event in enumerate(events):
        stamp = {"seq": seq, "ts": f"2026-11-15T18:20:45.{seq:06d}Z", "prev": prev}
        lines.append(encode(event.model_copy(update=stamp)))
        prev = digest(lines[-1])
    return lines


def read(path: Path) -> Outline:
    outline = Outline(path)
    outline.extend()
    return outline


def facts(outline: Outline) -> object:
    whole = (outline.events, outline.is_sealed, outline.last, outline.started, outline.here, outline.last_offset)
    return [list(outline), whole, str(outline.damage)]


@given(streams, st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reading_a_growing_stream_in_pieces_gives_what_reading_it_at_once_gives(
    tmp_path: Path, stream: list[Event], data: st.DataObject
) -> None:
    path = tmp_path / "growing.jsonl"
    path.write_bytes(b"")
    growing, lines = Outline(path), lines_of([AgentStartEvent(goal="g"), *stream])
    while lines:
        count = data.draw(st.integers(1, len(lines)))
        with path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines[:count]))
        lines = lines[count:]
        growing.extend()
    assert facts(growing) == facts(read(path))


@given(streams)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_event_lies_between_the_offsets_of_its_turn(tmp_path: Path, stream: list[Event]) -> None:
    path = tmp_path / "stream.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines_of([AgentStartEvent(goal="g"), *stream])))
    outline, data = read(path), path.read_bytes()
    assert outline.events == len(list(read_events(path)))
    joined = b"".join(data[outline[index].offset : outline.end(index)] for index in range(len(outline)))
    assert joined == data
    for event in read_events(path):
        index = outline.holding(event.seq)
        assert outline[index].seq <= event.seq
        assert index + 1 == len(outline) or event.seq < outline[index + 1].seq


@given(texts)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_can_pretend_to_be_another_turn_or_type(tmp_path: Path, text: str) -> None:
    fake = f'","type":"agent_end","turn":99,"data":{{{text}","turn":77,"data":'
    event = TurnStartEvent(turn=1, node_id=fake, operation=fake, agent_id=fake, run_id=fake)
    path = tmp_path / "stream.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines_of([AgentStartEvent(goal=fake, node_id=fake), event])))
    assert [row.turn for row in read(path)] == [0, 1]


def test_a_turn_has_its_tokens_its_marks_and_the_history_before_it(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    prompt = ({"role": "system", "content": "s" * 100}, {"role": "user", "content": "u" * 300})
    events = [
        AgentStartEvent(goal="g" * 50),
        TurnStartEvent(turn=1),
        ModelRequestEvent(turn=1, messages=prompt, tokens={"total": 100}, limit=500),
        ModelResponseEvent(turn=1, text="t" * 30),
        ToolResultEvent(
            turn=1, call_id="1", tool="edit", outcome="error", raw="r" * 1000, files=(FileChange(path="a", after="b"),)
        ),
        UserInputEvent(turn=2, text="hello"),
        ModelRequestEvent(turn=2, messages=prompt, tokens={"total": 120}, limit=500),
        ToolResultEvent(turn=2, call_id="2", tool="check", outcome="error", raw="x" * 9000, purpose="check"),
        TurnStartEvent(turn=3),
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines_of(events)))
    outline = read(path)
    one, two, three = outline[1], outline[2], outline[3]
    assert (one.tokens, one.limit, one.tool, one.flags) == (100, 500, "edit", 3)
    assert one.history == 150 and two.history == 150 + 30 + 1002 + 5 == three.history
    assert two.flags == 4 and two.tool == ""
    assert outline.prompt_bytes / outline.prompt_tokens == 800 / 220


@pytest.mark.parametrize("damage", [b"garbage\n", b'{"v":1,"seq":9}\n', b"\n", b"\xff\xfe\n"])
def test_a_damaged_stream_is_outlined_up_to_its_damage(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "stream.jsonl"
    whole = b"".join(line + b"\n" for line in lines_of([AgentStartEvent(goal="g"), TurnStartEvent(turn=1)]))
    path.write_bytes(whole + damage)
    outline = read(path)
    assert outline.damage is not None and outline.events == 2
    assert not outline.extend()


def test_an_unfinished_last_line_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    first, second = (line + b"\n" for line in lines_of([AgentStartEvent(goal="g"), AgentEndEvent()]))
    path.write_bytes(first + second[:20])
    outline = read(path)
    assert (outline.events, outline.is_sealed) == (1, False)
    path.write_bytes(first + second)
    assert outline.extend()
    assert (outline.events, outline.is_sealed) == (2, True)


def test_the_golden_stream_has_its_turns() -> None:
    outline, events = read(GOLDEN), list(read_events(GOLDEN))
    assert outline.events == len(events) and outline.is_sealed
    assert [row.turn for row in outline] == sorted({event.turn for event in events})


def test_memory_grows_with_the_number_of_turns_only(tmp_path: Path) -> None:
    path, turns = tmp_path / "stream.jsonl", 2000
    prompt = ({"role": "user", "content": "p" * 5000},)
    events: list[Event] = [AgentStartEvent(goal="g")]
    for turn in range(1, turns + 1):
        events += [TurnStartEvent(turn=turn), ModelRequestEvent(turn=turn, messages=prompt, tokens={"total": 9})]
    path.write_bytes(b"".join(line + b"\n" for line in lines_of(events)))
    del events
    read(path)
    tracemalloc.start()
    outline = read(path)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(outline) == turns + 1 and path.stat().st_size > 10_000_000
    assert kept < 150 * turns and peak < 2_000_000
