"""Small promises of the specification: its names, its script shape, and words for failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import remora
from remora.context import PacketBuilder, models
from remora.context.builder import build_system_prompt
from remora.context.projection import project
from remora.context.summarizers import distill
from remora.events import Call
from remora.hub.client import refresh_context
from remora.memory.context import ContextManager
from remora.memory.schemas import DecisionPacket, PacketDelta, ToolResultEvent
from remora.ports import Pulled
from remora.scripts import load
from remora.trace import read_events

GOLDEN = Path(__file__).parent / "golden" / "format-1-lint.jsonl"


def test_a_packet_builder_builds_the_packet_of_a_stream_and_a_prompt_within_the_limit() -> None:
    events = list(read_events(GOLDEN))
    builder = PacketBuilder()
    assert builder.build(events) == project(events)
    assert builder.add({"type": "turn_start", "turn": 9}).turn == 9
    small, large = builder.prompt(250), builder.prompt(4000)
    assert len(small) < len(large)
    assert "Fix lint errors" in small


def test_the_system_prompt_of_the_concept_review_shows_the_whole_packet() -> None:
    packet = models.DecisionPacket(agent_id="a", goal="Fix it", operation="lint", node_id="a.py:f", turn=3)
    assert "## Last Error" not in build_system_prompt(packet)
    packet.add_action("run_linter", "Found 2 errors", "partial")
    packet.update_knowledge("errors", ["E1", "E2"])
    packet.record_error("No such file")
    prompt = build_system_prompt(packet, ["run_linter"])
    assert "- Goal: Fix it\n- Target: a.py:f\n- Turn: 3\n" in prompt
    assert "- Turn 3: run_linter (partial): Found 2 errors" in prompt
    assert '- errors: ["E1","E2"]' in prompt
    assert "## Last Error\nNo such file" in prompt
    assert prompt.endswith("## Available Tools\n- run_linter\n")


class Hub:
    """A Hub that knows one node."""

    def facts(self, nodes: list[str]) -> Pulled:
        known = {"src/a.py:load": {"signature": "def load() -> int"}}
        return Pulled({node: known[node] for node in nodes if node in known})


def test_refreshing_the_context_says_when_the_facts_were_fetched() -> None:
    manager = ContextManager("g")
    manager.apply_event(
        ToolResultEvent(tool_name="read", raw_output="", delta=PacketDelta(add_history="Read src/a.py:load"))
    )
    hub: Any = Hub()
    manager.run_middleware([lambda packet: refresh_context(packet, hub)])
    packet: DecisionPacket = manager.packet
    assert packet.knowledge["src/a.py:load"] == "def load() -> int"
    assert packet.hub_context_freshness["src/a.py:load"] > 1_700_000_000


HEAD = 'from grail import Input, external\n\nname: str = Input("name")\n\n'


@pytest.mark.parametrize(
    "body",
    [
        'async def main():\n    return {"said": name}\n',
        'def main():\n    return {"said": name}\n',
        'def main(loud=False):\n    return {"said": name}\n\nLATER = 1\n',
    ],
)
async def test_a_script_may_return_its_result_from_main(tmp_path: Path, body: str) -> None:
    file = tmp_path / "say.pym"
    file.write_text(HEAD + body)
    script = load(file, grail_dir=None)
    assert await script.run(inputs={"name": "Ada"}, externals={}) == {"said": "Ada"}


def test_a_main_that_needs_arguments_is_no_result(tmp_path: Path) -> None:
    file = tmp_path / "say.pym"
    file.write_text(HEAD + "def main(loud):\n    return name\n")
    with pytest.raises(Exception, match="define `main\\(\\)`"):
        load(file, grail_dir=None)


def test_a_failure_without_a_message_says_so() -> None:
    told = distill("deploy", {"outcome": "error"})
    assert told.delta.error is not None
    assert (told.delta.action.summary if told.delta.action else "", told.delta.error.set) == (
        "deploy failed without a message",
        "deploy failed without a message",
    )


async def test_an_exception_without_a_message_says_so(tmp_path: Path) -> None:
    def fail() -> None:
        raise ValueError

    async with remora.TwoTrack(goal="g", state_dir=tmp_path) as track:
        await track.request()
        await track.call(Call(call_id="1", tool="t", args={}), fail)
        assert track.packet.last_error == "ValueError: no message"
