"""Facts about one definition from its syntax alone."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tree_sitter import Node

from remora.discovery._lines import LineTable
from remora.discovery._literal import text_of_literal
from remora.discovery._syntax import NOT_CODE, Definition

MAX_PART = 200
"""Most characters of an annotation, a default or a decorator."""
MAX_NAMES = 40
SCOPES = frozenset({"function_definition", "class_definition", "lambda"})
STUBS = frozenset({"pass_statement", "ellipsis"})
NOT_TEXT = re.compile(rb"[bBfFtT]")
_BREAK = re.compile(r"\s*\\?[\r\n]+\s*")
_OPEN = re.compile(r"([\[({]) +")
_CLOSE = re.compile(r" +([\])}])")


@dataclass(frozen=True)
class Docstring:
    """A docstring: the bytes of its literal, and its text."""

    start: int
    end: int
    text: str
    literal: str


class Facts:
    """Reads facts from one source and its tree. `root` represents the file."""

    def __init__(self, source: bytes, root: Node) -> None:
        self._source = source
        self._root = root
        self._table = LineTable(source)

    def of_file(self) -> dict[str, Any]:
        """The same keys as for a definition, as far as they apply to a file."""
        return {
            "kind": "file",
            "name": "",
            "qualified": "",
            "first": 1,
            "last": len(self._table),
            "signature": "",
            "indent": "",
            **self._docstring_facts(self._root),
        }

    def of(self, item: Definition) -> dict[str, Any]:
        """All facts about a definition, as plain JSON."""
        kind = "class" if item.kind == "class" else "method" if item.in_class else "function"
        body = item.node.child_by_field_name("body")
        facts = {
            "kind": kind,
            "name": item.name,
            "qualified": item.qualified,
            "first": self._table.line_of(item.start),
            "last": self._table.line_of(max(item.start, item.end - 1)),
            "decorators": self._decorators(item.node),
            **self._docstring_facts(body),
        }
        return facts | (self._class(item.node) if kind == "class" else self._function(item.node, kind == "method"))

    def docstring(self, body: Node | None) -> Docstring | None:
        """The docstring of a body: its first statement, if that is a plain string."""
        first = first_statement(body)
        if first is None or first.type != "expression_statement" or first.named_child_count != 1:
            return None
        found = first.named_children[0]
        if any(NOT_TEXT.match(part) for part in self._prefixes(found)) or not self._prefixes(found):
            return None
        text = text_of_literal(self._text(found))
        return None if text is None else Docstring(found.start_byte, found.end_byte, text, self._text(found))

    def _prefixes(self, node: Node) -> list[bytes]:
        """The opening quotes of all strings in a literal, with their prefixes; empty if it is not a literal."""
        while node.type == "parenthesized_expression" and (inner := _code(node)) and len(inner) == 1:
            node = inner[0]
        if node.type == "concatenated_string":
            strings = [child for child in node.named_children if child.type == "string"]
        else:
            strings = [node] if node.type == "string" else []
        return [self._source[part.start_byte : part.children[0].end_byte] for part in strings if part.children]

    def _docstring_facts(self, body: Node | None) -> dict[str, Any]:
        found, first = self.docstring(body), first_statement(body)
        lines = [self._table.line_of(found.start), self._table.line_of(found.end - 1)] if found else None
        return {
            "docstring": inspect.cleandoc(found.text) if found else None,
            "docstring_lines": lines,
            "body_line": self._table.line_of(first.start_byte) if first else None,
        }

    def _function(self, node: Node, is_method: bool) -> dict[str, Any]:
        body = node.child_by_field_name("body")
        parameters = self._parameters(node.child_by_field_name("parameters"))
        is_async = any(child.type == "async" for child in node.children)
        returns = self._flat(node.child_by_field_name("return_type"))
        own = list(_own_nodes(body)) if body else []
        return {
            "is_method": is_method,
            "is_async": is_async,
            "parameters": parameters,
            "returns": returns,
            "signature": self._signature(node, parameters, returns, is_async),
            "raises": _unique(self._raised_class(part) for part in own if part.type == "raise_statement"),
            "yields": any(part.type == "yield" for part in own),
            "returns_value": any(part.type == "return_statement" and _returns_value(part) for part in own),
            "calls": _unique(self._called_name(part) for part in own if part.type == "call"),
            "is_stub": self._is_stub(body),
        }

    def _class(self, node: Node) -> dict[str, Any]:
        body = node.child_by_field_name("body")
        bases = self._flat(node.child_by_field_name("superclasses")) or ""
        inside = [_undecorated(child) for child in body.named_children] if body else []
        return {
            "bases": bases[1:-1],
            "signature": f"class {self._head(node)}{bases}",
            "methods": _unique(self._name(child) for child in inside if child.type == "function_definition"),
            "fields": [field for child in inside if (field := self._field(child))][:MAX_NAMES],
        }

    def _field(self, statement: Node) -> dict[str, Any] | None:
        """A name that a class body annotates, as in a dataclass."""
        given = statement.named_children[0] if statement.type == "expression_statement" else None
        if given is None or given.type != "assignment" or not (kind := given.child_by_field_name("type")):
            return None
        left, right = given.child_by_field_name("left"), given.child_by_field_name("right")
        return {"name": self._flat(left), "annotation": self._flat(kind), "default": self._flat(right)}

    def _signature(self, node: Node, parameters: list[dict[str, Any]], returns: str | None, is_async: bool) -> str:
        shown: list[str] = []
        for index, item in enumerate(parameters):
            before = parameters[index - 1]["kind"] if index else ""
            if before == "positional_only" != item["kind"]:
                shown.append("/")
            if item["kind"] == "keyword_only" and before not in ("keyword_only", "var_positional"):
                shown.append("*")
            shown.append(_show_parameter(item))
        if parameters and parameters[-1]["kind"] == "positional_only":
            shown.append("/")
        word = "async def" if is_async else "def"
        return f"{word} {self._head(node)}({', '.join(shown)})" + (f" -> {returns}" if returns else "")

    def _head(self, node: Node) -> str:
        """The name with its type parameters."""
        return self._name(node) + (self._flat(node.child_by_field_name("type_parameters")) or "")

    def _parameters(self, node: Node | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        kind = "positional_or_keyword"
        for child in _code(node):
            if child.type == "positional_separator":
                for item in found:
                    item["kind"] = "positional_only"
            elif child.type == "keyword_separator":
                kind = "keyword_only"
            else:
                item = self._parameter(child, kind)
                kind = "keyword_only" if item["kind"] == "var_positional" else kind
                found.append(item)
        return found

    def _parameter(self, node: Node, kind: str) -> dict[str, Any]:
        name = node.child_by_field_name("name") or (
            node.named_children[0] if node.type == "typed_parameter" and node.named_children else node
        )
        stars = {"list_splat_pattern": "var_positional", "dictionary_splat_pattern": "var_keyword"}
        return {
            "name": (self._flat(name) or "").lstrip("*").strip(),
            "annotation": self._flat(node.child_by_field_name("type")),
            "default": self._flat(node.child_by_field_name("value")),
            "kind": stars.get(name.type, kind),
        }

    def _decorators(self, node: Node) -> list[str]:
        around = node.parent
        if around is None or around.type != "decorated_definition":
            return []
        found = [child for child in around.named_children if child.type == "decorator"]
        return [(self._flat(child) or "").removeprefix("@").strip() for child in found]

    def _raised_class(self, node: Node) -> str:
        """The class that a `raise` names; empty if it re-raises a value."""
        given = _code(node)
        if not given or given[0] == node.child_by_field_name("cause"):
            return ""
        raised = given[0].child_by_field_name("function") if given[0].type == "call" else given[0]
        if raised is None or raised.type not in ("identifier", "attribute"):
            return ""
        name = self._flat(raised) or ""
        return name if name.rpartition(".")[2][:1].isupper() else ""

    def _called_name(self, node: Node) -> str:
        called = node.child_by_field_name("function")
        return self._flat(called) or "" if called and called.type in ("identifier", "attribute") else ""

    def _is_stub(self, body: Node | None) -> bool:
        """Whether only `...` or `pass` follows the docstring."""
        found = self.docstring(body)
        rest = [child for child in _code(body) if found is None or child.start_byte > found.start]
        return all((child.named_children or [child])[0].type in STUBS or child.type in STUBS for child in rest)

    def _name(self, node: Node) -> str:
        return self._flat(node.child_by_field_name("name")) or ""

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode()

    def _flat(self, node: Node | None) -> str | None:
        """The node's text on one line, without comments, strings unchanged."""
        if node is None:
            return None
        parts: list[str] = []
        at = node.start_byte
        for part in _strings_and_comments(node):
            before = _join_lines(self._source[at : part.start_byte].decode())
            is_string = part.type == "string"
            parts += [before, " ".join(self._text(part).splitlines())] if is_string else [before.rstrip()]
            at = part.end_byte
        parts.append(_join_lines(self._source[at : node.end_byte].decode()))
        return "".join(parts).strip()[:MAX_PART]


