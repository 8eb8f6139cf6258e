"""LangChain's `trim_messages`."""

from __future__ import annotations

import json
from typing import ClassVar

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages


def text_of(message) -> str:
    calls = [f"{call['name']}({json.dumps(call['args'])})" for call in getattr(message, "tool_calls", None) or ()]
    return "\n".join(part for part in (message.content, *calls) if part)


def to_langchain(message):
    match message["role"]:
        case "user":
            return HumanMessage(message["content"])
        case "tool":
            return ToolMessage(message["content"], tool_call_id=message["tool_call_id"])
        case _:
            calls = [
                {"name": f["name"], "args": json.loads(f["arguments"]), "id": call["id"], "type": "tool_call"}
                for call in message.get("tool_calls") or ()
                for f in [call["function"]]
            ]
            return AIMessage(message["content"] or "", tool_calls=calls)


class Documented:
    """The pattern of the documentation: newest messages, from a human's on, and the system message."""

    options: ClassVar = {"start_on": "human", "end_on": ("human", "tool")}

    def __init__(self, goal, count):
        self._sizes = {}
        self._count = count
        self._messages = [SystemMessage(""), HumanMessage(goal)]

    def take(self, messages):
        self._messages += map(to_langchain, messages)

    def show(self, budget):
        kept = trim_messages(
            self._messages,
            strategy="last",
            max_tokens=budget,
            token_counter=self._tokens,
            include_system=True,
            **self.options,
        )
        return [text_of(message) for message in kept if text_of(message)]

    def _tokens(self, messages):
        return sum(self._size(message) for message in messages)

    def _size(self, message):
        if id(message) not in self._sizes or self._sizes[id(message)][0] is not message:
            self._sizes[id(message)] = (message, self._count(text_of(message)))
        return self._sizes[id(message)][1]


class TaskAsSystem(Documented):
    """The task as the system message, which is always kept, and the newest messages from any on."""

    options: ClassVar = {}

    def __init__(self, goal, count):
        super().__init__(goal, count)
        self._messages = [SystemMessage(goal)]


MEMORIES = {"LangChain trim_messages": Documented, "LangChain, task as system text": TaskAsSystem}
