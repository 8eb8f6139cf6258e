from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).parent]
sys.path.append(str(Path(__file__).parents[1]))

from scenarios import common  # noqa: E402
from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool  # noqa: E402
from smolagents.models import (  # noqa: E402
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
)

from remora.integrations.smolagents import TwoTracks  # noqa: E402


@tool
def weather(city: str) -> dict:
    """Weather.

    Args:
        city: The city.
    """
    return common.weather(city)


@tool
def die() -> str:
    """Die."""
    return common.die()


class Script(Model):
    def __init__(self, ask: common.Ask, told: common.Told) -> None:
        super().__init__(model_id="scripted")
        self.steps, self.told = iter(ask.script), told

    def generate(self, messages: Any, tools_to_call_from: Any = None, **_: Any) -> ChatMessage:
        system, *said = (message.content[0]["text"] for message in messages)
        names = [each.name for each in tools_to_call_from or ()]
        self.told.prompts.append({"system": system, "said": said, "tools": names})
        step = next(self.steps)
        if isinstance(step, dict):
            # Its own kind of failed output: a text that holds no call.
            step = "It is warm." if step == common.BAD else json.dumps(step)
        if isinstance(step, str) and not step.startswith("It is"):
            step = [("final_answer", {"answer": step}, "call_final")]
        if isinstance(step, str):
            return ChatMessage(role=MessageRole.ASSISTANT, content=step)
        calls = [
            ChatMessageToolCall(
                id=call_id, type="function", function=ChatMessageToolCallFunction(name=name, arguments=args)
            )
            for name, args, call_id in step
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)


class Streaming(Script):
    def generate_stream(self, messages: Any, **more: Any) -> Any:
        message = self.generate(messages, **more)
        for word in (message.content or "").split():
            yield ChatMessageStreamDelta(content=word)
        for index, call in enumerate(message.tool_calls or ()):
            function = ChatMessageToolCallFunction(
                name=call.function.name, arguments=json.dumps(call.function.arguments)
            )
            delta = ChatMessageToolCallStreamDelta(index=index, id=call.id, type=call.type, function=function)
            yield ChatMessageStreamDelta(content="", tool_calls=[delta])


def _talk(ask: common.Ask) -> common.Told:
    told = common.Told()

    @tool
    def wait() -> str:
        """Wait."""
        agent.interrupt()
        return "interrupted"

    model = (Streaming if ask.how == "stream" else Script)(ask, told)
    agent = ToolCallingAgent(
        [weather, die, wait], model, instructions="Be kind.", verbosity_level=-1, stream_outputs=ask.how == "stream"
    )
    try:
        with TwoTracks(agent, ask.conversation, state_dir=ask.state_dir):
            if ask.how == "stream":
                told.output = str(list(agent.run(ask.text, stream=True))[-1].output)
            else:
                told.output = str(agent.run(ask.text))
    except Exception as error:  # noqa: BLE001 - whatever the framework raises is told
        told.raised = f"{type(error).__name__}: {error}"
    return told


async def talk(ask: common.Ask) -> common.Told:
    return await asyncio.to_thread(_talk, ask)


if __name__ == "__main__":
    common.main(talk)
