"""What tree-sitter sees in one Python file. A syntax error hides only what it touches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from remora.errors import MissingExtra

try:
    import tree_sitter_python
    from tree_sitter import Language, Node, Parser, Query, QueryCursor
except ImportError as error:
    raise MissingExtra("tree-sitter, which finds functions and classes,", extra="agents") from error

QUERY_FILE = "python.scm"
NOT_CODE = frozenset({"comment", "line_continuation"})


_COMMENT_LINE = re.compile(rb"^[ \t]*#[^\r\n'\"]*", re.MULTILINE)


@dataclass(frozen=True)
class Definition:
    """A function or a class: its name, and its bytes from the first decorator to the end of its body."""

    kind: Literal["function", "class"]
    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Syntax:
    """One file: whether it holds code at all, and its definitions, outer before inner."""

    has_code: bool
    definitions: tuple[Definition, ...]


def parse(source: bytes) -> Syntax:
    """What stands in `source`, which is UTF-8 without a byte order mark."""
    language, query = _python()
    root = Parser(language).parse(_without_comment_lines(source)).root_node
    found: list[tuple[Literal["function", "class"], Node, Node]] = []
    decorated: dict[int, int] = {}
    for _, captures in QueryCursor(query).matches(root):
        if "decorated" in captures:
            decorated[captures["definition"][0].start_byte] = captures["decorated"][0].start_byte
        elif "function" in captures:
            found.append(("function", captures["function"][0], captures["name"][0]))
        else:
            found.append(("class", captures["class"][0], captures["name"][0]))
    definitions = [
        Definition(
            kind=kind,
            name=source[name.start_byte : name.end_byte].decode(),
            start=decorated.get(node.start_byte, node.start_byte),
            end=node.start_byte + len(source[node.start_byte : node.end_byte].rstrip()),
        )
        for kind, node, name in found
        if name.end_byte > name.start_byte  # tree-sitter invents an empty name where one is missing
    ]
    return Syntax(
        has_code=any(child.type not in NOT_CODE for child in root.children),
        definitions=tuple(sorted(definitions, key=lambda item: (item.start, -item.end))),
    )


def _without_comment_lines(source: bytes) -> bytes:
    """The same bytes with spaces in place of lines that are nothing but a comment.

    After each comment the grammar looks ahead over all that follow it, so a block of them takes quadratic time: 40 s
    for 8,000 lines. A line with a quote stays, as it may end a string.
    """
    return _COMMENT_LINE.sub(lambda match: b" " * len(match[0]), source)


@cache
def _python() -> tuple[Language, Query]:
    language = Language(tree_sitter_python.language())
    return language, Query(language, files(__package__).joinpath(QUERY_FILE).read_text("utf-8"))
