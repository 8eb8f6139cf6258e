"""The tools that an agent could call, derived from the calls in its logs where the logs hold no schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from remora.analysis import AssistantTurn, Chat
from remora.context.contracts import ToolSpec
from remora.events import Call

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_DEPTH = 4


def derive_tools(chats: Iterable[Chat]) -> list[dict[str, Any]]:
    """Tools in OpenAI's shape: those that the logs list, else names, arguments and types of the calls that were made.

    An argument is required if every call of the tool has it.
    """
    listed: dict[str, ToolSpec] = {}
    made: dict[str, list[Call]] = {}
    for chat in chats:
        listed |= {tool.name: tool for tool in chat.tools}
        for step in chat.steps:
            for call in step.calls if isinstance(step, AssistantTurn) else ():
                made.setdefault(call.tool, []).append(call)
    names = sorted({*listed, *made})
    return [listed[name].openai() if name in listed else _tool(name, made[name]) for name in names]


def by_shape(chats: Iterable[Chat]) -> dict[bool, list[Chat]]:
    """Runs whose calls are text actions apart from runs with function calls: their tools differ."""
    groups: dict[bool, list[Chat]] = {}
    for chat in chats:
        groups.setdefault(calls_by_text(chat), []).append(chat)
    return groups


def calls_by_text(chat: Chat) -> bool:
    """Whether the agent wrote its calls as text."""
    return any(isinstance(step, AssistantTurn) and step.calls and step.by_text for step in chat.steps)


def _tool(name: str, calls: list[Call]) -> dict[str, Any]:
    parameters = _schema([call.args for call in calls], _DEPTH)
    description = name.replace("_", " ").capitalize()
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _schema(values: list[Any], depth: int) -> dict[str, Any]:
    """The JSON Schema of some values, as far as they agree."""
    types = {type(value) for value in values if value is not None}
    if types <= {int, float} and len(types) > 1:
        return {"type": "number"}
    if len(types) != 1 or not depth:
        return {}
    (kind,) = types
    schema: dict[str, Any] = {"type": _TYPES[kind]} if kind in _TYPES else {}
    if kind is dict:
        schema |= _object([value for value in values if isinstance(value, Mapping)], depth)
    items = [item for value in values if isinstance(value, list) for item in value]
    return schema | {"items": _schema(items, depth - 1)} if items else schema


def _object(values: list[Mapping[str, Any]], depth: int) -> dict[str, Any]:
    names = list(dict.fromkeys(name for value in values for name in value))
    return {
        "properties": {name: _schema([value[name] for value in values if name in value], depth - 1) for name in names},
        "required": [name for name in names if all(name in value for value in values)],
    }
