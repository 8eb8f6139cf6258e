"""Python features that scripts do not support, reported when a script is loaded instead of in the middle of a run.

Determined by trial (pydantic-monty 1.4); `tests/scripts/test_unsupported.py` repeats it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

Found = tuple[ast.AST, str, str]
"""Node, problem, and what to do instead."""

MODULES = frozenset({
    "asyncio", "base64", "binascii", "bisect", "collections", "copy", "csv", "dataclasses", "datetime", "decimal",
    "functools", "hashlib", "itertools", "json", "math", "os", "os.path", "pathlib", "posixpath", "random", "re",
    "sys", "time", "tomllib", "typing", "unicodedata", "__future__"
})  # fmt: skip
"""Modules that a script can import. `os` and `pathlib` have no access to files: host functions have."""

TYPING = frozenset({
    "Annotated", "Any", "Callable", "ClassVar", "Dict", "Final", "FrozenSet", "Generator", "Generic", "Iterable",
    "Iterator", "List", "Literal", "Mapping", "Never", "NoReturn", "Optional", "Protocol", "Self", "Sequence", "Set",
    "Tuple", "Type", "TypeVar", "TYPE_CHECKING", "Union"
})  # fmt: skip

NO_BUILTINS = frozenset({
    "aiter", "anext", "ascii", "breakpoint", "bytearray", "callable", "compile", "delattr", "dir", "eval", "exec",
    "exit", "globals", "help", "input", "issubclass", "locals", "memoryview", "quit", "super", "vars"
})  # fmt: skip

_DECLARED_ELSEWHERE = ("grail", "remora.scripts")
_USABLE = "use one of " + ", ".join(sorted(MODULES - {"__future__"})) + ", a host function, or a module of your own"


def unsupported(nodes: Collection[ast.AST], modules: Collection[str] = ()) -> Iterator[Found]:
    """Everything among a script's nodes that would fail only when it runs. `modules`: those imported from files."""
    defined = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    for node in nodes:
        if isinstance(node, ast.Name):
            yield from _names(node, defined)
        elif isinstance(node, ast.Call):
            yield from _calls(node, functions)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node, modules)
        elif not isinstance(node, ast.Constant | ast.Attribute | ast.expr_context):
            yield from _statements(node)


def _statements(node: ast.AST) -> Iterator[Found]:
    match node:
        case ast.Delete():
            yield node, "`del` does not work in scripts", "assign a new value, or use `.pop`"
        case ast.Yield() | ast.YieldFrom():
            yield node, "`yield` does not work in scripts", "return a list"
        case ast.AsyncFor():
            yield node, "`async for` does not work in scripts", "await the values one by one"
        case ast.AsyncWith():
            yield node, "`async with` does not work in scripts", "use `try` and `finally`"
        case ast.comprehension(is_async=1):
            yield node.target, "`async for` does not work in scripts", "await the values one by one"
        case ast.TryStar():
            yield node, "`except*` does not work in scripts", "use `except`"
        case ast.ClassDef(name=name):
            yield from _class(node, name)


def _class(node: ast.ClassDef, name: str) -> Iterator[Found]:
    if node.bases or node.keywords:
        yield node, f"class `{name}` has a base class", "scripts have no inheritance: use a dict"
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.decorator_list:
            mark = part.decorator_list[0]
            yield mark, f"method `{part.name}` has a decorator", "write a plain method, or a function beside the class"


def _imports(node: ast.AST, modules: Collection[str]) -> Iterator[Found]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                if alias.name not in (*MODULES, *_DECLARED_ELSEWHERE):
                    yield alias, f"module `{alias.name}` does not exist in scripts", _USABLE
        case ast.ImportFrom(level=level) if level:
            yield (
                node,
                "a relative import does not work in scripts",
                "write `from NAME import …` for `NAME.py` in the same folder",
            )
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            yield node, "`import *` does not work in scripts", "name what you import"
        case ast.ImportFrom(module="typing", names=names):
            for alias in names:
                if alias.name not in TYPING:
                    yield alias, f"`typing.{alias.name}` does not exist in scripts", "use a dict, or leave it out"
        case ast.ImportFrom(module=str(module)) if module not in (*MODULES, *_DECLARED_ELSEWHERE, *modules):
            yield node, f"module `{module}` does not exist in scripts", _USABLE


def _names(node: ast.AST, defined: set[str]) -> Iterator[Found]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in NO_BUILTINS and name not in defined:
            yield node, f"`{name}` does not exist in scripts", "find a way without it"


def _calls(node: ast.AST, functions: set[str]) -> Iterator[Found]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="sub" | "subn"), args=[_, replacement, *_]):
            if isinstance(replacement, ast.Lambda) or (
                isinstance(replacement, ast.Name) and replacement.id in functions
            ):
                hint = "go over `re.finditer` and put the text together"
                yield replacement, "`re.sub` takes no function in scripts", hint
