"""The bank: modules of sound, documented code, each function with cases that show what it does.

A bank module is ordinary Python. Lines that begin with `#: ` after a function are cases of it, `arguments -> result` or
`arguments -> raises Error`; lines that begin with `#! name: ` are whole checks of a method. Neither gets into a task.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from remora_lab.bench.tasks import Half

BANK = Path(__file__).parent / "bank"
PACKAGES = {
    "stock": "warehouse", "logs": "webwatch", "rooms": "frontdesk", "shapes": "sketch", "wording": "scribe",
    "wallet": "cashdesk", "timetable": "busline", "kitchen": "canteen", "sensors": "greenhouse", "loans": "lending",
    "grades": "classbook", "parcels": "depot",
}  # fmt: skip
"""The package that a project gives each module."""


@dataclass(frozen=True)
class Piece:
    """A top-level statement of a bank module."""

    name: str
    text: str
    node: ast.stmt
    uses: frozenset[str]

    @property
    def is_function(self) -> bool:
        return isinstance(self.node, ast.FunctionDef)


@dataclass(frozen=True)
class Target:
    """A function or method that a task can be about."""

    module: Module
    name: str
    """Qualified."""
    node: ast.FunctionDef
    cases: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        return self.name.partition(".")[0]

    @property
    def parameters(self) -> tuple[ast.arg, ...]:
        given = (*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs)
        return given[1:] if "." in self.name else given

    @property
    def raises(self) -> tuple[str, ...]:
        raised = [each.exc for each in ast.walk(self.node) if isinstance(each, ast.Raise)]
        names = [each.func.id for each in raised if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]
        return tuple(dict.fromkeys(names))

    def behaviour(self, module: str) -> str:
        """A test of all that the bank says the target does."""
        lines = [f"import pytest\n\nfrom {module} import *  # noqa: F403\n\n"]
        checks = [check.replace("; ", "\n    ") for check in self.checks]
        for number, check in enumerate([*map(self._as_check, self.cases), *checks]):
            lines.append(f"\ndef test_{number}():\n    {check}\n")
        return "\n".join(lines)

    def _as_check(self, case: str) -> str:
        given, _, expected = case.rpartition(" -> ")
        if expected.startswith("raises "):
            return f"with pytest.raises({expected.removeprefix('raises ')}): {self.name}({given})"
        return f"assert {self.name}({given}) == {expected}"


@dataclass(frozen=True)
class Module:
    """A module of the bank."""

    name: str
    half: Half
    docstring: str
    imports: tuple[ast.stmt, ...]
    pieces: tuple[Piece, ...]
    cases: dict[str, tuple[str, ...]] = field(repr=False)
    checks: dict[str, tuple[str, ...]] = field(repr=False)

    @property
    def package(self) -> str:
        return PACKAGES[self.name]

    @property
    def targets(self) -> tuple[Target, ...]:
        found = []
        for piece in self.pieces:
            if isinstance(piece.node, ast.FunctionDef):
                found.append(Target(self, piece.name, piece.node, self.cases[piece.name]))
            elif isinstance(piece.node, ast.ClassDef):
                methods = [each for each in piece.node.body if isinstance(each, ast.FunctionDef)]
                named = [(f"{piece.name}.{each.name}", each) for each in methods]
                found += [
                    Target(self, name, each, (), self.checks[name]) for name, each in named if name in self.checks
                ]
        return tuple(found)

    def kept(self, wanted: set[str]) -> tuple[Piece, ...]:
        """The pieces of these names, and what they need."""
        names = set(wanted)
        while more := {use for each in self.pieces if each.name in names for use in each.uses} - names:
            names |= more
        return tuple(each for each in self.pieces if each.name in names)

    def header(self, pieces: tuple[Piece, ...]) -> list[str]:
        """The import lines that these pieces need, in groups as the bank has them."""
        used = {name for each in pieces for name in _names(each.node)}
        lines = []
        for node in self.imports:
            names = [alias.name for alias in node.names if alias.name in used or isinstance(node, ast.Import)]
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue
            if isinstance(node, ast.ImportFrom) and names:
                lines.append(f"from {node.module} import {', '.join(names)}")
            elif isinstance(node, ast.Import) and node.names[0].name in used:
                lines.append(f"import {node.names[0].name}")
        return lines


@cache
def modules(half: Half) -> tuple[Module, ...]:
    """The modules of one half, in order."""
    return tuple(_read(path, half) for path in sorted((BANK / half).glob("*.py")) if path.stem != "__init__")


def _read(path: Path, half: Half) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.split("\n")
    own = {name for node in tree.body for name in _defined(node)}
    imports = tuple(node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    rest = [node for node in tree.body[1:] if node not in imports]
    pieces = tuple(Piece(_defined(node)[0], _text(lines, node), node, frozenset(_names(node) & own)) for node in rest)
    return Module(path.stem, half, ast.get_docstring(tree) or "", imports, pieces, _cases(lines), _checks(lines))


def _text(lines: list[str], node: ast.stmt) -> str:
    return "\n".join(lines[_first(node) - 1 : node.end_lineno])


def _first(node: ast.stmt) -> int:
    return min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", []))])


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _cases(lines: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in lines:
        if begun := re.match(r"def (\w+)", line):
            name = begun[1]
            found[name] = ()
        elif line.startswith("#: "):
            found[name] = (*found[name], line[3:])
    return found


def _checks(lines: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        if line.startswith("#! "):
            name, _, check = line[3:].partition(": ")
            found[name] = (*found.get(name, ()), check)
    return found
