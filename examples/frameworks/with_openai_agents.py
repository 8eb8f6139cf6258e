"""An OpenAI Agents SDK agent on both tracks: `python with_openai_agents.py [MODEL]`, without a model from a script.

Needs `pip install "remora-agents[openai-agents]"`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import airline
from agents.testing import ScriptedModel, assistant_message, function_call

from agents import Agent, Runner, function_tool
from remora.integrations.openai_agents import TwoTracks


def scripted() -> ScriptedModel:
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    steps = enumerate(airline.script())
    return ScriptedModel(
        [assistant_message(step)] if isinstance(step, str) else [function_call(*step, call_id=f"call-{number}")]
        for number, step in steps
    )


async def main(model: str = "") -> None:
    tools: list[Any] = [function_tool(tool) for tool in airline.TOOLS]
    agent: Any = Agent("Airline", instructions=airline.SYSTEM, tools=tools, model=model or scripted())
    async with TwoTracks(name="airline") as two:
        given = {"hooks": two, "run_config": two.run_config(), "max_turns": 20}
        result = await Runner.run(two.agent(agent), airline.QUESTION, **given)
        print(result.final_output)
        print(two.track.path)


asyncio.run(main(*sys.argv[1:]))
