"""The JSON Schema that constrains a reply to one of the offered calls, if the server enforces it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remora.context.contracts import ToolSpec
from remora.inference._grammar import WHY

_ANNOTATIONS = ("title", "description", "default", "examples")
"""Keys that inform a reader but do not constrain the output."""


def union_schema(tools: Sequence[ToolSpec], *, reasoned: bool = False) -> dict[str, Any]:
    """Schema of `{"tool": NAME, "args": {…}}` for any one of the tools, with no other keys but `why`, if `reasoned`."""
    return {"anyOf": [_call(tool, {WHY: {"type": "string"}} if reasoned else {}) for tool in tools]}


def response_format(tools: Sequence[ToolSpec], *, reasoned: bool = False) -> dict[str, Any]:
    """The union as OpenAI's `response_format`, which llama.cpp, vLLM, Ollama and LM Studio support."""
    schema = union_schema(tools, reasoned=reasoned)
    return {"type": "json_schema", "json_schema": {"name": "call", "strict": True, "schema": schema}}


def _call(tool: ToolSpec, before: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**before, "tool": {"const": tool.name}, "args": _close_schema(tool.parameters)},
        "required": [*before, "tool", "args"],
        "additionalProperties": False,
    }


def _close_schema(schema: Any) -> Any:
    """The schema without descriptions, with closed objects, so that the grammar ends where the call ends."""
    if isinstance(schema, list):
        return [_close_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {
        key: item for key, item in schema.items() if key not in _ANNOTATIONS and key not in ("properties", "enum")
    }
    closed = {key: _close_schema(item) for key, item in closed.items()}
    if "enum" in schema:
        closed["enum"] = schema["enum"]
    if isinstance(schema.get("properties"), Mapping):
        closed["properties"] = {name: _close_schema(item) for name, item in schema["properties"].items()}
        closed["additionalProperties"] = False
    return closed
