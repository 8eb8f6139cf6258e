from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.errors import ConfigError, TraceError, TraceNotFound
from remora.events import (
    ActionDelta,
    AgentStartEvent,
    BlobRef,
    Event,
    Packed,
    PacketDelta,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    pack,
)
from remora.ports import Clock
from remora.trace import FileBlobs, FileTrace, Filter, TraceEntry, TraceIndex, TraceStore, parse_key, trace_key

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


# Entries


async def test_a_key_gives_the_calls_of_its_turn_in_order(store: TraceStore) -> None:
    await store.append("traces/A", [AgentStartEvent(format=1, **who()), TurnStartEvent(turn=1, **who())])
    await store.append("traces/A", [call("1"), result("1", raw={"value": None}), call("2"), result("2", raw="two")])
    recorded = await store.append("traces/A", [TurnStartEvent(turn=2, **who()), call("3", turn=2), result("3", turn=2)])
    first = await store.get(trace_key("01RUN", "lint", NODE, 1))
    assert [(entry.turn, entry.tool, entry.raw_output) for entry in first] == [
        (1, "run", {"value": None}),
        (1, "run", "two"),
    ]
    assert await store.get(trace_key("01RUN", "lint", NODE, 2)) == [
        TraceEntry(
            turn=2,
            timestamp=recorded[2].ts,
            tool="run",
            args={"path": "src/a.py"},
            raw_output="None",
            parsed_output=None,
            packet_delta={"action": {"tool": "run", "summary": "ran", "outcome": "success"}},
        )
    ]


async def test_results_find_their_calls_by_id_not_by_place(store: TraceStore) -> None:
    await store.append("traces/A", [call("1"), call("2"), result("2", raw="two"), result("1", raw="one")])
    entries = await store.get(trace_key("01RUN", "lint", NODE, 1))
    assert [entry.raw_output for entry in entries] == ["one", "two"]


async def test_a_call_without_a_result_and_a_result_without_a_call_are_entries(store: TraceStore) -> None:
    await store.append("traces/A", [result("0", raw="alone"), call("1")])
    entries = await store.get(trace_key("01RUN", "lint", NODE, 1))
    assert [(entry.args, entry.raw_output, entry.packet_delta is None) for entry in entries] == [
        ({}, "alone", False),
        ({"path": "src/a.py"}, None, True),
    ]


@pytest.mark.parametrize("value", [b"\x00\xff", "x" * 20_000, {"a": (1, 2**80)}, "\ud800", [{"n": list(range(5000))}]])
async def test_a_value_in_a_blob_comes_back_exactly(store: TraceStore, blobs: FileBlobs, value: Any) -> None:
    packed = pack(value)
    assert isinstance(packed, Packed)
    reference = BlobRef(blob=await blobs.put(packed.data), size=len(packed.data), encoding=packed.encoding)
    await store.append("traces/A", [call(), result(raw=None, raw_ref=reference)])
    assert (await store.get(trace_key("01RUN", "lint", NODE, 1)))[0].raw_output == value


async def test_a_blob_that_is_gone_is_an_error_and_not_an_empty_output(store: TraceStore) -> None:
    reference = BlobRef(blob="sha256:" + "a" * 64, size=1)
    await store.append("traces/A", [call(), result(raw=None, raw_ref=reference)])
    with pytest.raises(TraceError, match="is gone"):
        await store.get(trace_key("01RUN", "lint", NODE, 1))


async def test_a_turn_that_no_stream_has_is_not_found(store: TraceStore) -> None:
    await store.append("traces/A", [call()])
    for key in (trace_key("01RUN", "lint", NODE, 2), trace_key("01RUN", "lint", "src/a.py", 1)):
        with pytest.raises(TraceNotFound):
            await store.get(key)
    with pytest.raises(ConfigError):
        await store.get("nonsense")


async def test_a_turn_without_calls_has_no_entries_and_is_not_listed(store: TraceStore) -> None:
    await store.append("traces/A", [TurnStartEvent(turn=1, **who())])
    assert await store.get(trace_key("01RUN", "lint", NODE, 1)) == []
    assert await store.list_by_run("01RUN") == []


async def test_keys_are_listed_by_run_node_and_operation_each_once(store: TraceStore) -> None:
    await store.append("traces/A", [call("1"), result("1"), call("2", turn=2), result("2", turn=2)])
    await store.append("traces/B", [call("1", node_id="n:%"), call("2", node_id="n:%", run_id="01OTHER")])
    await store.append("traces/C", [call("1", operation="test")])
    first, second = (trace_key("01RUN", "lint", NODE, turn) for turn in (1, 2))
    here, there = (trace_key(run, "lint", "n:%", 1) for run in ("01RUN", "01OTHER"))
    test = trace_key("01RUN", "test", NODE, 1)
    assert await store.list_by_run("01RUN") == [first, second, here, test]
    assert await store.list_by_run("01OTHER") == [there]
    assert await store.list_by_node(NODE) == [first, second, test]
    assert await store.list_by_node("n:%") == [here, there]
    assert await store.list_by_operation("lint") == [first, second, here, there]
    assert await store.list_by_operation("") == []
    for key in await store.list_by_run("01RUN"):
        assert await store.get(key)


async def test_an_appended_event_can_be_read_and_searched_at_once(store: TraceStore) -> None:
    for number in range(3):
        await store.append("traces/A", [call(str(number)), result(str(number), raw=f"bird {number}")])
        assert len(await store.get(trace_key("01RUN", "lint", NODE, 1))) == number + 1
        assert len(await store.search("bird")) == number + 1
    assert len(await store.search("bird", Filter(run="01RUN"), limit=2)) == 2
    assert await store.search("bird", Filter(run="other")) == []
