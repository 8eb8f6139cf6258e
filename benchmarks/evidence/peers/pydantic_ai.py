"""Pydantic AI: a history processor, as its documentation shows them."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)


def text_of(message) -> str:
    return "\n".join(
        f"{part.tool_name}({part.args_as_json_str()})" if isinstance(part, ToolCallPart) else str(part.content)
        for part in message.parts
    )


def to_pydantic_ai(message):
    match message["role"]:
        case "user":
            return ModelRequest(parts=[UserPromptPart(message["content"])])
        case "tool":
            returned = ToolReturnPart(message["name"], message["content"], message["tool_call_id"])
            return ModelRequest(parts=[returned])
        case _:
            parts = [TextPart(message["content"])] if message["content"] else []
            parts += [
                ToolCallPart(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])
                for call in message.get("tool_calls") or ()
            ]
            return ModelResponse(parts=parts)


class KeepRecent:
    """The first message and the newest that fit. A tool's return is not kept without its call."""

    def __init__(self, goal, count):
        self._count = count
        self._messages = [ModelRequest(parts=[UserPromptPart(goal)])]
        self._sizes = [count(goal)]

    def take(self, messages):
        for message in map(to_pydantic_ai, messages):
            self._messages.append(message)
            self._sizes.append(self._count(text_of(message)))

    def show(self, budget):
        async def keep_recent(messages):
            at, room = len(messages), budget - self._sizes[0]
            while at > 1 and self._sizes[at - 1] <= room:
                at -= 1
                room -= self._sizes[at]
            while at < len(messages) and _returns_tool(messages[at]):
                at += 1
            return [messages[0], *messages[max(1, at) :]]

        context = SimpleNamespace(messages=list(self._messages))
        request = SimpleNamespace(messages=list(self._messages))
        asyncio.run(ProcessHistory(keep_recent).before_model_request(context, request))
        return [text_of(message) for message in request.messages]


def _returns_tool(message) -> bool:
    return any(isinstance(part, ToolReturnPart) for part in message.parts)


MEMORIES = {"Pydantic AI history processor": KeepRecent}
