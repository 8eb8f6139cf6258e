"""Scripts that return their result from `main()`, as the specification writes them."""

from __future__ import annotations

import ast


def call_of_main(tree: ast.Module) -> str:
    """The call that makes the result of `main()` the result of a script that ends without an expression."""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        return ""
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name="main") | ast.AsyncFunctionDef(name="main"):
                given = statement.args
                needs = len(given.args) + len(given.posonlyargs) - len(given.defaults)
                if needs <= 0 and len(given.kwonlyargs) == len([each for each in given.kw_defaults if each]):
                    return "await main()" if isinstance(statement, ast.AsyncFunctionDef) else "main()"
    return ""
