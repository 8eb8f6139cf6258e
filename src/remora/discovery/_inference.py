"""The type of an expression, as far as Python itself proves it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

PLAIN = ("bool", "int", "float", "str", "bytes", "complex")
CALLS = {
    **dict.fromkeys(("str", "repr", "chr", "hex", "bin", "oct", "format", "ascii"), "str"),
    **dict.fromkeys(("bool", "isinstance", "issubclass", "callable", "hasattr", "any", "all"), "bool"),
    **dict.fromkeys(("int", "len", "ord", "hash", "id"), "int"),
    "float": "float", "bytes": "bytes",
}  # fmt: skip
"""Results of builtin functions."""
_TEXT = "join format strip lstrip rstrip lower upper title capitalize casefold swapcase replace zfill center"
_ASKS = "startswith endswith isdigit isalpha isalnum isspace isupper islower isidentifier isnumeric isdecimal istitle"
METHODS = {
    **{("str", name): "str" for name in (*_TEXT.split(), "ljust", "rjust", "removeprefix", "removesuffix")},
    **{("str", name): "bool" for name in _ASKS.split()},
    **{("str", name): "int" for name in ("count", "find", "index", "rfind", "rindex")},
    ("str", "encode"): "bytes", ("bytes", "decode"): "str", ("bytes", "hex"): "str",
    ("str", "split"): "list[str]", ("str", "splitlines"): "list[str]", ("str", "rsplit"): "list[str]",
}  # fmt: skip
"""Results of methods of builtin types."""
NUMBERS = ("int", "float")
CERTAIN = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


@dataclass(frozen=True)
class Known:
    """What is known where an expression stands."""

    names: Mapping[str, str]
    """Types of parameters and local names."""
    classes: Mapping[str, str]
    """Annotations of classes, by name."""
    shadowed: frozenset[str]
    """Names that the module binds itself, so that they are not builtins there."""


def infer(value: ast.expr, known: Known) -> str | None:
    """The annotation for the type of an expression; None if it is not certain."""
    match value:
        case ast.Constant(value=constant):
            return "None" if constant is None else _plain(type(constant).__name__)
        case ast.JoinedStr():
            return "str"
        case ast.Name(id=name):
            return known.names.get(name)
        case ast.UnaryOp(op=ast.Not()):
            return "bool"
        case ast.UnaryOp(operand=operand):
            found = infer(operand, known)
            return found if found in NUMBERS else None
        case ast.Compare():
            return _compared(value, known)
        case ast.BoolOp(values=parts):
            return _same([infer(part, known) for part in parts])
        case ast.IfExp(body=one, orelse=other):
            return _same([infer(one, known), infer(other, known)])
        case ast.BinOp():
            return _computed(value, known)
        case ast.Call():
            return _called(value, known)
        case ast.Subscript(value=whole, slice=ast.Slice()):
            found = infer(whole, known)
            return found if found in ("str", "bytes") or (found or "").startswith("list[") else None
        case ast.List(elts=parts) if parts:
            inner = _same([infer(part, known) for part in parts])
            return f"list[{inner}]" if inner and inner != "None" else None
    return None


def _plain(name: str) -> str | None:
    return name if name in PLAIN else None


def _same(found: list[str | None]) -> str | None:
    return found[0] if len(set(found)) == 1 else None


def _compared(value: ast.Compare, known: Known) -> str | None:
    if all(isinstance(op, CERTAIN) for op in value.ops):
        return "bool"
    return "bool" if all(infer(part, known) in PLAIN for part in (value.left, *value.comparators)) else None


def _computed(value: ast.BinOp, known: Known) -> str | None:
    left, right = infer(value.left, known), infer(value.right, known)
    if isinstance(value.op, ast.Mod) and left in ("str", "bytes"):
        return left
    if left == right and left in ("str", "bytes") and isinstance(value.op, ast.Add):
        return left
    if left not in NUMBERS or right not in NUMBERS or isinstance(value.op, ast.Pow | ast.MatMult):
        return None
    if isinstance(value.op, ast.Div):
        return "float"
    return "float" if "float" in (left, right) else "int"


def _called(value: ast.Call, known: Known) -> str | None:
    if isinstance(value.func, ast.Attribute):
        owner = infer(value.func.value, known)
        return METHODS.get((owner, value.func.attr)) if owner else None
    if not isinstance(value.func, ast.Name):
        return None
    name = value.func.id
    if name in known.shadowed or name in known.names:
        return known.classes.get(name) if name not in known.names else None
    return CALLS.get(name)
