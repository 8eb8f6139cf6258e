"""Messages of Gemini's API, as Google's Agent Development Kit records them in its spans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def gemini_messages(contents: Any) -> list[dict[str, Any]]:
    """The messages of a request, or the one of a reply, with parts as the other APIs name them."""
    listed = contents if isinstance(contents, list) else [contents]
    return [_message(each) for each in listed if isinstance(each, Mapping)]


def _message(content: Mapping[str, Any]) -> dict[str, Any]:
    parts = content.get("parts")
    read = [_part(part) for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    return {"role": str(content.get("role") or "user"), "content": read}


def _part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    call, response = (
        _either(part, "function_call", "functionCall"),
        _either(part, "function_response", "functionResponse"),
    )
    if isinstance(call, Mapping):
        named = {"id": call.get("id") or call.get("name"), "name": call.get("name")}
        return {"type": "tool_call", **named, "arguments": call.get("args")}
    if isinstance(response, Mapping):
        call_id = response.get("id") or response.get("name")
        return {"type": "tool_call_response", "id": call_id, "response": response.get("response")}
    return {"type": "reasoning" if part.get("thought") else "text", **part}


def gemini_tools(listed: Any) -> list[Any]:
    """The functions that a request offers."""
    groups = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    found = [_either(each, "function_declarations", "functionDeclarations") for each in groups]
    return [
        {**each, "parameters": _either(each, "parameters", "parameters_json_schema", "parametersJsonSchema")}
        for functions in found
        if isinstance(functions, list)
        for each in functions
        if isinstance(each, Mapping)
    ]


def _either(part: Mapping[str, Any], *names: str) -> Any:
    return next((part[name] for name in names if name in part), None)
