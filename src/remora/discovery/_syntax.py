"""Parses one Python file with tree-sitter. A syntax error hides only what it touches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tree_sitter import Node, Parser, Query, QueryCursor

from remora.discovery._queries import bundled_query, language

NOT_CODE = frozenset({"comment", "line_continuation"})
Kind = Literal["function", "class"]

_OPENING = frozenset("([{")
MAX_OPEN = 5_000
"""Open brackets in one syntax error. Searching the tree takes time quadratic in them: minutes for a megabyte."""

_COMMENT_LINE = re.compile(rb"\n[ \t]*+#[^\r\n]*+")
_LONE_CR = re.compile(rb"\r(?!\n)")


@dataclass(frozen=True)
class Definition:
    """A function or class: its name, and its bytes from the first decorator to the end of its body."""

    kind: Kind
    name: str
    start: int
    end: int
    qualified: str
    """Its name with those of the enclosing definitions. Duplicates get `#2`, `#3`."""
    in_class: bool
    """Whether the nearest enclosing definition is a class."""
    node: Node = field(compare=False, repr=False)
    """The definition without its decorators."""


@dataclass(frozen=True)
class Syntax:
    """One file: its tree, whether it contains code, and its definitions, outer before inner."""

    root: Node
    has_code: bool
    definitions: tuple[Definition, ...]


@dataclass(frozen=True)
class _RawDefinition:
    kind: Kind
    name: str
    start: int
    end: int
    node: Node


def parse(source: bytes, query: Query | None = None) -> Syntax:
    """Parse `source`, which is UTF-8 without a byte order mark."""
    root = Parser(language()).parse(blank_comments(source)).root_node
    captured = _captured_definitions(root, source, query or bundled_query()) if is_searchable(root) else []
    definitions = sorted(captured, key=lambda item: (item.start, -item.end))
    return Syntax(
        root=root,
        has_code=any(child.type not in NOT_CODE for child in root.children),
        definitions=tuple(_with_qualified_names(definitions)),
    )


def first_error(root: Node) -> Node | None:
    """The first syntax error, or None."""
    return next(errors(root), None)


def errors(root: Node) -> Iterator[Node]:
    """Every syntax error, in order, without nested ones."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            stack += reversed(node.children)


def is_searchable(root: Node) -> bool:
    """Whether queries end in time. False only for a file that is mostly brackets without an end."""
    return all(sum(child.type in _OPENING for child in error.children) <= MAX_OPEN for error in errors(root))


def _captured_definitions(root: Node, source: bytes, query: Query) -> list[_RawDefinition]:
    captured: list[tuple[Kind, Node, Node]] = []
    decorated: dict[int, int] = {}
    for _, captures in QueryCursor(query).matches(root):
        if "decorated" in captures:
            decorated[captures["definition"][0].start_byte] = captures["decorated"][0].start_byte
        elif "name" in captures:
            kind: Kind = "function" if "function" in captures else "class"
            captured += [(kind, node, captures["name"][0]) for node in captures.get(kind, ())]
    definitions = {
        (node.start_byte, node.end_byte): _RawDefinition(
            kind=kind,
            name=source[name.start_byte : name.end_byte].decode(),
            start=decorated.get(node.start_byte, node.start_byte),
            end=node.start_byte + len(source[node.start_byte : node.end_byte].rstrip()),
            node=node,
        )
        for kind, node, name in captured
        if name.end_byte > name.start_byte  # tree-sitter inserts an empty name for a missing one
    }
    return list(definitions.values())


def _with_qualified_names(definitions: Sequence[_RawDefinition]) -> Iterator[Definition]:
    enclosing: list[_RawDefinition] = []
    seen: Counter[str] = Counter()
    for item in definitions:
        while enclosing and enclosing[-1].end <= item.start:
            enclosing.pop()
        in_class = bool(enclosing) and enclosing[-1].kind == "class"
        enclosing.append(item)
        qualified = ".".join(outer.name for outer in enclosing)
        seen[qualified] += 1
        yield Definition(
            kind=item.kind,
            name=item.name,
            start=item.start,
            end=item.end,
            qualified=qualified if seen[qualified] == 1 else f"{qualified}#{seen[qualified]}",
            in_class=in_class,
            node=item.node,
        )


def blank_comments(source: bytes) -> bytes:
    """Blank comment lines with spaces, and replace a lone `\\r` by `\\n`. Byte offsets do not change.

    After each comment the grammar looks ahead over all that follow, so a block of them takes quadratic time: 40 s for
    8,000 lines. A line with a triple quote is kept, as it may end a string, and so is one after a backslash. The
    grammar does not treat a lone `\\r` as a line end.
    """
    if b"\r" in source:
        source = _LONE_CR.sub(b"\n", source)
    return _COMMENT_LINE.sub(_blank, b"\n" + source)[1:] if b"#" in source else source


def _blank(match: re.Match[bytes]) -> bytes:
    line, source, at = match[0], match.string, match.start()
    continued = source[at - 1 : at] == b"\\" or source[max(0, at - 2) : at] == b"\\\r"
    if continued or b'"""' in line or b"'''" in line:
        return line
    return b"\n" + b" " * (len(line) - 1)
