"""Values against the JSON Schema of a tool's arguments. Nothing is coerced; every misfit is told with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def problems(schema: Mapping[str, Any], value: Any, place: str = "") -> list[str]:
    """Everything in `value` that does not fit, each with its place."""
    if "properties" in schema:
        return _record_problems(schema, value, place)
    if "anyOf" in schema:
        fits = any(not problems(option, value) for option in schema["anyOf"])
        return [] if fits else [f"{place}: expected {describe(schema)}, got {_kind(value)}"]
    if "enum" in schema:
        fits = any(type(value) is type(choice) and value == choice for choice in schema["enum"])
        return [] if fits else [f"{place}: expected {describe(schema)}, got {value!r:.80}"]
    if "type" in schema and not _is(schema["type"], value):
        return [f"{place}: expected {describe(schema)}, got {_kind(value)}"]
    return _inner_problems(schema, value, place)


def _record_problems(schema: Mapping[str, Any], value: Any, place: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{place or 'arguments'}: expected an object, got {_kind(value)}"]
    known = schema["properties"]
    names = ", ".join(f"`{name}`" for name in known) or "none"
    found = [f"`{name!s:.80}` is not an argument: expected {names}" for name in value if name not in known]
    found += [f"`{name}` is missing" for name in schema.get("required", ()) if name not in value]
    for name, inner in known.items():
        if name in value:
            found += problems(inner, value[name], f"`{name}`")
    return found


def _inner_problems(schema: Mapping[str, Any], value: Any, place: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            found += problems(schema["items"], item, f"{place}[{index}]")
    if isinstance(value, Mapping) and isinstance(schema.get("additionalProperties"), Mapping):
        for name, item in value.items():
            found += problems(schema["additionalProperties"], item, f"{place}.{name!s:.80}")
    return found


def describe(schema: Mapping[str, Any]) -> str:
    """What a schema expects, in a few words."""
    if "anyOf" in schema:
        return " or ".join(describe(option) for option in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(repr(choice) for choice in schema["enum"])
    return str(schema.get("type", "any value"))


def _is(kind: Any, value: Any) -> bool:
    if isinstance(kind, list):
        return any(_is(each, value) for each in kind)
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    python: dict[str, Any] = {
        "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
        "null": type(None),
    }  # fmt: skip
    # A kind that is none of JSON Schema's says nothing that could be checked.
    return kind not in python or isinstance(value, python[kind])


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), type(value).__name__)
