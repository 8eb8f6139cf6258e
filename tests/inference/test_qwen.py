"""The larger embedded model, where its weights were pulled: counted exactly, and held to a call."""

from __future__ import annotations

from typing import Literal

import pytest

from inference.real import qwen
from inference.test_embedded import TOOLS
from remora.app._models import model_deciders
from remora.config import ServerConfig
from remora.context.contracts import ToolSpec
from remora.context.render import system_text
from remora.inference import GgufCounter, ServerCounter
from remora.ports import Prompt
from remora.subagent import NO_TOOL_FITS, SubagentDefinition, ToolEntry

TEXTS = (
    "def total(prices):\n\n    return sum(prices)  # 12345\n",
    '{"tool":"apply_fix","args":{"code":"F401"}}',
    "日本語 ünï 👩‍👩‍👧 \t\t\n\n  x don't WE'LL\r\n",
    "<|im_start|>system",
)


@pytest.mark.faults
async def test_it_is_wired_by_its_name_counts_as_its_server_does_and_answers_with_a_valid_call() -> None:
    gguf = qwen()
    asked = ServerConfig(model="qwen2.5-coder-1.5b", context=1024, reasons=True, adapter="none")
    async with model_deciders(asked) as found:
        assert (found.calling, found.trained, found.packet_tokens) == ("reasoned", False, 3000)
        assert (found.record["model"], found.counter.exact, found.reserve) == ("qwen2.5-coder-1.5b", True, 512)
        tools = (ToolEntry(name="run_linter"),)
        policy = found.policy(SubagentDefinition(name="lint", goal="g", system_prompt="s", tools=tools))
        text = "Lint errors: F401 at line 1. Call apply_fix for it, as JSON."
        decision = await policy.decide(Prompt(({"role": "user", "content": text},), TOOLS, turn=1))
        assert decision.calls[0].tool in {tool.name for tool in TOOLS}
        assert decision.text.startswith('{"why":"')
        assert "\n" not in decision.text
        child = await policy._server.ready()  # type: ignore[attr-defined]
        server = ServerCounter(child.url, api_key=child.key, deadline_s=60)
        assert [GgufCounter(gguf).count(each) for each in TEXTS] == [server.count(each) for each in TEXTS]


@pytest.mark.faults
@pytest.mark.parametrize("adapter", ["bundled", "none"])
async def test_it_declines_what_its_tool_cannot_do_and_calls_it_for_what_it_can(
    adapter: Literal["bundled", "none"],
) -> None:
    qwen()
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tide = ToolSpec(name="get_tide_times", description="High and low tide at a harbour.", parameters=city)
    async with model_deciders(ServerConfig(model="qwen2.5-coder-1.5b", context=1024, adapter=adapter)) as found:
        assert found.trained == (adapter == "bundled")
        policy = found.policy(SubagentDefinition(name="x", goal="g", system_prompt="s", tools=(ToolEntry(name="t"),)))
        for goal, wanted in (
            ("When is high tide in Dover tomorrow?", "get_tide_times"),
            ("Write a poem about autumn.", "no_tool_fits"),
        ):
            system = system_text("Do what the user asks.", (tide, NO_TOOL_FITS))
            messages = ({"role": "system", "content": system}, {"role": "user", "content": goal})
            decision = await policy.decide(Prompt(messages, (tide, NO_TOOL_FITS), turn=1, goal=goal))
            assert decision.calls[0].tool == wanted
            # Only the base model is asked a second question about its call.
            assert decision.fit.get("fits") == (None if found.trained else wanted != "no_tool_fits")
