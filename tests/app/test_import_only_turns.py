"""An import without packets folds no packet, and records the same calls and results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from remora.app import open_project
from remora.app._import_track import BATCH
from remora.events import Event, PacketDelta, ToolResultEvent
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


def what_happened(events: list[Event]) -> list[tuple[str, int, dict[str, Any]]]:
    """All events but the start and the prompts, without what they change in the packet."""
    told = [event for event in events if event.type not in ("agent_start", "model_request")]
    return [(event.type, event.turn, {**event.body(), "delta": None}) for event in told]


async def test_what_happened_is_the_same_with_and_without_packets(tmp_path: Path) -> None:
    with_packets = await imported(tmp_path / "one", packets=True)
    without = await imported(tmp_path / "two", packets=False)
    assert "model_request" in {event.type for event in with_packets}
    assert what_happened(with_packets) == what_happened(without)


async def test_without_packets_a_result_has_its_summary_and_no_evidence(tmp_path: Path) -> None:
    with_packets = await imported(tmp_path / "one", packets=True)
    without = await imported(tmp_path / "two", packets=False)
    shown, plain = map(delta_of_result, (with_packets, without))
    assert plain.action == shown.action
    assert shown.evidence is not None
    assert plain.evidence is None


def delta_of_result(events: list[Event]) -> PacketDelta:
    (delta,) = [event.delta for event in events if isinstance(event, ToolResultEvent)]
    assert isinstance(delta, PacketDelta)
    return delta


async def test_a_conversation_of_many_batches_is_numbered_without_gaps(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Go on"}, {"role": "assistant", "content": "Yes"}] * BATCH
    (tmp_path / "log.jsonl").write_text(json.dumps({"messages": [*LOG, *turns]}) + "\n")
    project = open_project(tmp_path)
    done = await project.streams.import_chats([tmp_path / "log.jsonl"], packets=False)
    recorded = list(read_events(project.library.find(done.streams[0].agent_id)))
    assert [event.seq for event in recorded] == list(range(len(recorded)))
    assert done.streams[0].turns == recorded[-1].turn == 2 + BATCH
