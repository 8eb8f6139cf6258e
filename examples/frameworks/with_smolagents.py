"""A smolagents agent on both tracks: `python with_smolagents.py [MODEL]`, without a model from a script.

Needs `pip install "remora-agents[smolagents]"`.
"""

from __future__ import annotations

import sys
from typing import Any

import airline
from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, LiteLLMModel

from remora.integrations.smolagents import TwoTracks


class Scripted(Model):
    def __init__(self) -> None:
        super().__init__(model_id="scripted")
        self.steps = iter(enumerate(airline.script()))

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        number, step = next(self.steps)
        name, args = ("final_answer", {"answer": step}) if isinstance(step, str) else step
        function = ChatMessageToolCallFunction(name=name, arguments=args)
        call = ChatMessageToolCall(id=f"call-{number}", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


def main(model: str = "") -> None:
    tools = [tool(each) for each in airline.TOOLS]
    chosen = LiteLLMModel(model_id=model) if model else Scripted()
    agent = ToolCallingAgent(tools, chosen, instructions=airline.SYSTEM, verbosity_level=0)
    with TwoTracks(agent, name="airline") as two:
        print(agent.run(airline.QUESTION))
        print(two.track.path)


main(*sys.argv[1:])
