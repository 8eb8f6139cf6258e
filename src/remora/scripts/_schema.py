"""Annotations to JSON Schema, and values against such a schema. Nothing is coerced.

Known: `str int float bool None Any list dict list[T] dict[str, T] Literal[…]` and unions of these with `|`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

SIMPLE: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    "dict": {"type": "object"},
    "Any": {},
}
KNOWN = "`str`, `int`, `float`, `bool`, `list[…]`, `dict[str, …]`, `Literal[…]`, `… | None` or `Any`"


def from_annotation(node: ast.expr) -> dict[str, Any]:
    """The JSON Schema of a type. Raises `ValueError` for a type that is not known."""
    match node:
        case ast.Name(id=name) if name in SIMPLE:
            return dict(SIMPLE[name])
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(text)):
            return from_annotation(_parsed(text))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return {"anyOf": [*_options(from_annotation(left)), *_options(from_annotation(right))]}
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return {"type": "array", "items": from_annotation(item)}
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[ast.Name(id="str"), value])):
            return {"type": "object", "additionalProperties": from_annotation(value)}
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            return {"enum": _literals(choices)}
    raise ValueError(f"type `{ast.unparse(node)}` is not known: expected {KNOWN}")


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"type `{text}` is not known: expected {KNOWN}") from None


def _options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return list(schema["anyOf"]) if "anyOf" in schema else [schema]


def _literals(node: ast.expr) -> list[Any]:
    values = [ast.literal_eval(item) for item in (node.elts if isinstance(node, ast.Tuple) else [node])]
    if not all(value is None or isinstance(value, str | int | bool) for value in values):
        raise ValueError("`Literal` takes strings, numbers, booleans and None")
    return values


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


def _is(kind: str, value: Any) -> bool:
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    python: dict[str, Any] = {
        "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
        "null": type(None),
    }  # fmt: skip
    return isinstance(value, python[kind])


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), type(value).__name__)
