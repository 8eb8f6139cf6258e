"""Reads and edits the definitions of one source text, by their positions in the syntax tree.

After an edit the file still parses: with no more tree-sitter errors than before, and as Python if it did before. All
bytes outside the edited part stay the same, including line ends and a byte order mark.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tree_sitter import Node

from remora.discovery._annotations import missing_types
from remora.discovery._behaviour import behaviour
from remora.discovery._docstrings import FileDocs, conventions, read_docs
from remora.discovery._facts import Docstring, Facts, first_statement
from remora.discovery._lines import LineTable
from remora.discovery._literal import literal, plain_lines, python_reads, python_tree, value_of
from remora.discovery._proofs import Finding, Sources
from remora.discovery._statements import statements
from remora.discovery._syntax import Definition, Syntax, errors, first_error, parse
from remora.discovery._unused import unused

BOM = b"\xef\xbb\xbf"
PROOFS: dict[str, Callable[[Sources, str, Sequence[str]], tuple[list[Finding], dict[str, str]]]] = {
    "unused": unused,
    "types": missing_types,
    "statements": statements,
}
PARTS = ("docstring", "body", "whole")
_REAL_END = re.compile(rb"(?<!\\)(?:\r\n|\r|\n)")
_ANY_END = re.compile(rb"\r\n|\r|\n")
_AFTER = re.compile(rb"(?:[ \t\f]|\\(?:\r\n|\r|\n))*;?(?:[ \t\f]|\\(?:\r\n|\r|\n))*")
_UNIT = re.compile(
    rb"^(?:class|def|if|for|while|async|try|with)\b[^\r\n]*:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)([ \t]+)", re.M
)
_INDENT = re.compile(rb"[ \t\f]*")


@lru_cache(maxsize=1024)
def _docs(source: bytes) -> FileDocs:
    """The docstrings of a file; none if it does not parse. Cached: every agent of a run asks for all files."""
    tree = _tree(source)
    return read_docs(tree) if tree else FileDocs()


def _tree(source: bytes) -> ast.Module | None:
    """The syntax tree by Python's own parser; None if the code needs another version."""
    try:
        return python_tree(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


class PythonCode:
    """Facts about Python code, and edits of it."""

    def facts(self, source: bytes, node: str) -> dict[str, Any]:
        """All facts about the definition `node`, or about the file if it is empty."""
        text = _Text.of(source)
        item = text.definition(node)
        if item is None:
            return text.facts.of_file()
        return text.facts.of(item) | {"indent": text.inner_indent(item).decode()}

    def behaviour(self, source: bytes, node: str) -> dict[str, Any]:
        """What the function `node` does, as far as the syntax proves it; empty if it is no function."""
        item = _Text.of(source).definition(node)
        tree = _tree(source)
        return {} if item is None or tree is None else behaviour(tree, _Text.of(source).table.line_of(item.start))

    def habits(self, sources: Mapping[str, bytes], path: str, node: str) -> dict[str, Any]:
        """How the project writes docstrings, and what it says elsewhere about the function `node` of `path`."""
        return conventions({name: _docs(source) for name, source in sources.items()}, path, node)

    def proven(self, about: str, files: Mapping[str, bytes], path: str, without: Sequence[str]) -> dict[str, Any]:
        """What is provably dead, missing or false about a file, and the texts of files with all of it mended."""
        if about not in PROOFS:
            raise ValueError(f"about `{about:.40}` is not known: expected one of {', '.join(PROOFS)}")
        findings, texts = PROOFS[about](Sources(files), path, without)
        return {"findings": [one.record() for one in findings], "files": texts}

    def edit(self, source: bytes, node: str, part: str, text: str) -> bytes:
        """Replace one part of a definition. Raises `ValueError` if the source would no longer parse."""
        if part not in PARTS:
            raise ValueError(f"part `{part:.40}` is not known: expected one of {', '.join(PARTS)}")
        before = _Text.of(source)
        item = before.definition(node)
        if part == "docstring":
            return _with_docstring(before, item, text, node)
        if item is None:
            raise ValueError(f"A file has no {part}: expected a definition, or `write_file`")
        if not text.strip():
            raise ValueError(f"The new {part} is empty: expected code")
        start, end, indent = before.body(item) if part == "body" else before.whole(item)
        return _check_parses(before, before.replace(start, end, before.block(text, indent, start)))

    def replace_lines(self, source: bytes, first: int, last: int, text: str) -> bytes:
        """Replace or insert whole lines. Raises `ValueError` if the source would no longer parse."""
        before = _Text.of(source)
        count = len(before.table) if before.source else 0
        if not 1 <= first <= count + 1 or not first - 1 <= last <= count:
            raise ValueError(f"Lines {first}-{last} do not exist: expected lines within 1-{count}")
        start, end = before.line_start(first), before.line_start(last + 1)
        new = before.with_ends(text).encode()
        new += before.end if new and not _ANY_END.search(new[-1:]) else b""
        lead = before.end if start and not _ANY_END.search(before.source[start - 1 : start]) and new else b""
        return _check_parses(before, before.replace(start, end, lead + new))


@dataclass(frozen=True)
class _Text:
    """A source without its byte order mark, and its parse."""

    mark: bytes
    source: bytes
    syntax: Syntax
    table: LineTable
    facts: Facts

    @classmethod
    def of(cls, data: bytes) -> _Text:
        data.decode()
        mark = BOM if data.startswith(BOM) else b""
        source = data[len(mark) :]
        syntax = parse(source)
        return cls(mark, source, syntax, LineTable(source), Facts(source, syntax.root))

    @property
    def end(self) -> bytes:
        """The line end that this file uses."""
        match = _ANY_END.search(self.source)
        return match[0] if match else b"\n"

    def definition(self, node: str) -> Definition | None:
        """The definition with that name, None for the file. Raises `ValueError` that lists the existing ones."""
        if not node:
            return None
        for item in self.syntax.definitions:
            if item.qualified == node:
                return item
        names = ", ".join(f"`{item.qualified}`" for item in self.syntax.definitions[:20]) or "no definitions"
        raise ValueError(f"There is no `{node:.200}` in this file: it has {names}"[:500])

    def docstring(self, item: Definition | None) -> Docstring | None:
        return self.facts.docstring(self.body_node(item))

    def body_node(self, item: Definition | None) -> Node | None:
        return item.node.child_by_field_name("body") if item else self.syntax.root

    def colon_end(self, item: Definition) -> int:
        """Where the header of a definition ends. Raises `ValueError` if it has no body."""
        colons = [child for child in item.node.children if child.type == ":" and not child.is_missing]
        if not colons or first_statement(self.body_node(item)) is None:
            raise ValueError(f"`{item.qualified}` has no body that can be edited")
        return colons[-1].end_byte

    def first_start(self, item: Definition) -> int:
        first = first_statement(self.body_node(item))
        return first.start_byte if first else item.end

    def is_inline(self, item: Definition) -> bool:
        """Whether the body begins on the same logical line as the header."""
        return not _REAL_END.search(self._code_between(item))

    def _code_between(self, item: Definition) -> bytes:
        """The source between header and body, without comments: a comment may end in a backslash."""
        return re.sub(rb"#[^\r\n]*", b"", self.source[self.colon_end(item) : self.first_start(item)])

    def inner_indent(self, item: Definition) -> bytes:
        """The indentation of the body's lines."""
        body = self.body_node(item)
        if body is None or first_statement(body) is None or self.is_inline(item):
            return self.outer_indent(item) + self._unit(item)
        return _REAL_END.split(self._code_between(item))[-1].split(b"\\")[0]

    def outer_indent(self, item: Definition) -> bytes:
        start = self.line_start(self.table.line_of(item.node.start_byte))
        match = _INDENT.match(self.source, start)
        return match[0] if match else b""

    def _unit(self, item: Definition) -> bytes:
        """One step of indentation in this file."""
        if b"\t" in self.outer_indent(item):
            return b"\t"
        match = _UNIT.search(self.source)
        return match[1] if match else b"    "

    def line_start(self, line: int) -> int:
        return self.table.start(line)

    def line_end(self, offset: int) -> int:
        """Where the line that contains `offset` ends, without its line end."""
        match = _ANY_END.search(self.source, offset)
        return match.start() if match else len(self.source)

    def body(self, item: Definition) -> tuple[int, int, bytes]:
        """The bytes of the statements after the docstring, and their indentation."""
        end, docstring = self.line_end(item.end), self.docstring(item)
        if docstring is None:
            begin = self.colon_end(item) if self.is_inline(item) else self._header_end(item)
            return begin, end, self.inner_indent(item)
        return min(_skip_semicolon(self.source, docstring.end), end), end, self.inner_indent(item)

    def whole(self, item: Definition) -> tuple[int, int, bytes]:
        """The bytes of the definition's lines, and their indentation."""
        return self.line_start(self.table.line_of(item.start)), self.line_end(item.end), self.outer_indent(item)

    def _header_end(self, item: Definition) -> int:
        """Where the last line of the header ends, including a comment, without its line end."""
        return self.line_end(self.colon_end(item))

    def after_header(self, item: Definition) -> int:
        """Where the first line after the header begins."""
        match = _ANY_END.match(self.source, self._header_end(item))
        return match.end() if match else len(self.source)

    def with_ends(self, text: str) -> str:
        """The text with the line ends of this file."""
        return re.sub(r"\r\n|\r|\n", self.end.decode(), text)

    def block(self, text: str, indent: bytes, start: int) -> bytes:
        """The text as lines with that indentation, starting on a new line. Lines inside strings stay as they are."""
        lines = _reindent(text, indent.decode())
        lead = "" if start == 0 or _ANY_END.match(self.source[start - 1 : start]) else "\n"
        return self.with_ends(lead + "\n".join(lines)).encode()

    def replace(self, start: int, end: int, new: bytes) -> bytes:
        return self.source[:start] + new + self.source[end:]


def _skip_semicolon(source: bytes, offset: int) -> int:
    """Skip blanks and one `;`."""
    match = _AFTER.match(source, offset)
    return match.end() if match else offset


def _with_docstring(before: _Text, item: Definition | None, text: str, node: str) -> bytes:
    lines = plain_lines(text)
    old = before.docstring(item)
    indent = before.inner_indent(item) if item else b""
    quote = "'''" if old and re.match(r"[rRuU]*'''", old.literal) else '"""'
    new = literal(lines, indent.decode(), before.end.decode(), quote).encode()
    if item is not None and before.is_inline(item):
        changed = _move_body_below(before, item, old, indent, new)
    elif old is not None:
        changed = before.replace(old.start, old.end, new)
    else:
        changed = _insert_docstring(before, item, indent + new + before.end)
    result = _check_parses(before, changed)
    after = _Text.of(result)
    written = after.docstring(after.definition(node))
    if written is None or written.text != value_of(lines, indent.decode()):
        raise ValueError("The docstring cannot be written here: Python would read a different text")
    return result


def _move_body_below(before: _Text, item: Definition, old: Docstring | None, indent: bytes, new: bytes) -> bytes:
    """Move a body on the header's line below it: `def f(): return 1` becomes three lines."""
    rest = _skip_semicolon(before.source, old.end) if old else before.first_start(item)
    is_last = _ANY_END.match(before.source, rest) or before.source[rest : rest + 1] in (b"", b"#")
    rest = old.end if old and is_last else rest
    between = b"" if old and is_last else before.end + indent
    return before.replace(before.colon_end(item), rest, before.end + indent + new + between)


def _insert_docstring(before: _Text, item: Definition | None, line: bytes) -> bytes:
    """Insert a new docstring. Classes and files get a blank line after it, unless there is one."""
    at = before.after_header(item) if item else _after_first_comments(before.source)
    wants_blank = item is None or item.kind == "class"
    has_blank = at >= len(before.source) or _ANY_END.match(before.source, at)
    lead = b"" if at == 0 or _ANY_END.match(before.source[at - 1 : at]) else before.end
    return before.replace(at, at, lead + line + (before.end if wants_blank and not has_blank else b""))


def _after_first_comments(source: bytes) -> int:
    """Skip the comments at the start of a file: interpreter, encoding and licence."""
    match = re.match(rb"(?:#[^\r\n]*(?:\r\n|\r|\n|\Z))*", source)
    return match.end() if match else 0


def _reindent(text: str, indent: str) -> list[str]:
    """The lines with their common indentation replaced by `indent`."""
    lines = re.split(r"\r\n|\r|\n", text.strip("\r\n"))
    own = next((line[: len(line) - len(line.lstrip())] for line in lines if line.strip()), "")
    unchanged = _inside_strings("\n".join(lines).encode())
    return [
        line if number in unchanged else (indent + line.removeprefix(own) if line.strip() else "")
        for number, line in enumerate(lines)
    ]


def _inside_strings(text: bytes) -> set[int]:
    """Lines, counted from 0, that begin inside a string."""
    inside: set[int] = set()
    stack = [parse(text).root]
    while stack:
        node = stack.pop()
        if node.type == "string":
            inside.update(range(node.start_point[0] + 1, node.end_point[0] + 1))
        else:
            stack += node.children
    return inside


def _check_parses(before: _Text, changed: bytes) -> bytes:
    """The changed source with its byte order mark. Raises `ValueError` if it has more errors than before."""
    root = parse(changed).root
    broken = first_error(root)
    worse = broken is not None and len(list(errors(root))) > len(list(errors(before.syntax.root)))
    if broken is not None and worse:
        line = LineTable(changed).line_of(broken.start_byte)
        raise ValueError(f"The file would no longer be valid Python at line {line}: nothing was changed")
    if python_reads(before.source) and not python_reads(changed):
        raise ValueError("The file would no longer be valid Python: nothing was changed")
    return before.mark + changed
