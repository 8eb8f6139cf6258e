"""The contract of the adapters: real frameworks, real agents, a scripted model. What they recorded is read here."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from integrations.environments import FRAMEWORKS, python_with
from integrations.scenarios import common
from remora.cli._main import app as cli
from remora.context.projection import project
from remora.events import (
    AgentEndEvent,
    AgentStartEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
    UserInputEvent,
)
from remora.trace import find_streams, read_events, verify

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.frameworks


@dataclass(frozen=True)
class Case:
    """One scenario as one framework ran it."""

    framework: str
    state_dir: Path
    told: list[dict[str, Any]]

    @property
    def streams(self) -> list[list[Event]]:
        return [list(read_events(path)) for path in find_streams(self.state_dir, "traces")]


@cache
def told_by(framework: str, out: Path, scenario: str = "") -> dict[str, Any]:
    script = ROOT / "tests" / "integrations" / "scenarios" / f"{scenario or framework}.py"
    env = {"PATH": os.environ["PATH"], "HOME": str(out), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [python_with(framework), script, out], check=False, capture_output=True, text=True, timeout=300, env=env
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((out / "told.json").read_text())


@pytest.fixture(scope="module", params=sorted(FRAMEWORKS))
def framework(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    yield request.param, tmp_path_factory.mktemp(request.param)


@pytest.fixture
def case(framework: tuple[str, Path]) -> Any:
    name, out = framework
    return lambda scenario: Case(name, out / scenario, told_by(name, out)[scenario])


def of_type(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def text_of(prompt: dict[str, Any]) -> str:
    return "\n".join(part for part in prompt["said"] if part)


def said_in(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The texts and calls of a receipt's messages, as the scenarios tell them."""
    for message in messages[1:]:
        if message["content"]:
            yield message["content"]
        yield from (common.made_call(**_named(call["function"])) for call in message.get("tool_calls", ()))