def first_statement(body: Node | None) -> Node | None:
    """The first statement of a body, skipping comments."""
    return next(iter(_code(body)), None)


def _code(node: Node | None) -> list[Node]:
    return [child for child in node.named_children if child.type not in NOT_CODE] if node else []


def _own_nodes(body: Node) -> Iterator[Node]:
    """All nodes inside, except those in nested definitions and lambdas."""
    stack = list(reversed(body.children))
    while stack:
        node = stack.pop()
        if node.type not in SCOPES:
            yield node
            stack += reversed(node.children)


def _strings_and_comments(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        found = stack.pop()
        if found.type in ("string", "comment"):
            yield found
        else:
            stack += reversed(found.children)


def _join_lines(text: str) -> str:
    return _CLOSE.sub(r"\1", _OPEN.sub(r"\1", _BREAK.sub(" ", text)))


def _returns_value(node: Node) -> bool:
    """Whether a `return` returns something other than `None`."""
    given = _code(node)
    return bool(given) and given[0].type != "none"


def _undecorated(node: Node) -> Node:
    inner = node.child_by_field_name("definition") if node.type == "decorated_definition" else None
    return inner or node


def _show_parameter(item: dict[str, Any]) -> str:
    stars = {"var_positional": "*", "var_keyword": "**"}.get(item["kind"], "")
    annotated = f": {item['annotation']}" if item["annotation"] else ""
    if item["default"] is None:
        return f"{stars}{item['name']}{annotated}"
    return f"{stars}{item['name']}{annotated}{' = ' if annotated else '='}{item['default']}"


def _unique(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))[:MAX_NAMES]
