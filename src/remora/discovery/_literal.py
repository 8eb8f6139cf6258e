"""Docstring literals: from text to literal, and from literal to text."""

from __future__ import annotations

import ast
import re
import threading
import warnings

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LINE_END = re.compile(r"\r\n|\r")
_parser_lock = threading.Lock()


def plain_lines(text: str) -> list[str]:
    """The docstring's lines, stripped of surrounding blank lines and trailing blanks.

    Raises `ValueError` if it is empty.
    """
    lines = [line.rstrip() for line in _LINE_END.sub("\n", text).split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise ValueError("The docstring is empty: expected text")
    return [lines[0].lstrip(), *lines[1:]]


def value_of(lines: list[str], indent: str) -> str:
    """The value of the literal that `literal` makes."""
    indented = [lines[0], *(indent + line if line else "" for line in lines[1:])]
    return "\n".join(indented) + (f"\n{indent}" if len(lines) > 1 else "")


def literal(lines: list[str], indent: str, end: str, quote: str = '"""') -> str:
    """A literal, placed after `indent`, with the value `value_of(lines, indent)`."""
    value = value_of(lines, indent)
    if "\\" in value and _can_be_raw(value, quote):
        return f"r{quote}{value}{quote}".replace("\n", end)
    escaped = _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", value.replace("\\", "\\\\"))
    escaped = escaped.replace(quote, "\\" + "\\".join(quote))
    if escaped.endswith(quote[0]):
        escaped = f"{escaped[:-1]}\\{quote[0]}"
    return f"{quote}{escaped}{quote}".replace("\n", end)


def text_of_literal(source: str) -> str | None:
    """The value of a string literal; None if it is not one."""
    with _parser_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = ast.literal_eval(f"({source})")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def python_tree(source: str | bytes) -> ast.Module:
    """Parse a file with Python's own parser. Raises `SyntaxError` or `ValueError`.

    One thread at a time: in CPython 3.11 two threads in the parser can raise `SystemError` in either.
    """
    with _parser_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def python_reads(source: bytes) -> bool:
    """Whether this Python can parse the file. It cannot if the code needs a newer version."""
    with _parser_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(source)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return False
    return True


def _can_be_raw(value: str, quote: str) -> bool:
    return quote not in value and not _CONTROL.search(value) and not value.endswith(("\\", quote[0]))
