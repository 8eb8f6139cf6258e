from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from remora.context import ContextManager, DecisionPacket, HubClientStub, get_hub_client
from remora.context.contracts import ToolResult
from remora.context.models import CandidateAction, KnowledgeEntry, RecentAction
from remora.events import canonical, digest

START = {"agent_id": "01A", "goal": "g", "operation": "lint", "node_id": "src/a.py:load"}


def after(event: dict[str, Any]) -> DecisionPacket:
    ctx = ContextManager(START)
    ctx.apply_event({"type": "tool_result", "tool": "read_file", **event})
    return ctx.packet


def test_a_packet_forgets_the_oldest_actions_first() -> None:
    packet = DecisionPacket(**START)
    for number in range(14):
        packet.add_action(f"t{number}", "s", "success")
    assert [action.tool for action in packet.recent_actions] == [f"t{number}" for number in range(4, 14)]
    packet.add_action("last", "s", "partial", max_actions=2)
    assert [action.tool for action in packet.recent_actions] == ["t13", "last"]


def test_a_packet_can_be_read_back_from_its_json() -> None:
    packet = DecisionPacket(**START, hub_freshness=datetime(2026, 1, 1, tzinfo=UTC))
    packet.add_action("t", "s", "error")
    packet.update_knowledge("k", [1, {"deep": None}])
    packet.record_error("e")
    assert DecisionPacket.model_validate_json(packet.model_dump_json()) == packet


@pytest.mark.parametrize("part", [RecentAction, KnowledgeEntry, DecisionPacket, ToolResult])
def test_what_a_part_must_be_told_is_what_the_guide_says(part: Any) -> None:
    required = {name for name, field in part.model_fields.items() if field.is_required()}
    assert (
        required
        == {
            RecentAction: {"turn", "tool", "summary", "outcome"},
            KnowledgeEntry: {"key", "value", "source_turn"},
            DecisionPacket: {"agent_id", "goal", "operation", "node_id"},
            ToolResult: {"result", "summary"},
        }[part]
    )


async def test_the_stub_of_the_hub_knows_nothing_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    client = get_hub_client()
    assert isinstance(client, HubClientStub)
    assert client is get_hub_client()
    assert (await client.get_context(["n"]), await client.health_check()) == ({}, False)


def test_views_show_the_packet_and_are_no_part_of_it() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    packet = DecisionPacket(**START, node_summary="function 'load' in a.py", hub_context={"n": 1}, hub_freshness=moment)
    packet.add_action("run_linter", "3 errors", "success")
    assert packet.recent_history == ["3 errors"]
    assert packet.recent_results == [{"tool": "run_linter", "summary": "3 errors"}]
    assert packet.hub_context_freshness == {"n": moment.timestamp()}
    assert packet.node == {"id": "src/a.py:load", "type": "function"}
    assert packet.session_id == "01A"
    views = {"recent_history", "recent_results", "hub_context_freshness", "node", "session_id"}
    assert not views & set(packet.model_dump())
    assert digest(canonical(packet)) == digest(canonical(DecisionPacket(**packet.model_dump())))


@pytest.mark.parametrize("view", ["recent_history", "node", "session_id"])
def test_views_cannot_be_written(view: str) -> None:
    with pytest.raises(AttributeError):
        setattr(DecisionPacket(**START), view, "x")


def test_the_node_of_a_packet_without_a_summary_has_no_type() -> None:
    assert DecisionPacket(**START).node == {"id": "src/a.py:load"}
    assert DecisionPacket(**START).hub_context_freshness == {}


def test_an_underscored_summary_is_a_summary() -> None:
    assert after({"data": {"_summary": "mine", "x": 1}}).recent_history == ["mine"]
    assert after({"data": {"_summary": "theirs", "summary": "mine"}}).recent_history == ["mine"]


def test_a_summary_delta_gives_lines_and_files() -> None:
    said = {"recent_actions": ["Read a.py", "Found 2 errors"], "file_context": ["a.py"]}
    packet = after({"data": {"raw_output": "def f(): …", "summary_delta": said}})
    assert packet.recent_history == ["Read a.py; Found 2 errors"]
    assert packet.knowledge["file_context"].value == ["a.py"]


def test_an_entry_of_the_first_concept_is_an_event() -> None:
    packet = after(
        {
            "turn": 6,
            "timestamp": "2026-02-19T15:42:10Z",
            "args": {"name": "result"},
            "raw_output": "None",
            "parsed_output": {"value": None},
            "packet_delta": {
                "diagnostics": ["result is None"],
                "state_summary": "result is None after the call",
                "candidate_actions": [{"tool": "list_frames"}],
            },
        }
    )
    assert packet.diagnostics == ["result is None"]
    assert packet.state_summary == "result is None after the call"
    assert packet.candidate_actions == [CandidateAction(tool="list_frames")]
    assert packet.recent_results[0]["tool"] == "read_file"


@pytest.mark.parametrize("beside", [True, False])
def test_a_delta_in_the_plans_shape_changes_what_it_names(beside: bool) -> None:
    said = {"raw_output": "x", "delta": {"add_history": "Read it", "update_knowledge": {"a.py": "a class"}}}
    packet = after(said if beside else {"data": said})
    assert packet.recent_history == ["Read it"]
    assert packet.knowledge["a.py"].value == "a class"
    failed = after({"delta": {"set_error": "no file"}})
    assert (failed.last_error, failed.error_count, failed.recent_actions) == ("no file", 1, [])


def test_a_packet_delta_in_the_plans_shape_is_distilled_like_a_result() -> None:
    packet = after({"packet_delta": {"add_history": "Read it", "set_error": "but empty"}})
    assert (packet.recent_history, packet.last_error) == (["Read it"], "but empty")
    assert packet.recent_actions[0].outcome == "error"


@pytest.mark.parametrize("data", [None, [], "text", 3, {"packet_delta": 3}, {"summary_delta": {"recent_actions": 3}}])
def test_a_misfit_is_a_result_all_the_same(data: Any) -> None:
    assert len(after({"data": data}).recent_actions) == 1
