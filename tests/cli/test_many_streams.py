"""Listing more streams than anybody looks through."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from remora.events import AgentEndEvent, AgentStartEvent, new_id, short_id
from remora.trace import MemoryTrace

Remora = Callable[..., subprocess.CompletedProcess[str]]
Json = Callable[..., Any]


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 11, 15, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def write(shop: Path) -> Callable[[int], Any]:
    """Writes so many sealed streams into the project's state, and gives their ids, oldest first."""

    async def make(count: int) -> list[str]:
        folder = shop / ".agentfs" / "traces"
        folder.mkdir(parents=True)
        ids = [new_id(Clock().now() + timedelta(seconds=number)) for number in range(count)]
        for number, id_ in enumerate(ids):
            trace, who = MemoryTrace(Clock()), {"agent_id": id_, "node_id": f"src/a_{number}.py", "operation": "lint"}
            await trace.append(f"traces/{id_}", [AgentStartEvent(format=1, **who), AgentEndEvent(**who)])
            lines = b"".join(line + b"\n" for line in trace.lines(f"traces/{id_}"))
            (folder / f"{id_}.jsonl").write_bytes(lines)
        return ids

    return make


async def test_the_newest_are_shown_and_it_is_said_how_many_are_not(
    write: Callable[[int], Any], remora: Remora, remora_json: Json
) -> None:
    ids = await write(130)
    done = remora("trace", "ls")
    shown = [line.split()[0] for line in done.stdout.splitlines() if "src/a_" in line]
    assert shown == [short_id(id_) for id_ in ids[30:]]
    assert "30 older streams not shown: `--all`" in done.stderr
    few = remora("trace", "ls", "--limit", "2")
    assert [short_id(id_) in few.stdout for id_ in ids[-3:]] == [False, True, True]
    every = remora("trace", "ls", "--all")
    assert every.stdout.count("src/a_") == 130
    assert "not shown" not in every.stderr
    assert [row["agent_id"] for row in remora_json("trace", "ls")] == ids
    assert [row["agent_id"] for row in remora_json("trace", "ls", "--limit", "1")] == ids[-1:]
    assert remora("trace", "ls", "--all", "--limit", "2").returncode == 3


async def test_thousands_are_lines_in_columns(write: Callable[[int], Any], remora: Remora) -> None:
    ids = await write(1001)
    done = remora("trace", "ls", "--all")
    head, *lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [short_id(id_) for id_ in ids]
    assert len({line.index("lint") for line in lines} | {head.index("operation")}) == 1
    assert len({line.index(" 2 ") for line in lines}) == 1


async def test_control_characters_of_a_stream_reach_no_terminal_however_many_there_are(
    write: Callable[[int], Any], shop: Path, remora: Remora
) -> None:
    await write(1001)
    path = next((shop / ".agentfs" / "traces").iterdir())
    first = json.loads(path.read_bytes().splitlines()[0])
    path.write_text(json.dumps(first | {"node_id": "\x1b[31mred\x07"}, separators=(",", ":")) + "\n")
    done = remora("trace", "ls", "--all")
    assert "red" in done.stdout
    assert not {"\x1b", "\x07"} & set(done.stdout)
