from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
sys.path.append(str(Path(__file__).parents[1]))

from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic import BaseModel
from scenarios import common

from agents import Agent, AgentOutputSchema, Runner, SQLiteSession, function_tool
from remora.integrations.openai_agents import TwoTracks

SESSIONS: dict[str, SQLiteSession] = {}


class Report(BaseModel):
    city: str
    temp_c: int


def _step(step: Any) -> list[Any]:
    if isinstance(step, list):
        return [function_call(name, args, call_id=call_id) for name, args, call_id in step]
    return [assistant_message(step if isinstance(step, str) else json.dumps(step))]


async def talk(ask: common.Ask) -> common.Told:
    told, began = common.Told(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        began.set()
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel([_step(step) for step in ask.script])
    agent: Any = Agent(
        "Helper",
        instructions="Be kind.",
        tools=[function_tool(common.weather), function_tool(common.die), wait],
        model=model,
        output_type=AgentOutputSchema(Report) if ask.how == "structured" else None,
    )
    session = SESSIONS.setdefault(ask.state_dir + ask.conversation, SQLiteSession(ask.conversation or "one"))
    try:
        async with TwoTracks(ask.conversation, state_dir=ask.state_dir) as two:
            given = {"hooks": two, "run_config": two.run_config(), "session": session if ask.conversation else None}
            if ask.how == "stream":
                result = Runner.run_streamed(two.agent(agent), ask.text, **given)
                async for _ in result.stream_events():
                    pass
                told.output = result.final_output
            elif ask.how == "cancel":
                task = asyncio.create_task(Runner.run(two.agent(agent), ask.text, **given))
                await began.wait()
                task.cancel()
                await task
            else:
                told.output = str((await Runner.run(two.agent(agent), ask.text, **given)).final_output)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever the framework raises is told
        told.raised = f"{type(error).__name__}: {error}"
    for call in model.calls:
        said = [
            common.made_call(item["name"], item["arguments"])
            if item.get("type") == "function_call"
            else item.get("output") or item["content"]
            for item in call.input
        ]
        names = [tool.name for tool in call.tools]
        told.prompts.append({"system": call.system_instructions, "said": said, "tools": names})
    return told


if __name__ == "__main__":
    common.main(talk)
