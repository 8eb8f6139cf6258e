"""Imports that nothing uses any more once other code is gone."""

from __future__ import annotations

import ast
import re

from remora.discovery._outline import tree_of
from remora.discovery._proofs import LINE, Edit, Sources, apply_edits, count_word
from remora.discovery._rows import shares_line, without_rows

Import = ast.Import | ast.ImportFrom


def removed_with(sources: Sources, path: str, after: str) -> str | None:
    """The text `after` without imports that only the removed code used; None if one of them cannot be removed."""
    before, tree = tree_of(sources.files[path]), tree_of(after.encode())
    if before is None or tree is None:
        return None
    gone = (_used(before) - _used(tree)) & {name for node in _imports(tree) for name in _bound(node)}
    if not gone:
        return after
    if path.endswith("__init__.py") or any(_is_imported(sources, path, name) for name in gone):
        return None
    lines = LINE.findall(after)
    edits = []
    for node in _imports(tree):
        if set(_bound(node)) & gone:
            edit = _without(path, lines, node, gone) if node in tree.body else None
            if edit is None:
                return None
            edits.append(edit)
    text = apply_edits(after, edits)
    return None if tree_of(text.encode()) is None or any(count_word(text, name) for name in gone) else text


def _imports(tree: ast.Module) -> list[Import]:
    """The imports of a module, not those inside functions."""
    found: list[Import] = []
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Import):
            found.append(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt | ast.ExceptHandler)]
    return found


def _bound(node: Import) -> list[str]:
    return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]


def _used(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _is_imported(sources: Sources, path: str, name: str) -> bool:
    """Whether another file may import the name from this one."""
    stem = path.removesuffix(".py").rpartition("/")[2]
    asks = re.compile(rf"from\s+[\w.]*\b{stem}\s+import\b[^#]*?(?:\b{re.escape(name)}\b|\*)|\b{stem}\.{name}\b")
    return any(asks.search(sources.text(file)) for file in sources.files if file != path and file.endswith(".py"))


def _without(path: str, lines: list[str], node: Import, gone: set[str]) -> Edit | None:
    """The edit that takes names out of an import; None if its lines hold something else."""
    first, last = node.lineno, node.end_lineno or node.lineno
    kept = [alias for alias, name in zip(node.names, _bound(node), strict=True) if name not in gone]
    if shares_line(lines, node) or any("#" in line for line in lines[first - 1 : last]):
        return None
    if not kept:
        return without_rows(lines, path, first, last)
    if first == last:
        fewer = (
            ast.Import(names=kept)
            if isinstance(node, ast.Import)
            else ast.ImportFrom(module=node.module, names=kept, level=node.level)
        )
        return Edit(path, first, last, f"{ast.unparse(fewer)}\n")
    rows = [
        row
        for row in range(first, last + 1)
        if any(re.fullmatch(rf"\s*(?:\w+\s+as\s+)?{name}\s*,\s*", lines[row - 1]) for name in gone)
    ]
    return Edit(path, rows[0], rows[0]) if len(rows) == 1 and len(kept) == len(node.names) - 1 else None
