from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).parent]
sys.path.append(str(Path(__file__).parents[1]))

from pydantic import BaseModel  # noqa: E402
from pydantic_ai import Agent  # noqa: E402
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart  # noqa: E402
from pydantic_ai.models.function import DeltaToolCall, FunctionModel  # noqa: E402
from scenarios import common  # noqa: E402

from remora.integrations.pydantic_ai import TwoTracks  # noqa: E402


class Report(BaseModel):
    city: str
    temp_c: int


class Script:
    def __init__(self, ask: common.Ask, told: common.Told) -> None:
        self.steps, self.told = iter(ask.script), told

    def answer(self, messages: list[Any], info: Any) -> ModelResponse:
        first, *rest = (part for message in messages for part in message.parts)
        said = [
            common.made_call(part.tool_name, part.args) if isinstance(part, ToolCallPart) else part.content
            for part in rest
        ]
        names = [tool.name for tool in info.function_tools]
        self.told.prompts.append({"system": first.content, "said": said, "tools": names})
        step = next(self.steps)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        if isinstance(step, dict):
            return ModelResponse(parts=[ToolCallPart("final_result", step, "call_final")])
        return ModelResponse(parts=[ToolCallPart(tool, args, call_id) for tool, args, call_id in step])

    async def stream(self, messages: list[Any], info: Any) -> Any:
        for number, part in enumerate(self.answer(messages, info).parts):
            if isinstance(part, TextPart):
                for word in part.content.split(" "):
                    yield f"{word} "
            else:
                yield {number: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}


async def talk(ask: common.Ask) -> common.Told:
    told, began = common.Told(), asyncio.Event()
    script = Script(ask, told)
    output: Any = Report if ask.how == "structured" else str
    agent: Any = Agent(output_type=output, instructions="Be kind.", capabilities=[TwoTracks(state_dir=ask.state_dir)])
    agent.tool_plain(common.weather)
    agent.tool_plain(common.die)

    @agent.tool_plain
    async def wait() -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    model = FunctionModel(script.answer, stream_function=script.stream)
    settings = {"model": model} | ({"conversation_id": ask.conversation} if ask.conversation else {})
    try:
        if ask.how == "stream":
            async with agent.run_stream(ask.text, **settings) as result:
                told.output = "".join([text async for text in result.stream_text(delta=True)]).strip()
        elif ask.how == "cancel":
            task = asyncio.create_task(agent.run(ask.text, **settings))
            await began.wait()
            task.cancel()
            await task
        else:
            told.output = str((await agent.run(ask.text, **settings)).output)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever the framework raises is told
        told.raised = f"{type(error).__name__}: {error}"
    return told


if __name__ == "__main__":
    common.main(talk)
