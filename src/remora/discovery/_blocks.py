"""Statements that cannot run, because an exit is before them in their block, and functions that are written twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from remora.discovery._behaviour import SCOPES, Function, own_nodes
from remora.discovery._docstrings import is_public_file
from remora.discovery._proofs import LINE, Edit, Finding
from remora.discovery._rows import rows_of, shares_line, with_next, without_rows

EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
WORDS = {ast.Return: "return", ast.Raise: "raise", ast.Continue: "continue", ast.Break: "break"}
BINDS = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, *SCOPES)
_SKIPS = re.compile(r"(?i)skip|todo|xfail|NotImplemented")
"""Errors by which a test or a function is switched off for now: what follows is to run again."""
_MEANT = re.compile(r"#|pragma|unreachable|type:|pylint|mypy", re.IGNORECASE)


def dead_statements(path: str, text: str, tree: ast.Module) -> Iterator[Finding]:
    """Blocks of statements after `return`, `raise`, `continue` or `break`."""
    lines = LINE.findall(text)
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        for body in _blocks(function):
            place = next((index for index, node in enumerate(body) if isinstance(node, EXITS)), len(body))
            dead = body[place + 1 :]
            if (
                not dead
                or all(isinstance(node, ast.Pass) for node in dead)
                or shares_line(lines, body[place])
                or _is_meant(lines, body[place], dead)
            ):
                continue
            if _matters(function, dead) or (isinstance(body[place], ast.Raise) and not is_public_file(path)):
                continue  # a test may say what is not to be reached
            first, last = (body[place].end_lineno or 0) + 1, dead[-1].end_lineno or 0
            word = WORDS[type(body[place])]
            what = f"{last - dead[0].lineno + 1} lines of `{function.name}` cannot run"
            why = f"`{word}` in line {body[place].lineno} ends their block"
            key = f"after {word} {function.name} {ast.unparse(dead[0])[:60]}"
            yield Finding(key, path, dead[0].lineno, what, why, (Edit(path, first, last),))


def repeated_functions(path: str, text: str, tree: ast.Module) -> Iterator[Finding]:
    """Functions that are written twice in the same words, in one module or class: the second replaces the first."""
    lines = LINE.findall(text)
    for body in (tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))):
        known: dict[str, tuple[int, str]] = {}
        for node, follows in with_next(body):
            if not isinstance(node, Function) or node.decorator_list:
                continue
            first, last = rows_of(lines, node, follows)
            same = known.get(node.name, (0, ""))
            known[node.name] = (node.lineno, "".join(lines[first - 1 : last]))
            if not same[0] or same[1] != known[node.name][1] or _is_bound(node.name, body):
                continue
            what = f"`{node.name}` is written twice"
            why = f"line {same[0]} has the same function"
            edit = without_rows(lines, path, first, last)
            yield Finding(f"twice {node.name} {same[0]}", path, node.lineno, what, why, (edit,))


def _is_bound(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether a block itself uses a name, or binds it by anything but functions."""
    parts = [part for node in body if not isinstance(node, SCOPES) for part in ast.walk(node)]
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


def _blocks(function: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for node in (function, *own_nodes(function)):
        if isinstance(node, SCOPES) and node is not function:
            continue
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _is_meant(lines: Sequence[str], end: ast.stmt, dead: Sequence[ast.stmt]) -> bool:
    """Whether a comment says why the statements are there, or they only tell a reader that nothing follows."""
    shown = lines[(end.end_lineno or 1) - 1 : dead[-1].end_lineno]
    if any(_MEANT.search(line) for line in shown) or (isinstance(end, ast.Raise) and _SKIPS.search(ast.unparse(end))):
        return True
    return shares_line(lines, dead[-1]) or isinstance(dead[0], ast.Assert)


def _matters(function: Function, dead: Sequence[ast.stmt]) -> bool:
    """Whether dead statements still have an effect: `yield` makes a generator, a binding makes a name local."""
    inside = [part for node in dead for part in (node, *own_nodes(node))]
    if any(isinstance(part, ast.Yield | ast.YieldFrom | ast.Await) for part in inside):
        return True
    bound = {part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    if any(isinstance(part, BINDS) for part in inside):
        return True
    dead_parts = {id(part) for part in inside}
    others = (part for part in ast.walk(function) if id(part) not in dead_parts)
    return bool(bound & {part.id for part in others if isinstance(part, ast.Name)})
