"""Live pages: a reader of a run of another process misses nothing, whenever it comes."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from remora.app import SystemClock, make_store, open_project
from remora.events import AgentEndEvent, AgentStartEvent, ToolResultEvent, TurnStartEvent
from remora.trace import PostgresTrace

AGENT = "01M7N1JH13QG0564M96AVX52MJ"
WRITER = """
import asyncio, sys
from pathlib import Path
from remora.app import SystemClock
from remora.events import AgentEndEvent, ToolResultEvent, TurnStartEvent
from remora.trace import FileTrace

async def main(folder, agent):
    async with FileTrace(Path(folder), clock=SystemClock(), sync="off") as trace:
        ids = {"agent_id": agent}
        for turn in range(1, 7):
            result = ToolResultEvent(turn=turn, call_id=str(turn), tool="t", outcome="success", raw=turn, **ids)
            await trace.append(f"traces/{agent}", [TurnStartEvent(turn=turn, **ids), result])
            print(turn, flush=True)
            sys.stdin.readline()
        await trace.append(f"traces/{agent}", [AgentEndEvent(turn=6, **ids)])

asyncio.run(main(*sys.argv[1:]))
"""
"""Another process that writes a stream, one turn for each line that it is given."""


def messages(running: Any, path: str, last: str = "") -> Generator[tuple[str, str, Any], None, None]:
    """The messages of an event stream: name, id and data."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    headers = running.cookie | ({"Last-Event-ID": last} if last else {})
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as answer:
            yield from _read(answer)


def _read(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/event-stream")
    fields: dict[str, str] = {}
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}


def test_a_reader_of_another_process_gets_every_event_once_and_in_order(running: Any, write: Any, folder: Path) -> None:
    agent = write(AgentStartEvent(format=1, goal="g"))
    command = [sys.executable, "-c", WRITER, str(folder / ".agentfs"), agent]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin and writer.stdout
        found = []
        for name, id_, data in messages(running, f"/a/{agent}/live"):
            found.append((name, int(id_), data.get("type", "")))
            if data.get("type") == "tool_result":
                writer.stdout.readline()
                writer.stdin.write("\n")
                writer.stdin.flush()
    assert [seq for name, seq, _ in found if name == "event"] == list(range(14))
    assert found[-1][0] == "end"
    assert [kind for _, _, kind in found[:3]] == ["agent_start", "turn_start", "tool_result"]


def test_a_reader_that_comes_late_or_again_gets_exactly_the_rest(running: Any, write: Any) -> None:
    results = [ToolResultEvent(call_id="1", tool="t", outcome="success", turn=1) for _ in range(1200)]
    agent = write(AgentStartEvent(format=1), TurnStartEvent(turn=1), *results, AgentEndEvent(turn=1))
    whole = [int(id_) for name, id_, _ in messages(running, f"/a/{agent}/live") if name == "event"]
    assert whole == list(range(1203))
    again = [int(id_) for name, id_, _ in messages(running, f"/a/{agent}/live?after=5", "700") if name == "event"]
    assert again == list(range(701, 1203))
    late = [int(id_) for name, id_, _ in messages(running, f"/a/{agent}/live?after=1201") if name == "event"]
    assert late == [1202]
    assert [name for name, _, _ in messages(running, f"/a/{agent}/live?after=99999")] == ["end"]


def test_the_list_says_that_it_changed_and_what_a_reader_already_knows_is_not_said_again(
    running: Any, write: Any
) -> None:
    write(AgentStartEvent(format=1, goal="one"))
    with contextlib.closing(messages(running, "/live")) as source:
        name, first, _ = next(source)
        assert name == "changed"
        write(AgentStartEvent(format=1, goal="two"))
        name, second, _ = next(source)
        assert name == "changed" and second != first
    write(AgentStartEvent(format=1, goal="three"))
    with contextlib.closing(messages(running, "/live", second)) as again:
        assert next(again)[1] != second


def test_a_damaged_stream_ends_the_live_view_and_the_page_says_so(running: Any, write: Any, folder: Path) -> None:
    agent = write(AgentStartEvent(format=1, goal="g"), TurnStartEvent(turn=1))
    with (folder / ".agentfs" / "traces" / f"{agent}.jsonl").open("ab") as file:
        file.write(b"garbage\n")
    names = [name for name, _, _ in messages(running, f"/a/{agent}/live")]
    assert names[-1] == "end"
    assert "The rest of the stream cannot be read" in running.get(f"/a/{agent}").text


def test_a_reader_of_a_store_gets_what_another_connection_appends(
    tmp_path: Path, postgres: Any, start_viewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMORA_CACHE_DIR", str(tmp_path / "cache"))
    url = postgres.new_url()
    make_store(url)
    running = start_viewer(open_project(tmp_path, state_dir=url))

    async def read() -> list[tuple[str, str]]:
        async with PostgresTrace(url, clock=SystemClock()) as trace:
            await trace.append(f"traces/{AGENT}", [AgentStartEvent(format=1, goal="g", agent_id=AGENT)])
            source = messages(running, f"/a/{AGENT}/live")
            found = [await asyncio.to_thread(next, source)]
            for event in (TurnStartEvent(turn=1), AgentEndEvent(turn=1)):
                await trace.append(f"traces/{AGENT}", [event])
                found.append(await asyncio.to_thread(next, source))
            return [(name, data.get("type", "")) for name, _, data in [*found, await asyncio.to_thread(next, source)]]

    expected = [("event", "agent_start"), ("event", "turn_start"), ("event", "agent_end"), ("end", "")]
    assert asyncio.run(read()) == expected
