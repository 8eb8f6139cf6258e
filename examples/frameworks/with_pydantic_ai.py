"""A Pydantic AI agent on both tracks: `python with_pydantic_ai.py [MODEL]`, without a model from a script.

Needs `pip install "remora-agents[pydantic-ai]"`.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import airline
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from remora.integrations.pydantic_ai import TwoTracks


def scripted() -> FunctionModel:
    steps = iter(enumerate(airline.script()))

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        number, step = next(steps)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(*step, f"call-{number}")])

    return FunctionModel(answer)


async def main(model: str = "") -> None:
    agent = Agent(instructions=airline.SYSTEM, tools=airline.TOOLS, capabilities=[TwoTracks(name="airline")])
    result = await agent.run(airline.QUESTION, model=model or scripted())
    print(result.output)


asyncio.run(main(*sys.argv[1:]))
