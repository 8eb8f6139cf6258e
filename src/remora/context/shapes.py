"""Chat messages in the shapes of other APIs than OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson


def responses_items(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages as input items of OpenAI's Responses API, without the system message."""
    for message in messages:
        if message["role"] == "tool":
            yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
        elif message["role"] != "system" and message["content"]:
            yield {"role": message["role"], "content": message["content"]}
        for call in message.get("tool_calls", ()):
            yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def anthropic_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages as Anthropic's Messages API takes them, without the system message. Roles alternate."""
    shaped: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        if not shaped or shaped[-1]["role"] != role:
            shaped.append({"role": role, "content": []})
        shaped[-1]["content"] += _blocks(message)
    return shaped


def _blocks(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if message["role"] == "tool":
        yield {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
    elif message["content"]:
        yield {"type": "text", "text": message["content"]}
    for call in message.get("tool_calls", ()):
        function = call["function"]
        yield {
            "type": "tool_use",
            "id": call["id"],
            "name": function["name"],
            "input": orjson.loads(function["arguments"]),
        }
