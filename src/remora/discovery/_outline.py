"""What other files must know about a Python file: its classes, its names, its functions, and parts of names in strings.

Small and cached, so that a proof about one file can look at all others without keeping their syntax trees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from remora.discovery._behaviour import Function
from remora.discovery._literal import python_tree

REACHED_BY = frozenset({"getattr", "setattr", "hasattr", "delattr", "attrgetter", "methodcaller"})


@dataclass(frozen=True)
class ClassOutline:
    """The bases and methods of a class."""

    bases: tuple[str, ...]
    methods: frozenset[str]
    is_plain: bool
    """Whether it has no metaclass or other keyword, and does not look at its subclasses."""


@dataclass(frozen=True)
class FunctionOutline:
    """The signature of a function."""

    positional: tuple[str, ...]
    keywords: frozenset[str]
    """All parameters that a caller may name."""
    has_args: bool
    has_kwargs: bool
    typed: bool
    """Whether its result, or all of its parameters, have a type."""
    returns: bool
    """Whether its result has a type."""
    decorated: bool


@dataclass(frozen=True)
class Outline:
    """What a file defines."""

    classes: Mapping[str, ClassOutline] = field(default_factory=dict)
    functions: Mapping[str, FunctionOutline] = field(default_factory=dict)
    """By qualified name: functions of the module, and methods of its classes."""
    names: frozenset[str] = frozenset()
    """Every name that the module binds, wherever in the file."""
    is_open: bool = False
    """Whether it may have more names: `import *`, `__getattr__`, `globals()`."""
    pieces: frozenset[tuple[str, bool]] = frozenset()
    """Strings that can be a part of a name, and whether each is in a lookup by name."""


def tree_of(source: bytes) -> ast.Module | None:
    """The syntax tree of a file; None if it does not parse."""
    try:
        return python_tree(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


@lru_cache(maxsize=2048)
def outline_of(source: bytes) -> Outline:
    """The outline of a file; an empty one if it does not parse."""
    tree = tree_of(source)
    if tree is None:
        return Outline()
    nodes = list(ast.walk(tree))
    return Outline(
        {node.name: class_outline(node) for node in tree.body if isinstance(node, ast.ClassDef)},
        dict(_functions(tree)),
        frozenset(name for node in nodes for name in _bound(node)),
        any(_opens(node) for node in nodes),
        frozenset(piece for node in nodes for piece in _pieces(node)),
    )


def class_outline(node: ast.ClassDef) -> ClassOutline:
    """The outline of one class."""
    methods = frozenset(each.name for each in node.body if isinstance(each, Function))
    bases = tuple(ast.unparse(base) for base in node.bases)
    return ClassOutline(bases, methods, not node.keywords and "__init_subclass__" not in methods)


def _functions(tree: ast.Module) -> Iterator[tuple[str, FunctionOutline]]:
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, _function(node)
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{one.name}", _function(one)) for one in node.body if isinstance(one, Function))


def _function(node: Function) -> FunctionOutline:
    given = node.args
    named = [*given.posonlyargs, *given.args]
    every = [*named, *given.kwonlyargs]
    own = [one for one in every if one.arg not in ("self", "cls")]
    typed = node.returns is not None or (bool(own) and all(one.annotation for one in own))
    return FunctionOutline(
        tuple(one.arg for one in named),
        frozenset(one.arg for one in [*given.args, *given.kwonlyargs]),
        bool(given.vararg),
        bool(given.kwarg),
        typed,
        node.returns is not None,
        bool(node.decorator_list),
    )


def _bound(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def _opens(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.names[0].name == "*"
    return (isinstance(node, Function) and node.name == "__getattr__") or (
        isinstance(node, ast.Name) and node.id in ("globals", "setattr", "__getattr__", "exec")
    )


def _pieces(node: ast.AST) -> Iterator[tuple[str, bool]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if node.value.isidentifier() and (node.value.startswith("_") or node.value.endswith("_")):
            yield node.value, False
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in REACHED_BY:
        parts = [part for given in node.args for part in ast.walk(given) if not isinstance(given, ast.Constant)]
        for part in parts:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield from ((piece, True) for piece in part.value.split("%s") if piece)
