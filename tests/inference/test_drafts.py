"""A text in plain words is asked for several times, and its drafts become alternative calls, the best first."""

from __future__ import annotations

from typing import Any

import pytest

from inference.fakes import DONE, FakeServer, Reply, chunk, says, stream
from inference.real import qwen
from remora.app._models import model_deciders
from remora.config import ServerConfig
from remora.context.contracts import ToolSpec
from remora.errors import ReplyInvalid
from remora.inference import PRESETS, Adapter, EmbeddedPolicy, EmbeddedServer, Endpoint, ServerPolicy
from remora.inference._drafts import ranked
from remora.ports import Decision, Drafting, Prompt
from remora.subagent import SUBMIT_RESULT, SubagentDefinition, ToolEntry

WRITE = ToolSpec(name="write_note", description="Write a note.", parameters={"type": "object", "properties": {}})
CODE = "def release(order):\n    for line in order.lines:\n        line.state = 'open'\n"


def ask(count: int = 3, **more: Any) -> Prompt:
    drafting = Drafting("write_note", "text", count, temperature=0.8, max_tokens=40, args={"kind": "short"})
    messages = ({"role": "system", "content": "Write one sentence."}, {"role": "user", "content": CODE})
    return Prompt(messages, (WRITE, SUBMIT_RESULT), turn=2, drafting=drafting, **more)


def cut(text: str) -> Reply:
    return stream(chunk(text), chunk(finish="length"), DONE)


async def decide(server: FakeServer, prompt: Prompt, preset: str = "vllm", **settings: Any) -> Decision:
    async with ServerPolicy(Endpoint(PRESETS[preset], server.url, model="m", **settings)) as policy:
        return await policy.decide(prompt)


async def test_each_draft_is_one_request_in_plain_words_the_first_without_chance() -> None:
    with FakeServer(says("Open it."), says("Open a door."), says("Open lines of an order.")) as server:
        decision = await decide(server, ask(), "llamacpp")
    bodies = [asked.body for asked in server.asked]
    assert [(body["temperature"], body["seed"], body["max_tokens"]) for body in bodies] == [
        (0.0, 0, 40), (0.8, 1, 40), (0.8, 2, 40),
    ]  # fmt: skip
    assert all(not body.keys() & {"tools", "grammar", "response_format"} for body in bodies)
    assert [body["messages"] for body in bodies] == [list(ask().messages)] * 3
    assert [call.args["text"] for call in decision.calls] == ["Open it.", "Open lines of an order.", "Open a door."]
    assert {call.args["kind"] for call in decision.calls} == {"short"}
    assert {call.tool for call in decision.calls} == {"write_note"}
    assert len({call.call_id for call in decision.calls}) == 3
    assert [(draft["text"], draft["seed"]) for draft in decision.drafts] == [
        ("Open it.", 0), ("Open a door.", 1), ("Open lines of an order.", 2),
    ]  # fmt: skip


async def test_equal_drafts_are_one_call_and_those_that_were_cut_are_none() -> None:
    with FakeServer(says("Open it."), says("Open it. "), cut("Open it and")) as server:
        decision = await decide(server, ask())
    assert [call.args["text"] for call in decision.calls] == ["Open it."]
    assert [draft["finish"] for draft in decision.drafts] == ["stop", "stop", "length"]


async def test_drafts_that_were_all_cut_are_a_failure() -> None:
    with FakeServer(cut("Open it and")) as server, pytest.raises(ReplyInvalid, match="No draft ended within 40 tokens"):
        await decide(server, ask())


def test_the_likeliest_draft_is_first_then_those_with_the_most_words_of_the_code_and_of_other_drafts() -> None:
    drafts = [
        "Open the order.",
        "Deliver everything to the warehouse.",
        "Set the state of all lines to open.",
        "Set the state of the lines of an order to open.",
    ]
    assert ranked(drafts, CODE) == [drafts[0], drafts[3], drafts[2], drafts[1]]


def test_of_drafts_that_are_equally_good_the_earlier_one_is_first() -> None:
    assert ranked(["Open lines.", "Lines open."], CODE) == ["Open lines.", "Lines open."]
    assert ranked(["Only this."], CODE) == ["Only this."]


@pytest.mark.faults
async def test_the_larger_model_writes_a_sentence_without_its_adapter_which_only_learned_calls() -> None:
    qwen()
    definition = SubagentDefinition(name="x", goal="g", system_prompt="s", tools=(ToolEntry(name="write_note"),))
    async with model_deciders(ServerConfig(model="qwen2.5-coder-1.5b", context=1024)) as found:
        assert found.trained
        assert found.writes
        decision = await found.policy(definition).decide(ask(count=2))
    assert all("{" not in draft["text"] for draft in decision.drafts)
    assert any("line" in call.args["text"].lower() for call in decision.calls)


async def test_a_model_that_only_learned_to_choose_is_not_asked_for_drafts() -> None:
    pytest.importorskip("xllamacpp")
    async with model_deciders(ServerConfig(model="smollm2-135m")) as found:
        assert not found.writes


def test_drafts_are_asked_of_the_base_model(tmp_path: Any) -> None:
    pytest.importorskip("xllamacpp")
    server = EmbeddedServer(tmp_path / "m.gguf", adapters=[tmp_path / "a.gguf"])
    policy = EmbeddedPolicy(server, adapter=Adapter(0))
    assert policy._adapters() == {"lora": [{"id": 0, "scale": 1.0}]}
    assert policy.using(None)._adapters() == {"lora": [{"id": 0, "scale": 0.0}]}
