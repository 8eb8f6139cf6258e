"""The library reference, from signatures and docstrings: what is not in the code cannot be on the page."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

WIDTH = 100
"""Characters of a signature; a longer one has one parameter a line."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def section(path: str, *, level: int = 2, name: str = "") -> str:
    """A function or a class of the library, such as `remora.twotrack:Wiring`. `name` replaces the path as heading."""
    module, _, attribute = path.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    title = name or f"{module}.{attribute}"
    anchor = attribute.lower()
    lines = [f"{'#' * level} `{title}` {{ #{anchor} }}", ""]
    if inspect.isclass(found):
        lines += _class(found, anchor, level)
    else:
        lines += _function_lines(_parsed(found), found)
    return "\n".join(lines).rstrip() + "\n"


def sections(*paths: str, level: int = 2) -> str:
    """Several of them."""
    return "\n".join(section(path, level=level) for path in paths)


def _class(cls: type, anchor: str, level: int) -> Iterator[str]:
    trees = [_parsed(each) for each in _with_bases(cls)]
    tree = ast.ClassDef(name=cls.__name__, bases=[], keywords=[], decorator_list=[], body=_joined(trees))
    own = {item.name: item for item in tree.body if isinstance(item, Function)}
    for base in cls.__mro__[1:]:
        if base.__module__.rpartition(".")[0] == cls.__module__.rpartition(".")[0]:  # a part of the same class
            own = {item.name: item for item in _parsed(base).body if isinstance(item, Function)} | own
    if "__init__" in own and _has_public_init(cls):
        yield from _code(_signature(own["__init__"], cls.__name__))
    yield from _prose(inspect.getdoc(cls) or "")
    if "__init__" in own and _has_public_init(cls):
        yield from _prose(ast.get_docstring(own["__init__"]) or "")
    yield from _attributes(tree)
    for name, item in own.items():
        if not name.startswith("_") and not _is_property(item):
            yield f"{'#' * (level + 1)} `{name}` {{ #{anchor}-{name.replace('_', '-')} }}"
            yield ""
            yield from _function_lines(item, inspect.getattr_static(cls, name))


def _with_bases(cls: type) -> list[type]:
    """The class and its bases in the same package: a large class may be divided into several files."""
    package = ".".join(cls.__module__.split(".")[:2])
    return [each for each in cls.__mro__ if f"{each.__module__}.".startswith(f"{package}.")]


def _joined(trees: list[ast.ClassDef]) -> list[ast.stmt]:
    """The bodies of a class and its bases. A method that the class overrides is listed once."""
    seen: set[str] = set()
    body: list[ast.stmt] = []
    for tree in trees:
        names = {item.name for item in tree.body if isinstance(item, Function) and item.name != "_wire"}
        body += [item for item in tree.body if not (isinstance(item, Function) and item.name in seen)]
        seen |= names
    return body


def _attributes(tree: ast.ClassDef) -> Iterator[str]:
    """A table of fields, documented instance attributes, and properties."""
    found = [*_fields(tree), *_instance_attributes(tree), *_properties(tree)]
    documented = {name for name, _, meaning in found if meaning}
    rows = [row for row in found if row[2] or row[0] not in documented]
    if rows:
        yield from ["| attribute | type | meaning |", "|---|---|---|"]
        yield from (f"| `{name}` | {_type_cell(kind)} | {_cell(meaning)} |" for name, kind, meaning in rows)
        yield ""


def _fields(tree: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    for item, beneath in itertools.pairwise([*tree.body, ast.Pass()]):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.target.id[0] != "_":
            yield item.target.id, ast.unparse(item.annotation), _text(beneath)


def _instance_attributes(tree: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """Attributes that a method sets and that have a docstring beneath."""
    for method in tree.body:
        if not isinstance(method, Function):
            continue
        for item, beneath in itertools.pairwise(method.body):
            targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
            target = targets[0]
            if isinstance(target, ast.Attribute) and target.attr[0] != "_" and (meaning := _text(beneath)):
                kind = ast.unparse(item.annotation) if isinstance(item, ast.AnnAssign) else ""
                yield target.attr, kind, meaning


def _properties(tree: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    for item in tree.body:
        if isinstance(item, Function) and item.name[0] != "_" and _is_property(item):
            yield item.name, ast.unparse(item.returns) if item.returns else "", ast.get_docstring(item) or ""


def _function_lines(item: Function, found: Any) -> Iterator[str]:
    yield from _code(_signature(item, item.name, found))
    yield from _prose(ast.get_docstring(item) or "")


def _signature(item: Function, name: str, found: Any = None) -> str:
    """The signature as the source writes it, without `self`; a class is shown as its call."""
    arguments = item.args
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments = ast.arguments(**{**vars(arguments), "args": arguments.args[1:]})
    is_class = item.name == "__init__"
    returns = f" -> {ast.unparse(item.returns)}" if item.returns and not is_class else ""
    # An async generator is not awaited: callers use `async for`, as with a plain function that returns an iterator.
    awaited = isinstance(item, ast.AsyncFunctionDef) and not inspect.isasyncgenfunction(_plain(found))
    before = "" if is_class else "async def " if awaited else "def "
    if any(getattr(each, "id", "") == "classmethod" for each in item.decorator_list):
        before = "@classmethod\n" + before
    parts = list(_parameters(arguments))
    line = f"{before}{name}({', '.join(parts)}){returns}"
    if len(line) <= WIDTH:
        return line
    inner = "".join(f"    {part},\n" for part in parts)
    return f"{before}{name}(\n{inner}){returns}"


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    """Each parameter with its annotation and default, with `/` and `*` where they belong."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    for place, (each, default) in enumerate(zip(positional, [*missing, *arguments.defaults], strict=True), 1):
        yield _parameter(each, default)
        if place == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(each, default)
    if arguments.kwarg:
        yield f"**{_parameter(arguments.kwarg, None)}"


def _parameter(each: ast.arg, default: ast.expr | None) -> str:
    text = ast.unparse(each) + (f" = {ast.unparse(default)}" if default is not None else "")
    return text if '"' in text else text.replace("'", '"')


def _has_public_init(cls: type) -> bool:
    """Whether users construct it: a `Project` and its parts come from `open_project`."""
    return cls.__module__.partition(".")[2].split(".")[0] != "app" and not cls.__module__.startswith("remora.trace")


def _parsed(found: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(_plain(found)))).body[-1]


def _plain(found: Any) -> Callable[..., Any] | type:
    return getattr(found, "__func__", found)


def _is_property(item: Function) -> bool:
    return any(getattr(each, "id", "") in ("property", "cached_property") for each in item.decorator_list)


def _text(statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _code(text: str) -> list[str]:
    return ["```py", text, "```", ""]


def _prose(text: str) -> list[str]:
    return [text, ""] if text else []


def _type_cell(kind: str) -> str:
    return f"`{kind}`".replace("|", "\\|") if kind else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
