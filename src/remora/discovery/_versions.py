"""Branches for versions of Python that the project's own settings no longer allow."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from remora.discovery._proofs import LINE, Edit, Finding
from remora.discovery._rows import without_rows

COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_ABOUT = re.compile(r"(?i)\bpy(?:thon)?[- ]?[23]|\bversions?\b")
NEWEST = (4, 0)
"""What is true of it too is true of every version to come."""


def old_branches(path: str, text: str, tree: ast.Module, oldest: tuple[int, int]) -> Iterator[Finding]:
    """`if` statements on `sys.version_info` that are always, or never, true from the oldest version on."""
    lines = LINE.findall(text)
    for parent in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            found = getattr(parent, field, None)
            block: list[ast.stmt] = found if isinstance(found, list) else []
            for node in block:
                if isinstance(node, ast.If):
                    yield from _branch(path, lines, node, block, oldest)


def _branch(
    path: str, lines: Sequence[str], node: ast.If, block: Sequence[ast.stmt], oldest: tuple[int, int]
) -> Iterator[Finding]:
    always = holds(node.test, oldest)
    if always is None or not lines[node.lineno - 1].lstrip().startswith("if"):
        return
    kept, gone = (node.body, node.orelse) if always else (node.orelse, node.body)
    if _is_guard(lines, node, gone) or any(isinstance(each, ast.If) and _is_elif(lines, each) for each in node.orelse):
        return
    if kept and all(_is_itself(each) for each in kept):
        return  # without the other branch, `text = text` has no meaning; who imports it would have to change too
    text = _dedented(lines, node, kept) if kept else ""
    first = _with_comment(lines, node.lineno)
    if text is None or first is None or (not kept and len(block) == 1):
        return
    said = f"{oldest[0]}.{oldest[1]}"
    what = f"`if {ast.unparse(node.test)}` is {'always' if always else 'never'} true"
    why = f"the project needs Python {said} or newer"
    last = node.end_lineno or 0
    edit = Edit(path, first, last, text) if kept else without_rows(lines, path, first, last)
    yield Finding(what, path, node.lineno, what, why, (edit,))


def _is_itself(node: ast.stmt) -> bool:
    """Whether a statement is such as `text = text`."""
    return isinstance(node, ast.Assign) and all(ast.unparse(one) == ast.unparse(node.value) for one in node.targets)


def _with_comment(lines: Sequence[str], row: int) -> int | None:
    """The first row, with a comment above it about versions; None if that has several lines: a person decides."""
    above = row - 1
    while above and lines[above - 1].lstrip().startswith("#"):
        above -= 1
    if not any(_ABOUT.search(line) for line in lines[above : row - 1]):
        return row
    return row - 1 if above == row - 2 else None


def _is_guard(lines: Sequence[str], node: ast.If, gone: Sequence[ast.stmt]) -> bool:
    """Whether the branch tells users of old versions that theirs is too old, or a comment says why it is there."""
    parts = [part for each in gone for part in ast.walk(each)]
    ends = any(isinstance(part, ast.Raise) for part in parts)
    calls = [ast.unparse(part.func) for part in parts if isinstance(part, ast.Call)]
    return ends or any("exit" in call or "warn" in call for call in calls) or "#" in lines[node.lineno - 1]


def holds(test: ast.expr, oldest: tuple[int, int]) -> bool | None:
    """Whether a test on the version is true for all versions from `oldest` on, false for all; else None."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in COMPARE:
        return None
    left, right = ast.unparse(test.left), test.comparators[0]
    compare = COMPARE[type(test.ops[0])]
    try:
        wanted = ast.literal_eval(right)
    except (ValueError, TypeError, SyntaxError):
        return None
    if left in ("sys.version_info[0]", "sys.version_info.major") and type(wanted) is int:
        answers = {compare(major, wanted) for major in (oldest[0], NEWEST[0])}
        return answers.pop() if len(answers) == 1 else None
    if left != "sys.version_info" or not _is_version(wanted) or isinstance(test.ops[0], ast.Eq | ast.NotEq):
        return None
    answers = {compare((*version, 0), wanted) for version in (oldest, NEWEST)}
    return answers.pop() if len(answers) == 1 else None


def _is_version(wanted: object) -> bool:
    """Whether a tuple is such as `(3,)` or `(3, 8)`: with more parts, patch versions count."""
    return isinstance(wanted, tuple) and 1 <= len(wanted) <= 2 and all(type(part) is int for part in wanted)


def _is_elif(lines: Sequence[str], node: ast.If) -> bool:
    return lines[node.lineno - 1].lstrip().startswith("elif")


def _dedented(lines: Sequence[str], node: ast.If, kept: Sequence[ast.stmt]) -> str | None:
    """The lines of a branch, as far left as its `if`; None if that would change more than the indentation."""
    first, last = kept[0].lineno, kept[-1].end_lineno or 0
    if first == node.lineno or any(isinstance(each, ast.FunctionDef | ast.ClassDef) for each in kept):
        return None
    parts = [part for each in kept for part in ast.walk(each)]
    texts = [part for part in parts if isinstance(part, ast.JoinedStr | ast.Constant)]
    if any(part.lineno != part.end_lineno for part in texts):
        return None
    while lines[first - 2].lstrip().startswith("#"):
        first -= 1
    cut = kept[0].col_offset - node.col_offset
    return "".join(line[cut:] if line.strip() else line for line in lines[first - 1 : last])
