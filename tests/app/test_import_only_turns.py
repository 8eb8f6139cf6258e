"""An import without packets folds no packet, and records the same calls and results."""

from __future__ import annotations

import json
from pathlib import Path

from remora.app import open_project
from remora.events import Event, ToolResultEvent
from remora.trace import read_events

LOG = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Where is order W12?"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order_id": "W12"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"order_id": "W12", "state": "sent", "to": "Oslo"}'},
    {"role": "user", "content": "Thank you"},
    {"role": "assistant", "content": "It is on its way to Oslo."},
]


async def imported(folder: Path, *, packets: bool) -> list[Event]:
    folder.mkdir()
    log = folder / "log.jsonl"
    log.write_text(json.dumps({"messages": LOG}) + "\n")
    project = open_project(folder)
    done = await project.streams.import_chats([log], packets=packets)
    assert not done.problems
    assert done.streams[0].turns == 2
    return list(read_events(project.library.find(done.streams[0].agent_id)))


async def test_what_happened_is_the_same_with_and_without_packets(tmp_path: Path) -> None:
    with_packets = await imported(tmp_path / "one", packets=True)
    without = await imported(tmp_path / "two", packets=False)
    assert "model_request" in {event.type for event in with_packets}
    told = [[(e.type, e.turn, e.body()) for e in events if e.type not in ("agent_start", "model_request")]
            for events in (with_packets, without)]  # fmt: skip
    assert told[0] == told[1]
    assert any(isinstance(event, ToolResultEvent) and event.delta is not None for event in without)
