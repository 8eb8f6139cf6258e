from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from remora.analysis import PromptItem, PromptPart, mark_new, prompt_parts
from remora.context.models import DecisionPacket
from remora.context.projection import project
from remora.context.render import ACCOUNT_HEAD, Style, render
from remora.events import (
    AgentStartEvent,
    Event,
    EvidenceDelta,
    ModelRequestEvent,
    PacketDelta,
    ToolResultEvent,
    readable,
)
from remora.inference import EstimatedCounter
from remora.testing import MemoryTwoTrack
from strategies import streams


def rendered(packet: DecisionPacket, style: Style) -> Any:
    return render(packet, system_prompt="Be brief.", tools=(), limit=20_000, counter=EstimatedCounter(), style=style)


def words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z0-9]{3,}", text)


def told(parts: tuple[PromptPart, ...]) -> str:
    texts = [f"{part.name.replace('_', ' ')} {item.label} {item.text}" for part in parts for item in part.items]
    return " ".join(texts + [part.name for part in parts]).lower()


def leaves(value: Any) -> list[str]:
    """All texts in a JSON value; of its keys those that are not names of fields."""
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (*leaves(item), key)]
    return [text for item in value for text in leaves(item)] if isinstance(value, list) else [readable(value)]


OURS = set(
    words(f"{ACCOUNT_HEAD} Task success summary outcome tool args reason label text start_line from true null".lower())
)


@given(streams)
@settings(max_examples=15, phases=[Phase.generate])
@pytest.mark.parametrize("style", ["json", "markdown", "account"])
def test_no_word_of_a_prompt_is_lost_in_its_parts(style: Style, stream: list[Event]) -> None:
    prompt = rendered(project([AgentStartEvent(agent_id="a", goal="g"), *stream]), style)
    known = told(prompt_parts(prompt.messages, prompt.tokens))
    user = " ".join(leaves(json.loads(prompt.user))) if style == "json" else prompt.user
    known += json.dumps(known)
    assert [word for word in words(user.lower()) if word not in known and word not in OURS] == []


def test_a_small_number_is_shown_as_the_prompt_has_it() -> None:
    prompt = rendered(
        DecisionPacket(agent_id="a", goal="g", operation="", node_id="", extensions={"rates": [1e-05]}), "json"
    )
    assert "0.00001" in prompt.user and "0.00001" in told(prompt_parts(prompt.messages, prompt.tokens))


def test_the_parts_of_a_packet_have_the_tokens_of_the_receipt() -> None:
    packet = DecisionPacket(agent_id="a", goal="Fix it", operation="lint", node_id="a.py")
    prompt = rendered(packet, "json")
    parts = {part.name: part.tokens for part in prompt_parts(prompt.messages, prompt.tokens)}
    assert parts["goal"] == prompt.tokens["goal"] and parts["system"] == prompt.tokens["system"]


def test_an_entry_of_an_account_names_its_event() -> None:
    evidence = EvidenceDelta(speaker="call", text="look(id=7)", lines=("first line", "second line"))
    result = ToolResultEvent(
        call_id="1", tool="look", outcome="success", seq=4, delta=PacketDelta(v=2, evidence=evidence)
    )
    prompt = rendered(project([AgentStartEvent(agent_id="a", goal="g"), result]), "account")
    account = next(part for part in prompt_parts(prompt.messages, prompt.tokens) if part.name == "account")
    assert [(item.key, item.seq) for item in account.items] == [("#4", 4)]
    assert "first line" in account.items[0].text and "second line" in account.items[0].text


def test_a_chat_history_has_a_part_for_each_message() -> None:
    messages = (
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look"}}]},
        {"role": "tool", "content": "raw"},
    )
    parts = prompt_parts(messages, {"system": 1})
    assert [part.name for part in parts] == ["system", "user", "assistant", "tool"]
    assert "look" in parts[2].items[0].text


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "[1]", '{"a":' * 2000, "## \n- ", "#1 x", "null", "\x00", '{"goal": 1} rest']
)
def test_any_text_has_parts(text: str) -> None:
    assert isinstance(prompt_parts(({"role": "user", "content": text},), {}), tuple)
    assert isinstance(prompt_parts(({"role": "user", "content": [{"type": "text", "text": text}]},), {}), tuple)


def test_only_what_the_prompt_before_did_not_have_is_new() -> None:
    def part(*texts: str) -> PromptPart:
        return PromptPart("knowledge", tuple(PromptItem(text) for text in texts))

    (marked,) = mark_new([part("a", "b")], [part("a")])
    assert [item.is_new for item in marked.items] == [False, True]
    assert marked.new == 1


async def test_calls_and_results_of_a_packet_as_chat_lead_to_their_events() -> None:
    async with MemoryTwoTrack("Count", style="chat", budget=2000) as tt:
        for number in range(6):
            await tt.call({"tool": "look", "args": {"at": number}}, lambda at: 40 + at)
        prompt = await tt.request()
        (receipt,) = (event for event in tt.events if isinstance(event, ModelRequestEvent))
        results = [event.seq for event in tt.events if isinstance(event, ToolResultEvent)]
    parts = prompt_parts(prompt.messages, receipt.tokens)
    found = [item for part in parts for item in part.items if item.seq is not None]
    assert {item.seq for item in found} == set(results)
    assert [item.key for item in found if item.text == "45"] == [f"#{results[-1]}"]
