"""Types written into the signature of a function, at their places in the text."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence

from remora.discovery._behaviour import Function
from remora.discovery._proofs import LINE, Edit

SHORTEST = 79
"""Columns that a line may always have; more if the file has longer lines."""


def insert_types(path: str, text: str, function: Function, types: Sequence[tuple[str, str]]) -> Edit | None:
    """The edit that adds types to parameters, and to `return`; None if a line would become too long."""
    lines = LINE.findall(text)
    first = function.lineno
    places: list[tuple[int, int, int, str]] = []
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    end = _header_end(lines, first)
    if end is None:
        return None
    for name, kind in types:
        if name == "return":
            places.append((end[0], end[1], end[1], f" -> {kind}"))
            continue
        one = next(each for each in given if each.arg == name)
        line = lines[one.lineno - 1]
        start = len(line.encode()[: one.end_col_offset].decode())
        rest = line[start:]
        gap = len(rest) - len(rest.lstrip(" ="))
        places.append((one.lineno, start, start + (gap if "=" in rest[:gap] else 0), f": {kind}"))
    new = {row: lines[row - 1] for row, _, _, _ in places}
    for row, start, stop, said in sorted(places, reverse=True):
        equals = " = " if stop > start else ""
        new[row] = new[row][:start] + said + equals + new[row][stop:]
    limit = max(SHORTEST, *(len(line.rstrip()) for line in lines))
    if any(len(line.rstrip()) > limit for line in new.values()):
        return None
    rows = range(first, end[0] + 1)
    return Edit(path, first, end[0], "".join(new.get(row, lines[row - 1]) for row in rows))


def _header_end(lines: Sequence[str], first: int) -> tuple[int, int] | None:
    """Line and column of the colon that ends the header of the function in line `first`."""
    depth = 0
    reader = io.StringIO("".join(lines[first - 1 :])).readline
    try:
        for token in tokenize.generate_tokens(reader):
            depth += (token.string in "([{" and token.type == tokenize.OP) - (
                token.string in ")]}" and token.type == tokenize.OP
            )
            if token.type == tokenize.OP and token.string == ":" and depth == 0:
                return first + token.start[0] - 1, token.start[1]
    except (tokenize.TokenError, SyntaxError):
        return None
    return None
