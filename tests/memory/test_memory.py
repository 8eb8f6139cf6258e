from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from remora import events
from remora.context.projection import project
from remora.events import JsonlEventEmitter
from remora.memory.context import ContextManager
from remora.memory.schemas import DecisionPacket, MemoryEvent, PacketDelta, ToolResultEvent
from remora.trace import read_events


def result(**delta: Any) -> ToolResultEvent:
    return ToolResultEvent(tool_name="read_file", raw_output={"text": "x" * 500}, delta=PacketDelta(**delta))


def test_a_packet_needs_a_goal_and_nothing_else() -> None:
    assert DecisionPacket(goal="g").model_dump() == {
        "goal": "g",
        "recent_history": [],
        "knowledge": {},
        "last_error": None,
        "hub_context_freshness": {},
    }
    with pytest.raises(ValidationError):
        ToolResultEvent(tool_name="t", raw_output="x")  # type: ignore[call-arg]


def test_events_change_the_packet_by_their_delta_alone() -> None:
    ctx = ContextManager("Fix a.py")
    ctx.apply_event(result(add_history="Read a.py", update_knowledge={"a.py": "a class"}))
    ctx.apply_event(result(set_error="line 5"))
    ctx.apply_event(result(update_knowledge={"a.py": "a function"}))
    packet = ctx.packet
    assert (packet.goal, packet.recent_history, packet.last_error) == ("Fix a.py", ["Read a.py"], "line 5")
    assert packet.knowledge == {"a.py": "a function"}
    assert "xxx" not in packet.model_dump_json()


def test_only_the_last_ten_lines_stay() -> None:
    ctx = ContextManager("g")
    for number in range(12):
        ctx.apply_event(result(add_history=f"line {number}"))
    assert ctx.packet.recent_history == [f"line {number}" for number in range(2, 12)]


def test_hooks_change_the_packet_they_are_given() -> None:
    def refresh(packet: DecisionPacket) -> None:
        packet.knowledge["a.py:load"] = f"seen after {packet.recent_history[-1]}"
        packet.hub_context_freshness["a.py:load"] = 17.0
        packet.last_error = None

    ctx = ContextManager("g")
    ctx.apply_event(result(add_history="Read a.py", set_error="bad"))
    ctx.run_middleware([refresh, lambda packet: packet.recent_history.append("hub asked")])
    packet = ctx.packet
    assert packet.knowledge == {"a.py:load": "seen after Read a.py"}
    assert packet.hub_context_freshness == {"a.py:load": 17.0}
    assert (packet.last_error, packet.recent_history) == (None, ["Read a.py", "hub asked"])


def test_a_packet_once_given_does_not_change() -> None:
    ctx = ContextManager("g")
    packet = ctx.packet
    packet.knowledge["k"] = "v"
    ctx.apply_event(result(add_history="later"))
    assert (packet.recent_history, ctx.packet.knowledge) == ([], {})


async def test_the_same_event_goes_to_the_stream_whole(tmp_path: Path) -> None:
    emitter = JsonlEventEmitter(tmp_path, agent_id="01A")
    await emitter.emit(result(add_history="Read a.py").as_event())
    (event,) = read_events(tmp_path / "traces" / "01A.jsonl")
    assert isinstance(event, events.ToolResultEvent)
    assert event.raw == {"text": "x" * 500}
    assert project([event]).recent_history == ["Read a.py"]


def test_any_event_of_the_plan_is_one_of_format_1() -> None:
    event = MemoryEvent(type="notice", delta=PacketDelta(set_error="e")).as_event()
    assert isinstance(event, events.NoticeEvent)
    assert project([event]).last_error == "e"
