from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).parent]
sys.path.append(str(Path(__file__).parents[1]))

from langchain.agents import create_agent  # noqa: E402
from langchain.agents.structured_output import ToolStrategy  # noqa: E402
from langchain.messages import AIMessage  # noqa: E402
from langchain.tools import tool  # noqa: E402
from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langchain_core.utils.function_calling import convert_to_openai_tool  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from scenarios import common  # noqa: E402

from remora.integrations.langchain import TwoTracks  # noqa: E402

SAVERS: dict[str, InMemorySaver] = {}


class Report(BaseModel):
    """A report."""

    city: str
    temp_c: int


class Script(BaseChatModel):
    steps: list[Any]
    told: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        names = [each["function"]["name"] for each in kwargs.get("tools", [])]
        said = [
            part
            for message in messages[1:]
            for part in (
                message.content,
                *(common.made_call(call["name"], call["args"]) for call in getattr(message, "tool_calls", ())),
            )
        ]
        self.told.prompts.append({"system": messages[0].content, "said": said, "tools": names})
        step = self.steps.pop(0)
        if isinstance(step, str):
            reply = AIMessage(step)
        else:
            made = [("Report", step, "call_final")] if isinstance(step, dict) else step
            calls = [{"name": name, "args": args, "id": call_id} for name, args, call_id in made]
            reply = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])


async def talk(ask: common.Ask) -> common.Told:
    told, began = common.Told(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        await asyncio.Event().wait()
        return ""

    tools = [tool(common.weather, description="Weather."), tool(common.die, description="Die."), wait]
    tracks = TwoTracks(state_dir=ask.state_dir)
    saver = SAVERS.setdefault(ask.state_dir, InMemorySaver()) if ask.conversation else None
    agent: Any = create_agent(
        Script(steps=ask.script, told=told),
        tools,
        system_prompt="Be kind.",
        middleware=[tracks],
        checkpointer=saver,
        response_format=ToolStrategy(Report) if ask.how == "structured" else None,
    )
    config = {"configurable": {"thread_id": ask.conversation}} if ask.conversation else {}
    messages = {"messages": [("user", ask.text)]}
    try:
        if ask.how == "stream":
            chunks = agent.astream(messages, config, stream_mode="messages")
            told.output = [chunk.content async for chunk, _ in chunks if chunk.type == "ai"][-1]
        elif ask.how == "cancel":
            task = asyncio.create_task(agent.ainvoke(messages, config))
            await began.wait()
            task.cancel()
            await task
        elif ask.conversation:
            # The async way is taken by the others.
            result = await asyncio.to_thread(agent.invoke, messages, config)
            told.output = result["messages"][-1].text
        else:
            result = await agent.ainvoke(messages, config)
            told.output = str(result.get("structured_response") or result["messages"][-1].text)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever the framework raises is told
        told.raised = f"{type(error).__name__}: {error}"
    tracks.close()
    return told


if __name__ == "__main__":
    common.main(talk)
