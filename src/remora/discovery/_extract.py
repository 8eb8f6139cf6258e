"""Extracts what the index stores about one file, with one parse and one query.

Each capture belongs to the innermost definition that contains it, or to the file. Rules of a language are in its
folder; this module has only what all languages share.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from tree_sitter import Node, Parser, QueryCursor

from remora.discovery._languages import Mapped
from remora.discovery._literal import text_of_literal
from remora.discovery._syntax import blank_comments, is_searchable

MAX_LINE = 200
"""Most characters of a signature, a docstring's first line or a decorator."""
MAX_NAMES = 200
"""Most calls, imports and so on of one node."""
FILE = -1
_BLANK = re.compile(r"\s+")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_OPEN = re.compile(r"([\[({]) ")
_CLOSE = re.compile(r",? ([\])}])")
_OPENING = re.compile(r"""([rRuU]?)("{3}|'{3}|"|')""")

Captured = Mapping[str, Sequence[Node]]


class NodeFacts(NamedTuple):
    """Facts about one node from its own file."""

    qualified: str
    """Empty for the file itself."""
    kind: str
    line: int
    """The first line, decorators included."""
    source_hash: str
    signature: str
    docstring: str | None
    """Its first line; None if there is none."""
    decorators: tuple[str, ...]
    calls: tuple[str, ...]
    """As written, in order, without duplicates. A name whose class is known is replaced by its class."""
    raises: tuple[str, ...]
    imports: tuple[str, ...]
    """Its own imports."""
    line_count: int
    complexity: int
    hint_coverage: float
    """Share of parameters and result that have a type hint, from 0 to 1."""


class FileFacts(NamedTuple):
    """Facts about one file: its nodes, the file itself first, and its imports by local name."""

    path: str
    file_hash: str
    nodes: tuple[NodeFacts, ...]
    imports: dict[str, str]


class _RawDefinition(NamedTuple):
    start: int
    end: int
    outer: int
    """Where it begins, decorators included."""
    kind: str
    node: Node


def extract(path: str, source: bytes, language: Mapped) -> FileFacts:
    """Extract the facts of `source`. A syntax error hides only what it touches."""
    digest = sha256(source).hexdigest()
    source = source.removeprefix(b"\xef\xbb\xbf")
    shown = blank_comments(source)
    root = Parser(language.grammar).parse(shown).root_node
    captured = QueryCursor(language.query).captures(root) if is_searchable(root) else {}
    return _File(path, source, shown, captured, language).facts(digest)


