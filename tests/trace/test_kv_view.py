"""What holds for the key-value view alone. The contract of both views is in `tests/contracts/test_turn_view.py`."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from remora.app import open_project
from remora.errors import ConfigError, TraceNotFound
from remora.events import (
    ActionDelta,
    AgentEndEvent,
    BlobRef,
    Event,
    PacketDelta,
    ToolCallEvent,
    ToolResultEvent,
)
from remora.kv import KVManager
from remora.ports import Clock
from remora.trace import FileBlobs, FileTrace, KVTraceView, Library, Retention, trace_key

NODE = "src/a.py:load"
KEY = trace_key("01RUN", "lint", NODE, 1)


@pytest.fixture
async def writer(state_dir: Path, clock: Clock) -> AsyncIterator[FileTrace]:
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        yield trace


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


async def test_the_file_holds_the_specifications_keys(writer: FileTrace, state_dir: Path) -> None:
    await writer.append("traces/A", [call("1"), result("1", raw="seen")])
    async with KVTraceView(state_dir, FileBlobs(state_dir)) as view:
        assert await view.catch_up()
    async with KVManager(state_dir / "trace.kv") as kv:
        kept = {each.key: each.value for each in await kv.scan()}
    assert kept[KEY]["traces/A"][0]["raw_output"] == "seen"
    assert {key: value for key, value in kept.items() if key.startswith("index:")} == {
        "index:node:src/a.py%3Aload:traces/A": [KEY],
        "index:operation:lint:traces/A": [KEY],
        "index:run:01RUN:traces/A": [KEY],
    }


async def test_only_what_is_indexed_can_be_listed_and_changing_that_makes_it_anew(
    writer: FileTrace, state_dir: Path
) -> None:
    await writer.append("traces/A", [call("1")])
    async with KVTraceView(state_dir, FileBlobs(state_dir), by=["node"]) as view:
        assert await view.list_by_node(NODE) == [KEY]
        with pytest.raises(ConfigError, match=r"cannot be listed by run"):
            await view.list_by_run("01RUN")
    async with KVTraceView(state_dir, FileBlobs(state_dir), by=["run"]) as view:
        assert await view.list_by_run("01RUN") == [KEY]
    async with KVManager(state_dir / "trace.kv") as kv:
        assert [each.key for each in await kv.scan("index:")] == ["index:run:01RUN:traces/A"]


_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "zeroed": lambda data: bytes(len(data)),
    "cut": lambda data: data[: len(data) // 2],
    "garbage": lambda data: random.Random(1).randbytes(5000),
    "half overwritten": lambda data: data[: len(data) // 2].ljust(len(data), b"\0"),
    "other values": lambda data: data.replace(b"success", b"failure"),
}


@pytest.mark.parametrize("damage", _DAMAGES)
async def test_a_damaged_view_is_made_anew_from_the_streams(writer: FileTrace, state_dir: Path, damage: str) -> None:
    await writer.append("traces/A", [each for turn in range(40) for each in (call(turn=turn), result(turn=turn))])
    path = state_dir / "trace.kv"
    async with KVTraceView(state_dir, FileBlobs(state_dir)) as view:
        keys = await view.list_by_node(NODE)
        expected = [await view.get(key) for key in keys]
    path.write_bytes(_DAMAGES[damage](path.read_bytes()))
    async with KVTraceView(state_dir, FileBlobs(state_dir)) as view:
        assert [await view.list_by_node(NODE), [await view.get(key) for key in keys]] == [keys, expected]
        assert "The key-value view was rebuilt" in view.notices[0]
        assert await view.catch_up()
    assert not (state_dir / "trace.kv.damaged").exists()
    async with KVManager(path) as kv:
        assert set(keys) <= {each.key for each in await kv.scan("trace:")}


async def test_where_the_view_cannot_be_written_the_streams_answer(writer: FileTrace, state_dir: Path) -> None:
    await writer.append("traces/A", [call("1")])
    (state_dir / "trace.kv.lock").mkdir()
    async with KVTraceView(state_dir, FileBlobs(state_dir)) as view:
        assert len(await view.get(KEY)) == 1
        assert await view.list_by_run("01RUN") == [KEY]
        assert "not brought up to date" in view.notices[0]
    assert not (state_dir / "trace.kv").exists()


async def test_a_view_that_cannot_be_brought_up_to_date_shows_nothing_that_is_gone(
    writer: FileTrace, state_dir: Path
) -> None:
    await writer.append("traces/A", [call("1")])
    await writer.append("traces/B", [call("1", turn=2)])
    async with KVTraceView(state_dir, FileBlobs(state_dir)) as view:
        assert await view.catch_up()
    (state_dir / "trace.kv.lock").unlink()
    (state_dir / "trace.kv.lock").mkdir()
    writer.path("traces/A").unlink()
    await writer.append("traces/B", [result("1", turn=2)])
    async with KVTraceView(state_dir, FileBlobs(state_dir)) as view:
        assert await view.list_by_run("01RUN") == [trace_key("01RUN", "lint", NODE, 2)]
        assert (await view.get(trace_key("01RUN", "lint", NODE, 2)))[0].raw_output == "None"
        with pytest.raises(TraceNotFound):
            await view.get(KEY)


async def test_a_rewritten_stream_with_the_old_size_and_time_is_read_again(writer: FileTrace, state_dir: Path) -> None:
    await writer.append("traces/A", [call("1"), result("1", raw="one"), AgentEndEvent(**who())])
    path = writer.path("traces/A")
    async with KVTraceView(state_dir, FileBlobs(state_dir)) as view:
        assert (await view.get(KEY))[0].raw_output == "one"
        before = path.stat()
        path.write_bytes(path.read_bytes().replace(b'"one"', b'"two"', 1))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert [entry.raw_output for entry in await view.get(KEY)] == [None]  # the chain shows the edit


async def test_a_pruned_stream_leaves_nothing_in_the_view(writer: FileTrace, state_dir: Path) -> None:
    await writer.append("traces/A", [call("1"), result("1", raw="a very private thing"), AgentEndEvent(**who())])
    await writer.close("traces/A")
    async with KVTraceView(state_dir, FileBlobs(state_dir)) as view:
        assert await view.catch_up()
    library = Library(state_dir)
    plan = library.plan_prune(Retention(max_age_days=1, keep_failed=False), datetime(2030, 1, 1, tzinfo=UTC))
    assert library.prune(plan).streams == ("traces/A",)
    left = b"".join(path.read_bytes() for path in state_dir.glob("trace.kv*"))
    assert left
    assert b"private" not in left


async def test_several_processes_fill_and_read_one_view(writer: FileTrace, state_dir: Path) -> None:
    for number in range(30):
        await writer.append(f"traces/A{number}", [call("1", turn=number), result("1", turn=number)])
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom remora.trace import FileBlobs, KVTraceView\n"
        "state = Path(sys.argv[1])\n"
        "async def main():\n"
        "    async with KVTraceView(state, FileBlobs(state)) as view:\n"
        "        keys = await view.list_by_run('01RUN')\n"
        "        assert len(keys) == 30, len(keys)\n"
        "        assert all([len(await view.get(key)) == 1 for key in keys[:5]])\n"
        "asyncio.run(main())\n"
    )
    started = [await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(state_dir)) for _ in range(3)]
    assert [await each.wait() for each in started] == [0, 0, 0]


@pytest.mark.parametrize("store", ["kv", "jsonl"])
async def test_a_run_fills_the_view_as_each_agent_ends_if_it_is_asked_to(tmp_path: Path, store: str) -> None:
    (tmp_path / "remora.yaml").write_text(f"runner: {{memory: {{trace_store: {store}}}}}\n")
    (tmp_path / "a.py").write_text("def add(a, b):\n    return a + b\n")
    app = open_project(tmp_path)
    plan = app.runs.plan([tmp_path / "a.py"], ["lint"])
    path = app.state_dir / "trace.kv"
    async for ended in app.runs.run(plan):
        assert path.exists() == (store == "kv")
        if store == "kv":
            async with KVManager(path) as kv:
                assert await kv.get(f"stream:traces/{ended.agent_id}") is not None
    async with app.trace_view() as view:
        assert await view.list_by_run(plan.run_id)