def _named(function: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": function["name"], "args": function["arguments"]}


@pytest.mark.parametrize("scenario", ["parallel", "stream"])
def test_parallel_calls_are_recorded_and_shown(case: Any, scenario: str) -> None:
    ran = case(scenario)
    (told,) = ran.told
    assert (told["output"], told["raised"]) == ("Both have 21 degrees.", "")
    (events,) = ran.streams
    made = of_type(events, ToolCallEvent)[:2]
    assert {event.call_id for event in made} == {"call_Paris", "call_Rome"}
    results = of_type(events, ToolResultEvent)[:2]
    assert {event.call_id for event in results} == {"call_Paris", "call_Rome"}
    assert all(intent.seq < min(result.seq for result in results) for intent in made[:1])
    assert len(of_type(events, ModelResponseEvent)[0].calls) == 2
    assert of_type(events, SubmitResultEvent)
    assert of_type(events, AgentEndEvent)[0].outcome == "success"
    assert "ST-PARIS-77" in text_of(told["prompts"][1])
    assert "ST-ROME-77" in text_of(told["prompts"][1])


@pytest.mark.parametrize("scenario", ["parallel", "raising", "structured", "stream", "cancel", "second", "at_once"])
def test_the_model_gets_exactly_the_recorded_packet(case: Any, scenario: str) -> None:
    ran = case(scenario)
    receipts = [receipt for events in ran.streams for receipt in of_type(events, ModelRequestEvent)]
    prompts = [prompt for told in ran.told for prompt in told["prompts"]]
    assert sorted(map(text_of, prompts)) == sorted("\n".join(said_in(each.messages)) for each in receipts)
    assert all("Be kind." in prompt["system"] and "the run so far" in prompt["system"] for prompt in prompts)
    assert all(receipt.tokens["total"] <= receipt.limit for receipt in receipts)
    assert "weather" in prompts[0]["tools"]


def test_a_raising_tool_is_an_error_in_the_stream(case: Any) -> None:
    ran = case("raising")
    (told,), (events,) = ran.told, ran.streams
    (result,) = [event for event in of_type(events, ToolResultEvent) if event.tool == "weather"]
    assert result.outcome == "error"
    assert "no such city" in find_streams(ran.state_dir, "traces")[0].read_text()
    assert of_type(events, AgentEndEvent)
    if told["raised"]:
        assert told["raised"].startswith("RuntimeError")
        assert of_type(events, AgentEndEvent)[0].outcome == "error"
    else:
        assert re.search(r"weather\(city=Atlantis\) failed|Failed: ", text_of(told["prompts"][1]))


def test_a_failed_structured_output_is_told(case: Any) -> None:
    ran = case("structured")
    (told,), (events,) = ran.told, ran.streams
    if ran.framework == "openai_agents":  # the SDK raises, and does not ask again
        assert told["raised"].startswith("ModelBehaviorError")
        assert of_type(events, AgentEndEvent)[0].outcome == "error"
        return
    assert "21" in told["output"]
    shown = text_of(told["prompts"][1])
    assert re.search("Last error|Failed: ", shown)
    if ran.framework == "langchain":  # it answers such a call by itself
        assert common.made_call("Report", common.BAD) in shown
    assert project(events).error_count >= 1


def test_a_cancelled_run_is_sealed(case: Any) -> None:
    ran = case("cancel")
    (told,), (events,) = ran.told, ran.streams
    assert told["raised"].startswith(("CancelledError", "AgentError"))
    assert of_type(events, ToolCallEvent)[0].tool == "wait"
    assert of_type(events, AgentEndEvent)[0].outcome in ("cancelled", "error")


def test_two_conversations_at_once_are_two_streams(case: Any) -> None:
    ran = case("at_once")
    assert [told["output"] for told in ran.told] == ["Answer 1", "Answer 2"]
    for events in ran.streams:
        (start,) = of_type(events, AgentStartEvent)
        number = start.goal.split()[1]
        assert start.name == f"chat-{number}"
        assert f"Answer {number}" in str(of_type(events, SubmitResultEvent)[-1].result)
        assert f"Answer {3 - int(number)}" not in str(events)


def test_a_second_request_continues_the_conversation(case: Any) -> None:
    ran = case("second")
    first, second = ran.streams
    (start,) = of_type(second, AgentStartEvent)
    assert start.parent["agent_id"] == first[0].agent_id
    assert start.parent["relation"] == "continue"
    assert [event.text for event in of_type(second, UserInputEvent)] == ["And which station said so?"]
    text = text_of(ran.told[1]["prompts"][0])
    assert text.index("ST-PARIS-77") < text.index("And which station said so?")
    assert len(of_type(second, ToolResultEvent)) <= 1, "what the first run did is not recorded again"


def test_a_run_that_was_killed_is_gone_on_with(case: Any) -> None:
    ran = case("unsealed")
    killed, after = find_streams(ran.state_dir, "traces")
    assert verify(killed).status == "unsealed"
    assert verify(after).status == "sealed"
    assert re.search(r"(?s)die(\(\) failed: | {}\nFailed: )It was interrupted", text_of(ran.told[0]["prompts"][0]))


def test_every_command_reads_what_was_recorded(case: Any, framework: tuple[str, Path]) -> None:
    case("parallel")
    for folder in sorted(path for path in framework[1].iterdir() if (path / "traces").is_dir()):
        for path in find_streams(folder, "traces"):
            for command in ("show", "tokens", "verify", "what-if"):
                argv = ["trace", command, path.stem, "-C", str(folder), "--state-dir", str(folder)]
                done = CliRunner().invoke(cli, argv)
                unsealed = command == "verify" and folder.name == "unsealed"
                assert done.exit_code == 0 or unsealed, f"{argv}: {done.output}"
                assert command != "what-if" or "No prompt changes" in done.output, f"{argv}: {done.output}"


def test_agents_that_hand_off_to_each_other_share_one_conversation(tmp_path: Path) -> None:
    told = told_by("openai_agents", tmp_path, "handoff")
    assert told["agent"] == "triage"
    assert told["offered"] == [
        ["transfer_to_booking", "recall"],
        ["transfer_to_triage", "book", "recall"],
        ["transfer_to_triage", "book", "recall"],
        ["transfer_to_booking", "recall"],
        ["transfer_to_booking", "recall"],
    ]
    assert "BK-7712" in told["last"]
    first, second = (list(read_events(path)) for path in find_streams(tmp_path / "state", "traces"))
    assert [event.tool for event in of_type(first, ToolResultEvent)] == [
        "transfer_to_booking",
        "book",
        "transfer_to_triage",
    ]
    assert of_type(second, AgentStartEvent)[0].parent["agent_id"] == first[0].agent_id
    assert not of_type(second, ToolResultEvent)


def test_a_hook_that_sees_only_messages_sends_what_fold_gives(tmp_path: Path) -> None:
    told = told_by("langchain", tmp_path, "pre_model_hook")
    (path,) = find_streams(tmp_path / "state", "traces")
    events = list(read_events(path))
    receipts = of_type(events, ModelRequestEvent)
    assert [len(said) for said in told["prompts"]] == [len(receipt.messages) for receipt in receipts]
    assert all(receipt.tokens["total"] <= 1500 for receipt in receipts)
    assert "ST-PARIS-77" in str(told["prompts"][-1])
    assert len(of_type(events, ToolResultEvent)) == 3
    assert verify(path).status == "sealed"