class _File:
    """One file being extracted."""

    def __init__(self, path: str, source: bytes, shown: bytes, captured: Captured, language: Mapped) -> None:
        self._path, self._source, self._captured, self._language = path, source, captured, language
        self._shown = shown
        """The source as parsed: comment lines blanked, with all byte offsets unchanged."""
        self._defs = self._definitions()
        self._points, self._owners = _segments(self._defs)

    def facts(self, digest: str) -> FileFacts:
        typed = self._class_annotations()
        calls, raises = self._names("call"), self._names("raise")
        imports, by_owner = self._imports()
        branches, plain = self._count("branch"), self._count("parameter.plain")
        hinted, docs, decorators = self._count("parameter.typed"), self._docs(), self._decorators()
        nodes = [self._file_node(digest, docs.get(FILE), calls.get(FILE, ()), raises.get(FILE, ()), by_owner)]
        line, at, everywhere = 1, 0, typed.get(FILE, {})
        for index, (item, (qualified, in_class)) in enumerate(zip(self._defs, self._qualified_names(), strict=True)):
            line, at = line + self._source.count(b"\n", at, item.outer), item.outer
            kinds = everywhere | typed[index] if index in typed else everywhere
            parameters = plain[index] + hinted[index]
            returns = item.kind == "function" and self._field(item.node, "returns") is not None
            own = int(in_class and item.kind == "function" and plain[index] > 0)
            nodes.append(
                NodeFacts(
                    qualified,
                    _kind(item.kind, in_class),
                    line,
                    sha256(self._source[item.outer : item.end]).hexdigest(),
                    self._signature(item),
                    docs.get(index),
                    tuple(decorators.get(index, ())),
                    _as_classes(calls.get(index, ()), kinds),
                    tuple(raises.get(index, ()))[:MAX_NAMES],
                    tuple(by_owner.get(index, ()))[:MAX_NAMES],
                    self._source.count(b"\n", item.outer, item.end) + 1,
                    branches[index] + 1,
                    _coverage(hinted[index] + returns, parameters - own + 1) if item.kind == "function" else 1.0,
                )
            )
        return FileFacts(self._path, digest, tuple(nodes), imports)

    def _file_node(
        self,
        digest: str,
        doc: str | None,
        calls: Iterable[str],
        raises: Iterable[str],
        imports: Mapping[int, Sequence[str]],
    ) -> NodeFacts:
        everything = tuple(dict.fromkeys(name for names in imports.values() for name in names))[:MAX_NAMES]
        size = len(self._source)
        lines = self._source.count(b"\n") + (not self._source.endswith(b"\n") and size > 0)
        return NodeFacts(
            "",
            "file",
            1,
            digest,
            "",
            doc,
            (),
            tuple(calls)[:MAX_NAMES],
            tuple(raises)[:MAX_NAMES],
            everything,
            lines,
            self._count("branch")[FILE] + 1,
            1.0,
        )

    def _definitions(self) -> list[_RawDefinition]:
        outer = {
            item.child_by_field_name("definition").start_byte: item.start_byte  # type: ignore[union-attr]
            for item in self._captured.get("decorated", ())
        }
        found = [
            _RawDefinition(node.start_byte, node.end_byte, outer.get(node.start_byte, node.start_byte), kind, node)
            for kind in ("function", "class")
            for node in self._captured.get(kind, ())
        ]
        return sorted(
            (item._replace(end=_without_blanks(self._source, item)) for item in found if self._name(item.node)),
            key=lambda item: (item.start, -item.end),
        )

    def _qualified_names(self) -> Iterable[tuple[str, bool]]:
        enclosing: list[tuple[_RawDefinition, str]] = []
        seen: Counter[str] = Counter()
        for item in self._defs:
            while enclosing and enclosing[-1][0].end <= item.start:
                enclosing.pop()
            in_class = bool(enclosing) and enclosing[-1][0].kind == "class"
            name = self._name(item.node)
            qualified = f"{enclosing[-1][1]}.{name}" if enclosing else name
            enclosing.append((item, qualified))
            seen[qualified] += 1
            yield (qualified if seen[qualified] == 1 else f"{qualified}#{seen[qualified]}"), in_class

    def _owner(self, at: int) -> int:
        return self._owners[bisect_right(self._points, at) - 1]

    def _field(self, node: Node, name: str) -> Node | None:
        return node.child_by_field_name(self._language.fields[name])

    def _name(self, node: Node) -> str:
        found = self._field(node, "name")
        return self._text(found) if found else ""

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _count(self, capture: str) -> Counter[int]:
        return Counter(self._owner(node.start_byte) for node in self._captured.get(capture, ()))

    def _names(self, capture: str) -> dict[int, dict[str, None]]:
        """Dotted names by owner, in order, without duplicates."""
        found: dict[int, dict[str, None]] = {}
        for node in sorted(self._captured.get(capture, ()), key=_start):
            text = self._text(node)
            if _DOTTED.fullmatch(text):
                found.setdefault(self._owner(node.start_byte), {})[text] = None
        return found

    def _docs(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for node in self._captured.get("doc", ()):
            line = _first_line(self._text(node))
            if line is not None:
                found[self._owner(node.start_byte)] = line
        return found

    def _decorators(self) -> dict[int, list[str]]:
        """Decorators by definition. A decorator comes before its definition."""
        found: dict[int, list[str]] = {}
        starts = [item.start for item in self._defs]
        for node in sorted(self._captured.get("decorator", ()), key=_start):
            index = bisect_right(starts, node.end_byte)
            if index < len(self._defs) and self._defs[index].outer <= node.start_byte:
                found.setdefault(index, []).append(_flat(self._text(node)))
        return found

    def _signature(self, item: _RawDefinition) -> str:
        body = self._field(item.node, "body")
        end = body.start_byte if body else item.end
        head = self._shown[item.start : end]
        for comment in _comments(item.node, body) if b"#" in head or b"/" in head else ():
            start, stop = comment.start_byte - item.start, comment.end_byte - item.start
            head = head[:start] + b" " * (stop - start) + head[stop:]
        return _flat(head.decode("utf-8", "replace")).removesuffix("{").rstrip().removesuffix(":").rstrip()

    def _class_annotations(self) -> dict[int, dict[str, str]]:
        """Names with a class annotation, by definition."""
        found: dict[int, dict[str, str]] = {}
        name = ""
        for node, is_name in self._in_order("typed.name", "typed.type"):
            if is_name:
                name = self._text(node)
                continue
            kind = self._text(node)
            if kind.rpartition(".")[2][:1].isupper() and _DOTTED.fullmatch(kind):
                found.setdefault(self._owner(node.start_byte), {})[name] = kind
        return found

    def _in_order(self, first: str, second: str) -> list[tuple[Node, bool]]:
        nodes = [(node, True) for node in self._captured.get(first, ())]
        nodes += [(node, False) for node in self._captured.get(second, ())]
        return sorted(nodes, key=lambda pair: pair[0].start_byte)

    def _imports(self) -> tuple[dict[str, str], dict[int, list[str]]]:
        """The target of each imported name, and the imports of each definition. Relative ones have a leading `.`."""
        by_name: dict[str, str] = {}
        by_owner: dict[int, list[str]] = {}
        kinds = ("import", "import.from", "import.name", "import.alias")
        nodes = [
            (node.start_byte, order, node) for order, kind in enumerate(kinds) for node in self._captured.get(kind, ())
        ]
        source, last = "", ""
        for at, order, node in sorted(nodes, key=lambda item: item[:2]):
            text = "" if order == 0 else _BLANK.sub("", self._text(node))
            if order == 0:
                source = ""
            elif order == 1:
                source = text
            elif order == 2:
                target = text if not source else source + text if source.endswith(".") else f"{source}.{text}"
                last = text if source else text.partition(".")[0]
                by_name[last] = target if source else last
                by_owner.setdefault(self._owner(at), []).append(target)
            else:
                by_name.pop(last, None)
                by_name[text] = by_owner[self._owner(at)][-1]
        return by_name, by_owner


def _segments(items: Sequence[_RawDefinition]) -> tuple[list[int], list[int]]:
    """Offsets where the innermost definition changes, and which it is from there."""
    points, owners, enclosing = [0], [FILE], list[int]()
    for index, item in enumerate(items):
        while enclosing and items[enclosing[-1]].end <= item.start:
            points.append(items[enclosing.pop()].end)
            owners.append(enclosing[-1] if enclosing else FILE)
        enclosing.append(index)
        points.append(item.start)
        owners.append(index)
    while enclosing:
        points.append(items[enclosing.pop()].end)
        owners.append(enclosing[-1] if enclosing else FILE)
    return points, owners


def _comments(node: Node, body: Node | None) -> Iterator[Node]:
    """The comments before a body."""
    stack = [child for child in node.children if child != body]
    while stack:
        found = stack.pop()
        if found.type == "comment":
            yield found
        else:
            stack += found.children


def _start(node: Node) -> int:
    return node.start_byte


def _without_blanks(source: bytes, item: _RawDefinition) -> int:
    end = item.end
    while end > item.start and source[end - 1] in b" \t\r\n\f":
        end -= 1
    return end


def _kind(kind: str, in_class: bool) -> str:
    if kind == "class":
        return "class"
    return "method" if in_class else "function"


def _as_classes(calls: Iterable[str], kinds: Mapping[str, str] | None) -> tuple[str, ...]:
    """`cart.add` becomes `Cart.add` if `cart` is annotated as `Cart`."""
    names = list(calls)
    if kinds:
        for index, name in enumerate(names):
            first, dot, rest = name.partition(".")
            if dot and first in kinds:
                names[index] = f"{kinds[first]}.{rest}"
    return tuple(dict.fromkeys(names))[:MAX_NAMES]


def _coverage(typed: int, all_: int) -> float:
    return round(min(1.0, typed / all_), 2) if all_ else 1.0


def _flat(text: str) -> str:
    """On one line, without blanks that come from line breaks."""
    if "\n" not in text and "  " not in text and "( " not in text:
        return text.strip()[:MAX_LINE]
    return _CLOSE.sub(r"\1", _OPEN.sub(r"\1", _BLANK.sub(" ", text))).strip()[:MAX_LINE]


def _first_line(literal: str) -> str | None:
    """The first non-empty line of a docstring; None if the literal is not text."""
    found = _OPENING.match(literal)
    if found is None:
        return None
    if "\\" in literal and found[1] not in ("r", "R"):
        text = text_of_literal(literal) or ""
        return next((line.strip()[:MAX_LINE] for line in text.splitlines() if line.strip()), "")
    text = literal[found.end() :].lstrip()
    line = text.partition("\n")[0]
    return line.partition(found[2])[0].strip()[:MAX_LINE]
