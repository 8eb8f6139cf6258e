"""The documents of a project, and the Python code in them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from remora.discovery._outline import tree_of
from remora.discovery._proofs import LINE

SUFFIXES = (".md", ".rst", ".txt", ".markdown")
_PAST = re.compile(
    r"chang|histor|news|release|migrat|upgrad|porting|whatsnew|authors|licen|todo|roadmap|requirements|versions", re.I
)
_OTHER = re.compile(r"(?:^|/)(?:tests?|vendor|_vendor|third_party|node_modules|[^/]+\.egg-info|\.[^/]+)/")
_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*\{?\.?([\w+-]*)")
_DIRECTIVE = re.compile(r"^([ \t]*)\.\. (?:code-block|code|sourcecode)::[ \t]*(\w*)|^([ \t]*)[^\s.].*::[ \t]*$")
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.)(?: |$)")
PYTHON = ("python", "py", "python3", "pycon", "pycon3", "")


@dataclass(frozen=True)
class Snippet:
    """Python code in a document."""

    line: int
    """The document's line of its first line."""
    tree: ast.Module


def is_document(path: str) -> bool:
    """Whether a file documents the project as it is today: not its history, nor a file of tests."""
    return path.endswith(SUFFIXES) and not _OTHER.search(path) and not _PAST.search(path)


def snippets(text: str) -> Iterator[Snippet]:
    """The Python code of a document that parses: fenced or indented blocks, and lines after `>>>`."""
    lines = LINE.findall(text)
    for first, block in [*_fenced(lines), *_directives(lines), *_prompts(lines)]:
        code = textwrap.dedent("".join(block))
        tree = tree_of(code.encode())
        if tree is not None and tree.body:
            yield Snippet(first, tree)


def _fenced(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    start, mark, wanted = 0, "", False
    for row, line in enumerate(lines, 1):
        found = _FENCE.match(line)
        if mark and line.strip().startswith(mark):
            block = lines[start : row - 1]
            if wanted and not any(_PROMPT.match(one) for one in block):
                yield start + 1, block
            mark = ""
        elif not mark and found:
            start, mark, wanted = row, found[2], found[3].lower() in PYTHON[:-1]


def _directives(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    for row, line in enumerate(lines, 1):
        found = _DIRECTIVE.match(line)
        if not found or (found[2] or "").lower() not in PYTHON:
            continue
        indent = len(found[1] if found[1] is not None else found[3] or "")
        last = row
        while last < len(lines) and (not lines[last].strip() or _indent(lines[last]) > indent):
            last += 1
        block = [("\n" if one.lstrip().startswith(":") else one) for one in lines[row:last]]
        if not any(_PROMPT.match(one) for one in block):
            yield row + 1, block


def _prompts(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines after prompts, one statement at a time; a blank line stands for what is printed."""
    row = 0
    while row < len(lines):
        if not lines[row].lstrip().startswith(">>>"):
            row += 1
            continue
        first = row
        row += 1
        while row < len(lines) and re.match(r"[ \t]*\.\.\.(?: |$)", lines[row]):
            row += 1
        yield first + 1, [_PROMPT.sub("", line.rstrip("\r\n")) + "\n" for line in lines[first:row]]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
