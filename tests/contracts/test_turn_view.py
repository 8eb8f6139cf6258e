"""One contract for turns by key, over both storages: the index and the key-value file."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remora.errors import ConfigError, TraceError, TraceNotFound
from remora.events import (
    ActionDelta,
    AgentStartEvent,
    BlobRef,
    Event,
    Packed,
    PacketDelta,
    RunStartEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnStartEvent,
    pack,
)
from remora.ports import Clock
from remora.trace import (
    FileBlobs,
    FileTrace,
    KVTraceView,
    TraceEntry,
    TraceIndex,
    TraceStore,
    trace_key,
)

NODE = "src/a.py:load"
KEY = trace_key("01RUN", "lint", NODE, 1)
Reader = TraceStore | KVTraceView


@asynccontextmanager
async def reading(kind: str, state_dir: Path, writer: FileTrace) -> AsyncIterator[Reader]:
    if kind == "kv":
        async with KVTraceView(state_dir, FileBlobs(state_dir)) as view:
            yield view
    else:
        with TraceIndex(state_dir) as index:
            yield TraceStore(writer, FileBlobs(state_dir), index)


@pytest.fixture
async def writer(state_dir: Path, clock: Clock) -> AsyncIterator[FileTrace]:
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        yield trace


@pytest.fixture(params=["index", "kv"])
async def reader(request: pytest.FixtureRequest, state_dir: Path, writer: FileTrace) -> AsyncIterator[Reader]:
    async with reading(request.param, state_dir, writer) as found:
        yield found


def who(**more: Any) -> dict[str, Any]:
    return {"run_id": "01RUN", "operation": "lint", "node_id": NODE, "turn": 1} | more


def call(call_id: str = "1", **more: Any) -> Event:
    return ToolCallEvent(call_id=call_id, tool="run", args={"path": "src/a.py"}, **who(**more))


def result(call_id: str = "1", raw: Any = "None", raw_ref: BlobRef | None = None, **more: Any) -> Event:
    delta = PacketDelta(
        action=ActionDelta(tool="run", summary="ran", outcome="success", nodes=("a", "b")),
        diagnostics=("one", "two"),
    )
    return ToolResultEvent(
        call_id=call_id, tool="run", outcome="success", raw=raw, raw_ref=raw_ref, delta=delta, **who(**more)
    )


# The contract


async def test_a_key_gives_the_calls_of_its_turn_in_order(reader: Reader, writer: FileTrace) -> None:
    await writer.append("traces/A", [AgentStartEvent(format=1, **who(turn=0)), TurnStartEvent(**who())])
    recorded = await writer.append("traces/A", [call("1"), call("2"), result("2", {"two": [1.5, None]}), result("1")])
    first, second = await reader.get(KEY)
    assert (first.raw_output, second.raw_output) == ("None", {"two": [1.5, None]})
    assert (first.turn, first.timestamp, first.tool, first.args) == (1, recorded[3].ts, "run", {"path": "src/a.py"})
    assert first.packet_delta == {
        "action": {"tool": "run", "summary": "ran", "outcome": "success", "nodes": ["a", "b"]},
        "diagnostics": ["one", "two"],
    }


async def test_an_entry_has_all_parts_of_its_call_and_result(reader: Reader, writer: FileTrace) -> None:
    recorded = await writer.append("traces/A", [result("0", raw="alone"), call("1"), call("2"), result("2")])
    first, second, third = await reader.get(KEY)
    assert (first.args, first.raw_output, first.packet_delta is None) == ({}, "alone", False)
    assert second == TraceEntry(turn=1, timestamp=recorded[1].ts, tool="run", args={"path": "src/a.py"})
    assert third == TraceEntry(
        turn=1,
        timestamp=recorded[3].ts,
        tool="run",
        args={"path": "src/a.py"},
        raw_output="None",
        parsed_output=None,
        packet_delta={
            "action": {"tool": "run", "summary": "ran", "outcome": "success", "nodes": ["a", "b"]},
            "diagnostics": ["one", "two"],
        },
    )


async def test_an_appended_call_can_be_read_at_once(reader: Reader, writer: FileTrace) -> None:
    for number in range(3):
        await writer.append("traces/A", [call(str(number)), result(str(number))])
        assert len(await reader.get(KEY)) == number + 1


async def test_a_turn_without_calls_is_empty_and_not_listed_and_another_is_not_found(
    reader: Reader, writer: FileTrace
) -> None:
    await writer.append("runs/01RUN", [RunStartEvent(format=1, run_id="01RUN")])
    await writer.append("traces/A", [TurnStartEvent(**who()), result("0", **who(turn=2)), call("1", turn=2)])
    assert await reader.get(KEY) == await reader.get(trace_key("01RUN", "", "", 0)) == []
    assert [entry.raw_output for entry in await reader.get(trace_key("01RUN", "lint", NODE, 2))] == ["None", None]
    assert await reader.list_by_run("01RUN") == [trace_key("01RUN", "lint", NODE, 2)]
    for key in (trace_key("01RUN", "lint", NODE, 3), trace_key("01RUN", "lint", "src/a.py", 1)):
        with pytest.raises(TraceNotFound):
            await reader.get(key)
    with pytest.raises(ConfigError):
        await reader.get("nonsense")


async def test_keys_are_listed_by_run_node_and_operation_each_once(reader: Reader, writer: FileTrace) -> None:
    await writer.append("traces/B", [call("1", node_id="n:%"), call("2", node_id="n:%", run_id="01OTHER")])
    assert await reader.list_by_operation("lint")
    await writer.append("traces/A", [call("2", turn=2), result("2", turn=2), call("1"), result("1"), call("3")])
    await writer.append("traces/C", [call("1", operation="test"), call("1")])
    first, second = (trace_key("01RUN", "lint", NODE, turn) for turn in (1, 2))
    here, there = (trace_key(run, "lint", "n:%", 1) for run in ("01RUN", "01OTHER"))
    test = trace_key("01RUN", "test", NODE, 1)
    assert await reader.list_by_run("01RUN") == [second, first, here, test]
    assert await reader.list_by_run("01OTHER") == [there]
    assert await reader.list_by_node(NODE) == [second, first, test]
    assert await reader.list_by_node("n:%") == [here, there]
    assert await reader.list_by_node("n:") == await reader.list_by_operation("") == []
    assert await reader.list_by_operation("lint") == [second, first, here, there]
    assert len(await reader.get(first)) == 3


@pytest.mark.parametrize(
    "value",
    [b"\x00\xff", "x" * 20_000, {"a": (1, 2**80)}, "\ud800", [{"n": list(range(5000))}]],
    ids=lambda value: repr(value)[:9],
)
async def test_a_value_in_a_blob_comes_back_exactly_and_a_lost_one_is_an_error(
    reader: Reader, writer: FileTrace, state_dir: Path, value: Any
) -> None:
    packed, blobs = pack(value), FileBlobs(state_dir)
    assert isinstance(packed, Packed)
    reference = BlobRef(blob=await blobs.put(packed.data), size=len(packed.data), encoding=packed.encoding)
    await writer.append("traces/A", [call(), result(raw=None, raw_ref=reference)])
    assert (await reader.get(KEY))[0].raw_output == value
    path = blobs.path(reference.blob)
    assert path is not None
    path.unlink()
    with pytest.raises(TraceError, match="is gone"):
        await reader.get(KEY)


async def test_what_a_stream_holds_no_more_is_not_shown(reader: Reader, writer: FileTrace) -> None:
    await writer.append("traces/A", [call("1"), result("1")])
    await writer.append("traces/B", [TurnStartEvent(**who()), call("2", turn=2)])
    assert len(await reader.list_by_run("01RUN")) == 2
    writer.path("traces/A").unlink()
    assert await reader.get(KEY) == []
    assert await reader.list_by_run("01RUN") == [trace_key("01RUN", "lint", NODE, 2)]
    writer.path("traces/B").unlink()
    with pytest.raises(TraceNotFound):
        await reader.get(KEY)
    assert await reader.list_by_node(NODE) == []


async def test_a_damaged_stream_is_read_up_to_its_damage(reader: Reader, writer: FileTrace) -> None:
    await writer.append("traces/A", [call("1"), result("1"), call("2", turn=2), result("2", turn=2)])
    path = writer.path("traces/A")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + b"nonsense\n" + lines[3])
    assert await reader.list_by_run("01RUN") == [KEY]
    assert len(await reader.get(KEY)) == 1
    path.write_bytes(b"".join(lines))
    assert len(await reader.list_by_run("01RUN")) == 2


# Both give the same, whatever happened


_name = st.sampled_from("AB")
_part = st.sampled_from(["", "x", "x:%/y"])
_event = st.tuples(
    st.sampled_from(["turn", "call", "result"]), _part, _part, _part, st.integers(0, 2), st.sampled_from("12")
)
_act = st.tuples(_name, st.just("append"), _event) | st.tuples(_name, st.sampled_from(["delete", "look"]), st.none())


def _draft(kind: str, run: str, operation: str, node: str, turn: int, call_id: str) -> Event:
    owner = {"run_id": run, "operation": operation, "node_id": node, "turn": turn}
    if kind == "turn":
        return TurnStartEvent(**owner)
    return call(call_id, **owner) if kind == "call" else result(call_id, **owner)


async def _all_answers(reader: Reader) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in ("", "x", "x:%/y"):
        for ask in (reader.list_by_run, reader.list_by_node, reader.list_by_operation):
            found[f"{ask.__name__} {part}"] = await ask(part)
        for turn in range(3):
            for node in ("", "x"):
                key = trace_key(part, "x", node, turn)
                try:
                    found[key] = await reader.get(key)
                except TraceNotFound:
                    found[key] = None
    return found


@settings(max_examples=15)
@given(st.lists(_act, max_size=12))
def test_both_readers_give_the_same_whatever_was_appended_and_deleted(acts: list[tuple[str, str, Any]]) -> None:
    async def play(state_dir: Path) -> None:
        async with (
            FileTrace(state_dir, clock=_clock(), sync="off") as writer,
            reading("kv", state_dir, writer) as view,
            reading("index", state_dir, writer) as store,
        ):
            for number, (name, act, event) in enumerate(acts):
                if act == "append":
                    await writer.append(f"traces/{name}", [_draft(*event)])
                elif act == "look":
                    await view.list_by_run("x")
                elif writer.path(f"traces/{name}").exists():
                    await writer.close(f"traces/{name}")
                    writer.path(f"traces/{name}").rename(state_dir / f"{number}.gone")
            assert await _all_answers(view) == await _all_answers(store)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder) / "state"))


def _clock() -> Any:
    class Fixed:
        def now(self) -> datetime:
            return datetime(2026, 11, 15, tzinfo=UTC)

        def monotonic(self) -> float:
            return 0.0

    return Fixed()
