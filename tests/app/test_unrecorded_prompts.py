"""An import records no packets unless asked to. Commands that need them build them from the stream."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from remora.app import OtherRules, Viewing, open_project
from remora.app._import_track import BATCH
from remora.app._unrecorded import UnrecordedPrompts
from remora.context.text import messages_text
from remora.errors import ConfigError
from remora.events import AgentStartEvent, Event, ModelRequestEvent, PacketDelta, ToolResultEvent
from remora.inference import EstimatedCounter
from remora.trace import read_events
from remora.twotrack import Rules

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


def words(request: ModelRequestEvent) -> str:
    """A prompt beside its system text, without the numbers of events: fewer events are recorded without prompts."""
    return re.sub(r"#\d+", "#", messages_text(request.messages))


async def test_the_prompts_that_are_built_say_what_recorded_ones_do(tmp_path: Path) -> None:
    recorded = [event for event in await imported(tmp_path / "one", packets=True) if event.type == "model_request"]
    stream = await imported(tmp_path / "two", packets=False)
    prompts_of = UnrecordedPrompts(open_project(tmp_path / "two"), EstimatedCounter())
    built = [event async for event in prompts_of.of(stream)]
    prompts = [event for event in built if isinstance(event, ModelRequestEvent)]
    assert [event.seq for event in built if event.seq >= 0] == [event.seq for event in stream]
    assert [(words(event), event.limit) for event in prompts] == [
        (words(event), event.limit) for event in recorded if isinstance(event, ModelRequestEvent)
    ]
    assert "Oslo" in words(prompts[1])
    assert prompts[0].messages[0]["content"] == "You help."


async def test_a_recorded_stream_stays_as_it_is(tmp_path: Path) -> None:
    recorded = await imported(tmp_path / "one", packets=True)
    prompts = UnrecordedPrompts(open_project(tmp_path / "one"), EstimatedCounter())
    assert [event async for event in prompts.of(recorded)] == recorded


async def test_without_packets_the_tokens_are_told_at_any_budget_and_nothing_is_recorded(tmp_path: Path) -> None:
    before = await imported(tmp_path / "one", packets=False)
    project, agent = open_project(tmp_path / "one"), before[0].agent_id
    report = await project.streams.tokens(agent, budget=600)
    assert ([row.turn for row in report.rows], report.is_recorded) == ([1, 2], False)
    assert (await project.streams.tokens(agent)).rows[0].limit == report.rows[0].limit + 3_000 - 600
    assert list(project.library.events(agent)) == before


async def test_a_budget_for_recorded_prompts_is_refused(tmp_path: Path) -> None:
    agent = (await imported(tmp_path / "one", packets=True))[0].agent_id
    with pytest.raises(ConfigError, match="recorded"):
        await open_project(tmp_path / "one").streams.tokens(agent, budget=600)


async def test_todays_rules_change_no_prompt_of_a_log_without_packets(tmp_path: Path) -> None:
    await imported(tmp_path / "one", packets=False)
    streams = open_project(tmp_path / "one").streams
    (same,) = [run async for run in streams.what_if(OtherRules()).compare()]
    assert (same.prompts, same.changed, same.problem) == (2, 0, "")
    (other,) = [run async for run in streams.what_if(OtherRules(Rules(style="json"))).compare()]
    assert other.changed == 2


async def test_a_piece_of_a_built_account_leads_to_its_bytes(tmp_path: Path) -> None:
    stream = await imported(tmp_path / "one", packets=False)
    (result,) = [event for event in stream if isinstance(event, ToolResultEvent)]
    found, text = await open_project(tmp_path / "one").streams.explain(f"#{result.seq}", stream[0].agent_id)
    assert [source.seq for source in found.sources] == [result.seq]
    assert "Oslo" in text


async def test_the_system_text_is_recorded_and_exported_without_packets(tmp_path: Path) -> None:
    stream = await imported(tmp_path / "one", packets=False)
    assert isinstance(stream[0], AgentStartEvent)
    assert stream[0].system == "You help."
    exported = [line async for line in open_project(tmp_path / "one").streams.export("openai", [stream[0].agent_id])]
    assert json.loads(exported[0])["messages"][0] == {"role": "system", "content": "You help."}


async def test_a_viewer_shows_built_prompts_and_says_so(tmp_path: Path) -> None:
    stream = await imported(tmp_path / "one", packets=False)
    viewing = Viewing(open_project(tmp_path / "one"))
    outline = viewing.open(stream[0].agent_id)
    prompt = await asyncio.to_thread(viewing.prompt, outline, outline.find(2))
    assert prompt is not None
    assert not prompt.is_recorded
    assert any("Oslo" in item.text for part in prompt.parts for item in part.items)
    assert await asyncio.to_thread(viewing.prompt, outline, outline.find(0)) is None
    (result,) = [event for event in stream if isinstance(event, ToolResultEvent)]
    seen = await asyncio.to_thread(viewing.seen, outline, result.seq, "a line that no prompt has")
    assert (seen.searched, seen.found) == (1, ())
