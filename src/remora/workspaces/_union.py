"""Joins two new Python files at one path: the imports and definitions of both.

Agents of several functions can each create the same file, such as the tests of one module. There is no common base to
merge with. If both files consist of a docstring, imports and definitions only, and nothing is defined in two ways, the
union is clear. Otherwise it is a conflict.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class _Module:
    """The text of a file by its parts."""

    head: str
    imports: dict[str, str]
    """Import statements in order, by their text."""
    definitions: dict[str, str]
    """Text of each definition by name."""


def union(ours: bytes, theirs: bytes) -> bytes | None:
    """Our file with the imports and definitions that only theirs has. None if that is not clear."""
    try:
        first, second = _read(ours.decode()), _read(theirs.decode())
    except (SyntaxError, ValueError, MemoryError, RecursionError, SystemError):
        return None
    if first is None or second is None or first.head != second.head:
        return None
    both = first.definitions.keys() & second.definitions.keys()
    if any(first.definitions[name] != second.definitions[name] for name in both):
        return None
    parts = [first.head, _imports([*first.imports.values(), *second.imports.values()])]
    definitions = [*(first.definitions | second.definitions).values()]
    text = "\n\n".join(part for part in parts if part) + "".join(f"\n\n\n{each}" for each in definitions) + "\n"
    return text.lstrip("\n").encode()


def _read(text: str) -> _Module | None:
    """The parts of a file; None if it has others, or comments between them, which would be lost."""
    tree = ast.parse(text)
    lines = text.split("\n")
    used: set[int] = set()
    head, imports, definitions = "", dict[str, str](), dict[str, str]()
    for number, node in enumerate(tree.body):
        first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", []))])
        said = "\n".join(lines[first - 1 : node.end_lineno])
        used |= set(range(first - 1, node.end_lineno or first))
        if number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            head = said
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports[said] = said
        elif isinstance(node, DEFINITIONS) and node.name not in definitions:
            definitions[node.name] = said
        else:
            return None
    rest = [line for number, line in enumerate(lines) if number not in used and line.strip()]
    return None if rest else _Module(head, imports, definitions)


def _imports(statements: list[str]) -> str:
    """Import statements in groups: the standard library and others, pytest, then the modules under test."""
    plain = sorted({line for line in statements if line.startswith("import ")})
    names: dict[str, set[str]] = {}
    other: list[str] = []
    for line in dict.fromkeys(statements):
        node = ast.parse(line).body[0]
        if isinstance(node, ast.ImportFrom) and not any(name.asname for name in node.names):
            module = "." * node.level + (node.module or "")
            names.setdefault(module, set()).update(name.name for name in node.names)
        elif line not in plain:
            other.append(line)
    standard = sorted(module for module in names if module.partition(".")[0] in sys.stdlib_module_names)
    froms = {module: f"from {module} import {', '.join(sorted(found))}" for module, found in names.items()}
    groups = [
        [*[line for line in plain if line != "import pytest"], *[froms[module] for module in standard]],
        [line for line in plain if line == "import pytest"],
        [*[line for module, line in froms.items() if module not in standard], *other],
    ]
    return "\n\n".join("\n".join(group) for group in groups if group)
