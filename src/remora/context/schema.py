"""Validates values by the JSON Schema of a tool's arguments. Never coerces; locates every problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def problems(schema: Mapping[str, Any], value: Any, place: str = "") -> list[str]:
    """All violations of `schema` in `value`, each with its location."""
    if "properties" in schema:
        return _record_problems(schema, value, place)
    if "anyOf" in schema:
        fits = any(not problems(option, value) for option in schema["anyOf"])
        return [] if fits else [f"{place}: expected {describe(schema)}, got {_type_name(value)}"]
    if "enum" in schema:
        fits = any(type(value) is type(choice) and value == choice for choice in schema["enum"])
        return [] if fits else [f"{place}: expected {describe(schema)}, got {value!r:.80}"]
    if "type" in schema and not _has_type(schema["type"], value):
        return [f"{place}: expected {describe(schema)}, got {_type_name(value)}"]
    return _inner_problems(schema, value, place)


def _record_problems(schema: Mapping[str, Any], value: Any, place: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{place or 'arguments'}: expected an object, got {_type_name(value)}"]
    known = schema["properties"]
    names = ", ".join(f"`{name}`" for name in known) or "none"
    violations = [f"`{name!s:.80}` is not an argument: expected {names}" for name in value if name not in known]
    violations += [f"`{name}` is missing" for name in schema.get("required", ()) if name not in value]
    for name, inner in known.items():
        if name in value:
            violations += problems(inner, value[name], f"`{name}`")
    return violations


def _inner_problems(schema: Mapping[str, Any], value: Any, place: str) -> list[str]:
    violations: list[str] = []
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            violations += problems(schema["items"], item, f"{place}[{index}]")
    if isinstance(value, Mapping) and isinstance(schema.get("additionalProperties"), Mapping):
        for name, item in value.items():
            violations += problems(schema["additionalProperties"], item, f"{place}.{name!s:.80}")
    return violations


def describe(schema: Mapping[str, Any]) -> str:
    """Describe a schema in a few words."""
    if "anyOf" in schema:
        return " or ".join(describe(option) for option in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(repr(choice) for choice in schema["enum"])
    return str(schema.get("type", "any value"))


def _has_type(kind: Any, value: Any) -> bool:
    if isinstance(kind, list):
        return any(_has_type(each, value) for each in kind)
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    python: dict[str, Any] = {
        "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
        "null": type(None),
    }  # fmt: skip
    # A type that JSON Schema does not define accepts any value.
    return kind not in python or isinstance(value, python[kind])


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), type(value).__name__)
