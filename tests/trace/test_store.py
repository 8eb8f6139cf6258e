from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.errors import ConfigError
from remora.events import (
    ActionDelta,
    BlobRef,
    Event,
    PacketDelta,
    ToolCallEvent,
    ToolResultEvent,
)
from remora.ports import Clock
from remora.trace import FileBlobs, FileTrace, Filter, TraceIndex, TraceStore, parse_key, trace_key

NODE = "src/a.py:load"


@pytest.fixture
def blobs(state_dir: Path) -> FileBlobs:
    return FileBlobs(state_dir)


@pytest.fixture
async def store(state_dir: Path, clock: Clock, blobs: FileBlobs) -> AsyncIterator[TraceStore]:
    async with FileTrace(state_dir, clock=clock, sync="off") as writer:
        with TraceIndex(state_dir) as index:
            yield TraceStore(writer, blobs, index)


def who(**more: Any) -> dict[str, Any]:
    return {"run_id": "01RUN", "operation": "lint", "node_id": NODE} | more


def call(call_id: str = "1", *, turn: int = 1, **more: Any) -> Event:
    return ToolCallEvent(call_id=call_id, tool="run", args={"path": "src/a.py"}, turn=turn, **who(**more))


def result(call_id: str = "1", *, turn: int = 1, raw: Any = "None", raw_ref: BlobRef | None = None) -> Event:
    delta = PacketDelta(action=ActionDelta(tool="run", summary="ran", outcome="success"))
    return ToolResultEvent(
        call_id=call_id, tool="run", outcome="success", raw=raw, raw_ref=raw_ref, turn=turn, delta=delta, **who()
    )


# Keys


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.integers(0, 10**12))
def test_a_key_gives_back_the_parts_it_was_made_of(run_id: str, operation: str, node_id: str, turn: int) -> None:
    key = trace_key(run_id, operation, node_id, turn)
    assert parse_key(key) == (run_id, operation, node_id, turn)
    assert key.count(":") == 4
    assert key.isascii()
    assert key.isprintable()


_parts = st.text("ab:%/", max_size=3)


@given(st.tuples(_parts, _parts, _parts), st.tuples(_parts, _parts, _parts))
def test_two_turns_never_share_a_key(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert (trace_key(*one, 1) == trace_key(*other, 1)) == (one == other)


@given(st.text(":%aF3/0trace", max_size=20).map(lambda text: f"trace:{text}"))
def test_what_is_read_as_a_key_is_written_the_same(text: str) -> None:
    try:
        parts = parse_key(text)
    except ConfigError:
        return
    assert trace_key(*parts) == text


@pytest.mark.parametrize(
    "text",
    ["", "trace", "trace:a:b:c", "trace:a:b:c:d", "trace:a:b:c:-1", "trace:a:b:c:01", "trace:a:b:c:1:1", "x:a:b:c:1",
     "trace:a:b:c%zz:1", "trace:a:b:%ff:1", "trace:a:b:%3a:1", "trace:a b:b:c:1", "trace:a:b:c:١",
     f"trace:a:b:c:{'9' * 99}"],
)  # fmt: skip
def test_what_is_no_key_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a trace key"):
        parse_key(text)


async def test_an_appended_event_can_be_read_and_searched_at_once(store: TraceStore) -> None:
    for number in range(3):
        await store.append("traces/A", [call(str(number)), result(str(number), raw=f"bird {number}")])
        assert len(await store.get(trace_key("01RUN", "lint", NODE, 1))) == number + 1
        assert len(await store.search("bird")) == number + 1
    assert len(await store.search("bird", Filter(run="01RUN"), limit=2)) == 2
    assert await store.search("bird", Filter(run="other")) == []
