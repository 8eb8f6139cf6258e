from __future__ import annotations

from pathlib import Path

import pytest

from remora.context.manager import ContextManager
from remora.errors import TraceError
from remora.events import (
    EVENT_TYPES,
    EventEmitter,
    EventName,
    JsonlEventEmitter,
    MemoryEvent,
    NullEventEmitter,
    ToolResultEvent,
    TurnStartEvent,
    UnknownEvent,
    as_event,
)
from remora.trace import read_events, verify

GUIDE_EVENT = {"type": "tool_result", "tool_name": "run_linter", "data": {"summary": "3 errors"}}


@pytest.fixture(params=["file", "null"])
def emitter(request: pytest.FixtureRequest, tmp_path: Path) -> EventEmitter:
    return JsonlEventEmitter(tmp_path, "01EMIT") if request.param == "file" else NullEventEmitter()


async def test_an_emitter_gives_the_event_back(emitter: EventEmitter) -> None:
    event = await emitter.emit(TurnStartEvent(turn=3))
    assert isinstance(event, TurnStartEvent)
    assert event.turn == 3


async def test_emitted_events_are_a_stream_like_any_other(tmp_path: Path) -> None:
    async with JsonlEventEmitter(tmp_path, "01EMIT") as emitter:
        await emitter.emit({"event": "agent_start", "goal": "g"})
        await emitter.emit(GUIDE_EVENT)
        await emitter.emit({"type": "my_own_type", "colour": "red"})
        await emitter.emit({"type": EventName.AGENT_END})
    assert verify(emitter.path).status == "sealed"
    events = list(read_events(emitter.path))
    assert [event.type for event in events] == ["agent_start", "tool_result", "my_own_type", "agent_end"]
    assert events[1].body() == {"tool_name": "run_linter", "summary": "3 errors"}
    assert events[2].body() == {"colour": "red"}


async def test_a_value_that_json_cannot_hold_is_refused_and_the_stream_stays_whole(tmp_path: Path) -> None:
    async with JsonlEventEmitter(tmp_path, "01EMIT") as emitter:
        with pytest.raises(TraceError, match="has a value that JSON cannot"):
            await emitter.emit({"type": "mine", "value": object()})
        await emitter.emit({"type": "mine", "value": 1})
    assert len(list(read_events(emitter.path))) == 1


def test_every_type_has_a_name() -> None:
    assert {name.value for name in EventName} == set(EVENT_TYPES)
    assert EventName.TOOL_RESULT == "tool_result"


def test_a_dict_that_fits_its_type_becomes_it() -> None:
    event = as_event({"type": "tool_result", "call_id": "c", "tool": "t", "outcome": "success", "data": {"raw": 1}})
    assert isinstance(event, ToolResultEvent)
    assert event.raw == 1
    assert isinstance(as_event(GUIDE_EVENT), UnknownEvent)
    assert isinstance(as_event({"type": "x", "data": [1]}), MemoryEvent)


def test_the_guides_dict_is_folded_all_the_same() -> None:
    manager = ContextManager({"agent_id": "a", "goal": "g", "operation": "lint", "node_id": "n"})
    manager.apply_event(GUIDE_EVENT)
    assert manager.packet.recent_actions[0].summary == "3 errors"
