"""A LangChain agent on both tracks: `python with_langchain.py [MODEL]`, without a model from a script.

Needs `pip install "remora-agents[langchain]"`.
"""

from __future__ import annotations

import sys
from typing import Any

import airline
from langchain.agents import create_agent
from langchain.messages import AIMessage
from langchain_core.language_models import GenericFakeChatModel

from remora.integrations.langchain import TwoTracks


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def scripted() -> Scripted:
    def message(number: int, step: Any) -> AIMessage:
        if isinstance(step, str):
            return AIMessage(step)
        return AIMessage("", tool_calls=[{"name": step[0], "args": step[1], "id": f"call-{number}"}])

    return Scripted(messages=(message(number, step) for number, step in enumerate(airline.script())))


def main(model: str = "") -> None:
    tracks = TwoTracks(name="airline")
    agent: Any = create_agent(
        model or scripted(), list(airline.TOOLS), system_prompt=airline.SYSTEM, middleware=[tracks]
    )
    # Without Remora, 25 steps of the graph are allowed by default; each turn takes several.
    result = agent.invoke({"messages": [("user", airline.QUESTION)]}, {"recursion_limit": 100})
    print(result["messages"][-1].text)
    tracks.close()


main(*sys.argv[1:])
