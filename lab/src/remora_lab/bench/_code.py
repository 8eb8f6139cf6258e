"""Source analysis for the checks: definitions, their lines, and what a docstring documents."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from remora.discovery import python_tree

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ARGS = r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters)"
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:")
_SPHINX = re.compile(r":(param|raises|raise|returns|return|yields)\b\s*(?:[^:]*?[\s*])?(\w*)\s*:")


@dataclass(frozen=True)
class Described:
    """What a docstring names."""

    summary: str
    parameters: frozenset[str]
    raises: frozenset[str]
    returns: bool


def parses(source: bytes) -> bool:
    """Whether this is Python."""
    try:
        python_tree(source)
    except (SyntaxError, ValueError):
        return False
    return True


def definition(source: str, node: str) -> Definition | None:
    """The definition with this qualified name; None where there is none."""
    return next((found for name, found in _definitions(python_tree(source)) if name == node), None)


def _definitions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(tree):
        name = above
        if isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            name = f"{above}{child.name}."
            yield name[:-1], child
        yield from _definitions(child, name)


def target_lines(source: str, node: str) -> set[int]:
    """The lines that an agent on this node may change: its own, less those of functions inside it."""
    found = definition(source, node) if node else None
    if node and found is None:
        return set()
    everything = set(range(1, source.count("\n") + 2))
    own = _lines(found) if found else everything
    inside = (each for each in ast.walk(found or python_tree(source)) if isinstance(each, _FUNCTIONS))
    return own - {row for each in inside if each is not found for row in _lines(each)}


def _lines(found: Definition) -> set[int]:
    first = min([found.lineno, *(mark.lineno for mark in found.decorator_list)])
    return set(range(first, (found.end_lineno or found.lineno) + 1))


def changed_lines(was: str, now: str) -> set[int]:
    """The lines of `was` that are not in `now`; for lines that were put in, the one they stand before or after."""
    old, new = was.splitlines(), now.splitlines()
    changed: set[int] = set()
    for kind, first, last, _, _ in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "insert":
            changed.add(max(1, first))
        elif kind != "equal":
            changed.update(row for row in range(first + 1, last + 1) if old[row - 1].strip())
    return changed


def without_docstring(source: str, node: str) -> list[str]:
    """The lines that are not blank and not the node's docstring."""
    found = definition(source, node)
    first = found.body[0] if found and ast.get_docstring(found) is not None else None
    doc = range(first.lineno, (first.end_lineno or first.lineno) + 1) if first else range(0)
    lines = source.splitlines()
    return [line.rstrip() for row, line in enumerate(lines, start=1) if line.strip() and row not in doc]


def described(found: Definition) -> Described | None:
    """What the definition's docstring names, by the styles of Google, NumPy and Sphinx."""
    doc = ast.get_docstring(found)
    if not doc or not doc.strip():
        return None
    google, numpy, sphinx = _google(doc), _numpy(doc), _fields(doc)
    return Described(
        summary=doc.strip().split("\n\n")[0],
        parameters=frozenset().union(*(each["parameters"] for each in (google, numpy, sphinx))),
        raises=frozenset().union(*(each["raises"] for each in (google, numpy, sphinx))),
        returns=any(each["returns"] for each in (google, numpy, sphinx)),
    )


def _google(doc: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"parameters": set(), "raises": set(), "returns": set()}
    kind, margin = "", -1
    for line in doc.split("\n"):
        depth = len(line) - len(line.lstrip())
        if heading := re.fullmatch(rf"({_ARGS}|Returns|Yields|Raises):", line.strip()):
            kind, margin = _kind(heading[1]), -1
        elif line.strip() and not depth:
            kind = ""
        elif kind and line.strip():
            margin = depth if margin < 0 else margin
            entry = _ENTRY.match(line.strip())
            if kind == "returns" or (depth == margin and entry):
                found[kind].add(entry[1] if entry and kind != "returns" else "result")
    return found


def _kind(heading: str) -> str:
    return {"Returns": "returns", "Yields": "returns", "Raises": "raises"}.get(heading, "parameters")


def _numpy(doc: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"parameters": set(), "raises": set(), "returns": set()}
    lines, kind = doc.split("\n"), ""
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch(r"-{3,}", after.strip()):
            known = re.fullmatch(rf"({_ARGS}|Returns|Yields|Raises)", line.strip())
            kind = _kind(known[1]) if known else ""
        elif kind and line.strip() and not line.startswith(" ") and not re.fullmatch(r"-{3,}", line.strip()):
            names = re.findall(r"\*{0,2}(\w+)", line.partition(":")[0])
            found[kind].update(names if kind != "returns" else ["result"])
    return found


def _fields(doc: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"parameters": set(), "raises": set(), "returns": set()}
    for word, name in _SPHINX.findall(doc):
        kind = "parameters" if word == "param" else "raises" if word.startswith("raise") else "returns"
        found[kind].add(name or "result")
    return found
