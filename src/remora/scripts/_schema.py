"""Annotations to JSON Schema.

Supported: `str int float bool None Any list dict list[T] dict[str, T] Literal[…]`, and unions of these with `|`,
`Optional` or `Union`.
"""

from __future__ import annotations

import ast
from typing import Any

SIMPLE: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    "dict": {"type": "object"},
    "List": {"type": "array"},
    "Dict": {"type": "object"},
    "Any": {},
}
KNOWN = "`str`, `int`, `float`, `bool`, `list[…]`, `dict[str, …]`, `Literal[…]`, `… | None` or `Any`"


def from_annotation(node: ast.expr) -> dict[str, Any]:
    """The JSON Schema of a type. Raises `ValueError` for a type that is not supported."""
    match node:
        case ast.Attribute(value=ast.Name(id="typing"), attr=name):
            return from_annotation(ast.Name(id=name))
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="typing"), attr=name), slice=item):
            return from_annotation(ast.Subscript(value=ast.Name(id=name), slice=item))
        case ast.Name(id=name) if name in SIMPLE:
            return dict(SIMPLE[name])
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(text)):
            return from_annotation(_parse_annotation(text))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return {"anyOf": [*_options(from_annotation(left)), *_options(from_annotation(right))]}
        case ast.Subscript(value=ast.Name(id="Optional"), slice=item):
            return {"anyOf": [*_options(from_annotation(item)), {"type": "null"}]}
        case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=items)):
            return {"anyOf": [option for item in items for option in _options(from_annotation(item))]}
        case ast.Subscript(value=ast.Name(id="list" | "List"), slice=item):
            return {"type": "array", "items": from_annotation(item)}
        case ast.Subscript(value=ast.Name(id="dict" | "Dict"), slice=ast.Tuple(elts=[ast.Name(id="str"), value])):
            return {"type": "object", "additionalProperties": from_annotation(value)}
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            return {"enum": _literals(choices)}
    raise ValueError(f"type `{ast.unparse(node)}` is not supported: expected {KNOWN}")


def _parse_annotation(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"type `{text}` is not supported: expected {KNOWN}") from None


def _options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return list(schema["anyOf"]) if "anyOf" in schema else [schema]


def _literals(node: ast.expr) -> list[Any]:
    try:
        values = [ast.literal_eval(item) for item in (node.elts if isinstance(node, ast.Tuple) else [node])]
    except ValueError:
        values = [...]
    if not all(value is None or isinstance(value, str | int | bool) for value in values):
        raise ValueError("`Literal` takes strings, numbers, booleans and None")
    return values
