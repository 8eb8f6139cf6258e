"""What tree-sitter sees in one Python file. A syntax error hides only what it touches."""

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

_COMMENT_LINE = re.compile(rb"\n[ \t]*+#[^\r\n]*+")
_LONE_CR = re.compile(rb"\r(?!\n)")


@dataclass(frozen=True)
class Definition:
    """A function or a class: its name, and its bytes from the first decorator to the end of its body."""

    kind: Kind
    name: str
    start: int
    end: int
    qualified: str
    """Its name with those of the definitions around it; twins get `#2`, `#3`."""
    in_class: bool
    """Whether the nearest definition around it is a class."""
    node: Node = field(compare=False, repr=False)
    """The definition without its decorators."""


@dataclass(frozen=True)
class Syntax:
    """One file: its tree, whether it holds code at all, and its definitions, outer before inner."""

    root: Node
    has_code: bool
    definitions: tuple[Definition, ...]


@dataclass(frozen=True)
class _Found:
    kind: Kind
    name: str
    start: int
    end: int
    node: Node


def parse(source: bytes, query: Query | None = None) -> Syntax:
    """What stands in `source`, which is UTF-8 without a byte order mark."""
    root = Parser(language()).parse(as_the_grammar_wants(source)).root_node
    found = sorted(_found(root, source, query or bundled_query()), key=lambda item: (item.start, -item.end))
    return Syntax(
        root=root,
        has_code=any(child.type not in NOT_CODE for child in root.children),
        definitions=tuple(_named(found)),
    )


def first_error(root: Node) -> Node | None:
    """Where the text stops being Python, or None."""
    return next(errors(root), None)


def errors(root: Node) -> Iterator[Node]:
    """Every place that is not Python, in order, outer ones only."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            waiting += reversed(node.children)


def _found(root: Node, source: bytes, query: Query) -> list[_Found]:
    captured: list[tuple[Kind, Node, Node]] = []
    decorated: dict[int, int] = {}
    for _, captures in QueryCursor(query).matches(root):
        if "decorated" in captures:
            decorated[captures["definition"][0].start_byte] = captures["decorated"][0].start_byte
        elif "name" in captures:
            kind: Kind = "function" if "function" in captures else "class"
            captured += [(kind, node, captures["name"][0]) for node in captures.get(kind, ())]
    found = {
        (node.start_byte, node.end_byte): _Found(
            kind=kind,
            name=source[name.start_byte : name.end_byte].decode(),
            start=decorated.get(node.start_byte, node.start_byte),
            end=node.start_byte + len(source[node.start_byte : node.end_byte].rstrip()),
            node=node,
        )
        for kind, node, name in captured
        if name.end_byte > name.start_byte  # tree-sitter invents an empty name where one is missing
    }
    return list(found.values())


def _named(found: Sequence[_Found]) -> Iterator[Definition]:
    around: list[_Found] = []
    seen: Counter[str] = Counter()
    for item in found:
        while around and around[-1].end <= item.start:
            around.pop()
        in_class = bool(around) and around[-1].kind == "class"
        around.append(item)
        qualified = ".".join(outer.name for outer in around)
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


def as_the_grammar_wants(source: bytes) -> bytes:
    """The same bytes with spaces in place of lines that are nothing but a comment, and `\\n` for a lone `\\r`.

    After each comment the grammar looks ahead over all that follow it, so a block of them takes quadratic time: 40 s
    for 8,000 lines. A line with a triple quote stays, as it may end a string, and so does one after a backslash. A
    `\\r` alone ends no line for the grammar.
    """
    if b"\r" in source:
        source = _LONE_CR.sub(b"\n", source)
    return _COMMENT_LINE.sub(_blank, b"\n" + source)[1:] if b"#" in source else source


def _blank(found: re.Match[bytes]) -> bytes:
    line, source, at = found[0], found.string, found.start()
    continued = source[at - 1 : at] == b"\\" or source[max(0, at - 2) : at] == b"\\\r"
    if continued or b'"""' in line or b"'''" in line:
        return line
    return b"\n" + b" " * (len(line) - 1)
