"""Which lines of a file belong to a statement: with its decorators, its comments and the text that documents it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from remora.discovery._proofs import Edit

_RULER = re.compile(r"\s*#\s*(?:[-=*#~_ ]{3,}.*|.*[-=*#~]{3,}\s*|)$")
_PRAGMA = re.compile(r"\s*#\s*(?:fmt|isort|ruff|pylint|flake8|mypy|region|endregion)\b")


def with_next(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    """The statements of a block, each with the one that follows it."""
    return zip(body, [*body[1:], None], strict=False)


def rows_of(lines: Sequence[str], node: ast.stmt, follows: ast.stmt | None) -> tuple[int, int]:
    """The first and last line of a statement: from the comment right above it to the text that documents it.

    `follows` is the next statement of its block.
    """
    marks = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(mark.lineno for mark in marks)])
    last = node.end_lineno or node.lineno
    indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
    if isinstance(node, ast.Assign | ast.AnnAssign) and is_text(follows) and follows and follows.lineno == last + 1:
        last = follows.end_lineno or last
    above = first
    while above > 1 and lines[above - 2].startswith(f"{indent}#"):
        above -= 1
    comment = lines[above - 1 : first - 1]
    is_heading = any(_RULER.match(line.rstrip()) or _PRAGMA.match(line) for line in comment)
    # A comment above a group of names may be about all of them.
    is_shared = isinstance(node, ast.Assign | ast.AnnAssign) and follows is not None and follows.lineno == last + 1
    return (first if is_heading or is_shared else above), last


def is_text(node: ast.stmt | None) -> bool:
    """Whether a statement is a string that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def shares_line(lines: Sequence[str], node: ast.stmt) -> bool:
    """Whether another statement is on the first or last line of this one."""
    head = lines[node.lineno - 1].encode()[: node.col_offset].strip()
    tail = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :].strip()
    return bool(head) or (bool(tail) and not tail.startswith(b"#"))


def without_rows(lines: Sequence[str], path: str, first: int, last: int) -> Edit:
    """The removal of lines with the blank lines around them that are then too many."""
    above, below = first - 1, last
    while above > 0 and not lines[above - 1].strip():
        above -= 1
    while below < len(lines) and not lines[below].strip():
        below += 1
    before, after = first - 1 - above, below - last
    if below == len(lines):
        return Edit(path, above + 1, below)
    if not before:
        is_start = above == 0 or lines[above - 1].rstrip().endswith(":")
        return Edit(path, first, below if is_start else last)
    return Edit(path, first, below) if before >= after else Edit(path, above + 1, last)
