"""The blocks around a line of code, by their indentation."""

import re

NAMED = r"^\s*(?:async\s+def|def|class)\s+(\w+)"
"""The line that begins a function or class."""


def indent(lines):
    """The common indentation of all lines that are not blank."""
    starts = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    common = starts[0] if starts else ""
    for start in starts:
        while not start.startswith(common):
            common = common[:-1]
    return common


def function_rows(whole, row):
    """The first and last row of the function around a line; zeros outside of functions."""
    rows = [number for number in enclosing_rows(whole, row) if re.match(NAMED, whole[number - 1])]
    if not rows or re.match(r"\s*class\b", whole[rows[0] - 1]):
        return 0, 0
    depth, last = len(indent([whole[rows[0] - 1]])), row
    while last < len(whole) and (not has_code(whole[last]) or len(indent([whole[last]])) > depth):
        last += 1
    return rows[0], last


def enclosing_headers(whole, row):
    """The block headers around a line, up to its function or class."""
    return [whole[number - 1].strip() for number in enclosing_rows(whole, row)]


def enclosing_rows(whole, row):
    """The rows of the block headers around a line, by indentation, up to its function or class."""
    found, depth = [], len(indent([whole[row - 1]]))
    for number in range(row - 1, 0, -1):
        line = whole[number - 1]
        if has_code(line) and len(indent([line])) < depth:
            found.append(number)
            # A closing bracket ends a header that began at the same depth or less.
            depth = len(indent([line])) + (1 if line.strip().startswith(")") else 0)
            if re.match(NAMED, line):
                break
    return found


def has_code(line):
    """Whether a line is neither blank nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")
