"""The JSON Schema that holds a reply to one of the offered calls: valid by construction, wherever a server obeys it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remora.context.contracts import ToolSpec

_WORDS_ONLY = ("title", "description", "default", "examples")
"""Keys that say something to a reader and nothing to a grammar."""


def union_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """`{"tool": NAME, "args": {…}}` for any one of the tools, with nothing beside it."""
    return {"anyOf": [_call(tool) for tool in tools]}


def response_format(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The union as OpenAI's `response_format`, which llama.cpp, vLLM, Ollama and LM Studio all take."""
    return {"type": "json_schema", "json_schema": {"name": "call", "strict": True, "schema": union_schema(tools)}}


def _call(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": tool.name}, "args": _closed(tool.parameters)},
        "required": ["tool", "args"],
        "additionalProperties": False,
    }


def _closed(schema: Any) -> Any:
    """The schema without words, its records closed, so that a grammar ends where the call ends."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: item for key, item in schema.items() if key not in _WORDS_ONLY and key not in ("properties", "enum")}
    made = {key: _closed(item) for key, item in made.items()}
    if "enum" in schema:
        made["enum"] = schema["enum"]
    if isinstance(schema.get("properties"), Mapping):
        made["properties"] = {name: _closed(item) for name, item in schema["properties"].items()}
        made["additionalProperties"] = False
    return made
