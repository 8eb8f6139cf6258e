"""Conditions of Python code as plain English, with code in backticks.

A wording is given only where it is true whatever the values are: `not items` becomes "`items` is falsy", because nobody
knows from the syntax whether it is a list.
"""

from __future__ import annotations

import ast

MAX_CODE = 48
"""Most characters of code inside a wording."""
MAX_TERMS = 2
"""Most parts of a condition joined by `and` or `or`."""
COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("is less than", "is at least"),
    ast.LtE: ("is at most", "is greater than"),
    ast.Gt: ("is greater than", "is at most"),
    ast.GtE: ("is at least", "is less than"),
    ast.Eq: ("is", "is not"),
    ast.NotEq: ("is not", "is"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("is in", "is not in"),
    ast.NotIn: ("is not in", "is in"),
}
"""Each comparison in words: if it holds, and if it does not."""
ZERO = {"is less than": "is negative", "is greater than": "is positive", "is at least": "is not negative"}
EMPTY = {"is": "is empty", "is not": "is not empty", "is greater than": "is not empty", "is less than": ""}
TESTS = {"startswith": "starts with", "endswith": "ends with"}
NOT_TESTS = {"startswith": "does not start with", "endswith": "does not end with"}


def quote(node: ast.expr) -> str:
    """The code of an expression in backticks; empty if it is long or would break a docstring."""
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool | int | float)):
        return str(node.value)
    text = _double_quoted(ast.unparse(node))
    return f"`{text}`" if len(text) <= MAX_CODE and not set("`\\\n") & set(text) else ""


def in_words(test: ast.expr, *, holds: bool = True, flags: frozenset[str] = frozenset()) -> str:
    """A condition in words; empty if there is no good wording. `flags` are names that are known to be bool."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return in_words(test.operand, holds=not holds, flags=flags)
    if isinstance(test, ast.BoolOp):
        return _joined(test, holds, flags)
    if isinstance(test, ast.Compare):
        return _compared(test, holds)
    if isinstance(test, ast.Call):
        return _called(test, holds)
    if isinstance(test, ast.Name | ast.Attribute):
        named = quote(test)
        last = named.strip("`").rpartition(".")[2]
        is_flag = named.strip("`") in flags or last.endswith("ed") or last.startswith(("is_", "has_"))
        words = ("is true", "is false") if is_flag else ("is truthy", "is falsy")
        return f"{named} {words[0] if holds else words[1]}" if named else ""
    return ""


def _joined(test: ast.BoolOp, holds: bool, flags: frozenset[str]) -> str:
    parts = [in_words(part, holds=holds, flags=flags) for part in test.values]
    if len(parts) > MAX_TERMS or not all(parts) or any(isinstance(part, ast.BoolOp) for part in test.values):
        return ""
    word = "and" if isinstance(test.op, ast.And) == holds else "or"
    first, second = parts
    subject = first.split(" is ")[0]
    if word == "or" and second.startswith(f"{subject} is ") and " is " in first:
        second = second.removeprefix(f"{subject} is ")
    return f"{first} {word} {second}"


def _compared(test: ast.Compare, holds: bool) -> str:
    if len(test.ops) == 2 and isinstance(test.ops[0], ast.Lt | ast.LtE) and isinstance(test.ops[1], ast.Lt | ast.LtE):
        low, middle, high = (quote(part) for part in (test.left, *test.comparators))
        inside = "is between" if holds else "is not between"
        closed = all(isinstance(op, ast.LtE) for op in test.ops)
        return f"{middle} {inside} {low} and {high}" if low and middle and high and closed else ""
    if len(test.ops) != 1:
        return ""
    words = COMPARED[type(test.ops[0])][0 if holds else 1]
    left, right = test.left, test.comparators[0]
    zero = isinstance(right, ast.Constant) and type(right.value) is int and right.value == 0
    if zero and isinstance(left, ast.Call) and ast.unparse(left.func) == "len" and len(left.args) == 1:
        inner = quote(left.args[0])
        return f"{inner} {EMPTY[words]}" if inner and EMPTY.get(words) else ""
    subject, other = quote(left), quote(right)
    if zero and words in ZERO:
        return f"{subject} {ZERO[words]}" if subject else ""
    if isinstance(right, ast.Tuple | ast.List | ast.Set) and words in ("is in", "is not in"):
        return _one_of(subject, right.elts, words == "is in")
    return f"{subject} {words} {other}" if subject and other else ""


def _one_of(subject: str, values: list[ast.expr], is_one: bool) -> str:
    shown = [quote(value) for value in values]
    if not subject or not 1 < len(shown) <= 5 or not all(shown):
        return ""
    whole = f"{', '.join(shown[:-1])} or {shown[-1]}"
    return f"{subject} is {whole}" if is_one else f"{subject} is not {whole}"


def _called(test: ast.Call, holds: bool) -> str:
    name = ast.unparse(test.func)
    given = [quote(part) for part in test.args]
    if test.keywords or not all(given):
        return ""
    if name == "isinstance" and len(given) == 2:
        kinds = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
        shown = [quote(kind) for kind in kinds]
        if not all(shown) or len(shown) > 4:
            return ""
        article = "an" if shown[0].strip("`")[:1].lower() in "aeiou" else "a"
        whole = f"{', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else shown[0]
        return f"{given[0]} is {'' if holds else 'not '}{article} {whole}"
    if name == "callable" and len(given) == 1:
        return f"{given[0]} is {'' if holds else 'not '}callable"
    if name == "hasattr" and len(given) == 2 and isinstance(test.args[1], ast.Constant):
        named = str(test.args[1].value)
        return f"{given[0]} has {'an' if holds else 'no'} attribute `{named}`"
    if isinstance(test.func, ast.Attribute) and test.func.attr in TESTS and len(given) == 1:
        words = (TESTS if holds else NOT_TESTS)[test.func.attr]
        subject = quote(test.func.value)
        return f"{subject} {words} {given[0]}" if subject and isinstance(test.args[0], ast.Constant) else ""
    return ""


def _double_quoted(text: str) -> str:
    """A string literal of `ast.unparse` in double quotes, as most projects write them."""
    inner = text[1:-1]
    is_one = text[:1] == "'" == text[-1:] and len(text) > 1 and not set("'\"\\") & set(inner)
    return f'"{inner}"' if is_one else text
