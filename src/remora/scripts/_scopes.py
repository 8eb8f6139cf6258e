"""Names in Python code: which ones a file binds at its top level, and which it reads without binding them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Scopes = tuple[frozenset[str], ...]

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*_DEFINITIONS, *_COMPREHENSIONS, ast.Lambda)
_NOTHING: tuple[frozenset[str], list[ast.AST]] = (frozenset(), [])


def bound_names(nodes: Iterable[ast.AST]) -> dict[str, list[ast.AST]]:
    """The names that these nodes bind in their own scope, each with the nodes that bind it."""
    found: dict[str, list[ast.AST]] = {}
    todo = list(nodes)[::-1]
    while todo:
        node = todo.pop()
        for name in _names(node):
            found.setdefault(name, []).append(node)
        if isinstance(node, _COMPREHENSIONS):
            # Only `:=` binds outside of a comprehension.
            todo += [inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)][::-1]
        elif not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            todo += list(ast.iter_child_nodes(node))[::-1]
    return found


def top_level_names(tree: ast.Module, nodes: Iterable[ast.AST]) -> dict[str, list[ast.AST]]:
    """The names that a module has once it has run, each with the nodes that bind it. `nodes`: all of its nodes."""
    found = bound_names(tree.body)
    for node in nodes:
        for name in node.names if isinstance(node, ast.Global) else ():
            found.setdefault(name, []).append(node)
    return found


def free_names(tree: ast.Module, top_level: Iterable[str], skip: Iterable[ast.stmt] = ()) -> Iterator[ast.Name]:
    """Names that the code reads and never binds, builtins among them. Annotations do not count: nothing reads them."""
    skipped = {id(statement) for statement in skip}
    outer: Scopes = (frozenset(top_level),)
    todo: list[tuple[ast.AST, Scopes]] = [(node, outer) for node in tree.body if id(node) not in skipped]
    while todo:
        node, scopes = todo.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and not any(node.id in scope for scope in scopes):
                yield node
            continue
        names, inside = _opened(node) if isinstance(node, _SCOPES) else _NOTHING
        todo += [(part, (*scopes, names) if names else scopes) for part in inside]
        todo += [(part, scopes) for part in _outside(node, inside)]


def _names(node: ast.AST) -> list[str]:
    """The names that this node binds by itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.partition(".")[0] for alias in names]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return []


def _opened(node: ast.AST) -> tuple[frozenset[str], list[ast.AST]]:
    """The names of the scope that a node opens, and the parts inside of it."""
    match node:
        case ast.FunctionDef(args=args, body=body) | ast.AsyncFunctionDef(args=args, body=body):
            return frozenset({*_parameters(args), *bound_names(body)}), list(body)
        case ast.Lambda(args=args, body=result):
            return frozenset({*_parameters(args), *bound_names([result])}), [result]
        case ast.ClassDef(body=body):
            return frozenset(bound_names(body)), list(body)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return frozenset(bound_names(part.target for part in node.generators)), list(ast.iter_child_nodes(node))
    return _NOTHING


def _outside(node: ast.AST, body: list[ast.AST]) -> list[ast.AST]:
    """The parts of a node that see only what is around it, without annotations."""
    if isinstance(node, ast.AnnAssign):
        return [part for part in (node.target, node.value) if part is not None]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [*node.decorator_list, *_defaults(node.args)]
    if isinstance(node, ast.Lambda):
        return [*_defaults(node.args)]
    if not body:
        return list(ast.iter_child_nodes(node))
    inside = {id(part) for part in body}
    return [part for part in ast.iter_child_nodes(node) if id(part) not in inside]


def _parameters(args: ast.arguments) -> set[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg for arg in every if arg is not None}


def _defaults(args: ast.arguments) -> list[ast.expr]:
    return [default for default in (*args.defaults, *args.kw_defaults) if default is not None]
