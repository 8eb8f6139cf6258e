"""Type annotations that the code proves, in projects that have most of them.

A signature is completed or left alone: the result by every `return`, a parameter by its default. Whether the types fit
the rest of the project is for a type checker to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remora.discovery._behaviour import Function, ends, own_nodes
from remora.discovery._docstrings import is_public_file
from remora.discovery._inference import PLAIN, Known, infer
from remora.discovery._outline import Outline, outline_of, tree_of
from remora.discovery._proofs import LINE, Finding, Sources, apply_findings, oldest_python
from remora.discovery._signature import insert_types

FEWEST = 4
"""Functions from which on a project has a habit at all."""
SPECIAL = {
    **dict.fromkeys(("__init__", "__post_init__", "__set_name__", "__delattr__", "__setattr__"), "None"),
    **dict.fromkeys(("__repr__", "__str__", "__format__"), "str"),
    **dict.fromkeys(("__bool__", "__contains__", "__eq__", "__ne__"), "bool"),
    **dict.fromkeys(("__len__", "__hash__", "__int__", "__index__"), "int"),
    "__float__": "float", "__bytes__": "bytes",
}  # fmt: skip
"""Results that the language itself demands."""
SPECIAL_PARAMETERS = {
    ("__eq__", 0): "object", ("__ne__", 0): "object", ("__contains__", 0): "object",
    ("__delattr__", 0): "str", ("__format__", 0): "str",
}  # fmt: skip
"""Parameters whose type the language itself demands."""
DYNAMIC = ("__getattr__", "__getattribute__")
"""Methods that answer for every name: a type of their result would be the type of each misspelled attribute too."""
LEFT = frozenset({"overload", "abstractmethod", "override", "no_type_check", "fixture", "contextmanager"})
"""Decorators of functions that are left alone."""


def missing_types(sources: Sources, path: str, without: Sequence[str]) -> tuple[list[Finding], dict[str, str]]:
    """Signatures of a file that can be completed, and the file's text with them. Not those in `without`."""
    tree = tree_of(sources.files[path])
    if tree is None or path.endswith(".pyi") or not is_public_file(path) or not is_typed(sources):
        return [], {}
    found = [one for one in _Reader.of(sources, path, tree).findings() if one.key not in without]
    return found, apply_findings(sources, found)


def is_typed(sources: Sources) -> bool:
    """Whether at least half of the project's functions have types."""
    counted = [
        function.typed
        for path, outline in sources.outlines.items()
        if is_public_file(path)
        for function in outline.functions.values()
    ]
    return len(counted) >= FEWEST and 2 * sum(counted) >= len(counted)


def writes_init_none(sources: Sources) -> bool:
    """Whether the project writes `-> None` at most of its `__init__` methods."""
    made = [
        function.returns
        for outline in sources.outlines.values()
        for name, function in outline.functions.items()
        if name.endswith(".__init__")
    ]
    return 2 * sum(made) > len(made)


def writes_results(sources: Sources, path: str) -> bool:
    """Whether at least half of a file's functions state their result; in a small file, half of the project's.

    A file whose author types parameters alone, or nothing, is not to get the type of every other function.
    """
    own = _results(sources.outlines[path])
    if len(own) < FEWEST:
        own = [each for file, outline in sources.outlines.items() if is_public_file(file) for each in _results(outline)]
    return 2 * sum(own) >= len(own)


def _results(outline: Outline) -> list[bool]:
    """For each function but `__init__`, whether its result has a type."""
    return [each.returns for name, each in outline.functions.items() if not name.endswith(".__init__")]


@dataclass(frozen=True)
class _Reader:
    """Reads the functions of one file."""

    sources: Sources
    path: str
    tree: ast.Module
    text: str
    outline: Outline
    modern: bool
    """Whether annotations are not evaluated, or `X | None` is valid where they are."""
    lists: bool
    """Whether `list[str]` is valid in an annotation."""

    @classmethod
    def of(cls, sources: Sources, path: str, tree: ast.Module) -> _Reader:
        text, oldest = sources.text(path), oldest_python(sources) or (3, 0)
        future = "annotations" in re.findall(r"(?m)^from __future__ import .*?\b(annotations)\b", text)
        outline = outline_of(sources.files[path])
        return cls(sources, path, tree, text, outline, future or oldest >= (3, 10), future or oldest >= (3, 9))

    def findings(self) -> Iterator[Finding]:
        with_results = writes_results(self.sources, self.path)
        for owner, function in _functions(self.tree):
            types = self._types(owner, function)
            if not types or self._is_left(owner, function) or (function.returns is None and not with_results):
                continue
            edit = insert_types(self.path, self.text, function, types)
            if edit is None:
                continue
            name = f"{owner.name}.{function.name}" if owner else function.name
            said = ", ".join(f"`-> {kind}`" if one == "return" else f"`{one}: {kind}`" for one, kind in types)
            why = "every `return` and default proves it"
            last = function.end_lineno or function.lineno
            yield Finding(name, self.path, function.lineno, f"`{name}` lacks {said}", why, (edit,), last)

    def _types(self, owner: ast.ClassDef | None, function: Function) -> list[tuple[str, str]]:
        """The missing types of a signature, all of them; empty if one is not certain, or none is missing."""
        given = function.args
        own = _own_parameters(owner, function)
        stars = [star for star in (given.vararg, given.kwarg) if star]
        defaults = _defaults(given)
        types: list[tuple[str, str]] = []
        for place, one in enumerate(own):
            if one.annotation is None:
                kind = SPECIAL_PARAMETERS.get((function.name, place)) if owner else None
                kind = kind or self._by_default(function, one.arg, defaults.get(one.arg))
                if kind is None:
                    return []
                types.append((one.arg, kind))
        if any(star.annotation is None for star in stars):
            return []
        if function.returns is None:
            result = self._result(owner, function, dict(types))
            if result is None:
                return []
            types.append(("return", result))
        return types

    def _by_default(self, function: Function, name: str, default: ast.expr | None) -> str | None:
        """The type of a parameter by its default: a flag or a text, if nothing ever passes None."""
        if not isinstance(default, ast.Constant) or type(default.value) not in (bool, str, bytes):
            return None
        body = " ".join(ast.unparse(each) for each in function.body)
        tested = rf"isinstance\(\s*{name}\b|\b{name} is (?:not )?None|\b{name} == None|\b{name}\s*=[^=]"
        if re.search(tested, body):
            return None
        given = re.compile(rf"\b{name}\s*=\s*None\b")
        if any(given.search(self.sources.text(path)) for path in self.sources.outlines):
            return None
        return type(default.value).__name__

    def _result(self, owner: ast.ClassDef | None, function: Function, types: dict[str, str]) -> str | None:
        if owner and function.name in SPECIAL:
            return SPECIAL[function.name]
        nodes = list(own_nodes(function))
        if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes):
            return None
        known = self._known(owner, function, types, nodes)
        returns = [node for node in nodes if isinstance(node, ast.Return)]
        found = {infer(node.value, known) if node.value else "None" for node in returns}
        if not returns and ends(function.body):
            return None
        found |= set() if ends(function.body) else {"None"}
        kinds = sorted(kind for kind in found if kind and kind != "None")
        if None in found or len(kinds) > 1 or (kinds and kinds[0].startswith("list[") and not self.lists):
            return None
        if not kinds:
            return "None"
        return self._or_none(kinds[0]) if "None" in found else kinds[0]

    def _or_none(self, kind: str) -> str | None:
        if self.modern and '"' not in kind:
            return f"{kind} | None"
        has = re.search(r"(?m)^from typing import [^\n]*\bOptional\b|^ {4}Optional,$", self.text)
        return f"Optional[{kind}]" if has else None

    def _known(
        self, owner: ast.ClassDef | None, function: Function, types: dict[str, str], nodes: Sequence[ast.AST]
    ) -> Known:
        stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        names = {one.arg: ast.unparse(one.annotation) for one in given if one.annotation}
        names = {name: kind for name, kind in (names | types).items() if kind in PLAIN and name not in stored}
        unknown = {one.arg for one in given} | set(stored)
        classes = {
            name: self._named(name, function)
            for name, each in self.outline.classes.items()
            if each.is_plain and "__new__" not in each.methods and not any("[" in base for base in each.bases)
        }
        classes = {name: kind for name, kind in classes.items() if name not in unknown}
        return Known(names, classes, self.outline.names | unknown)

    def _named(self, name: str, function: Function) -> str:
        """A class as an annotation: in quotes if it does not exist yet when the function is defined."""
        lines = [node.end_lineno for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name]
        exists = bool(lines) and (lines[0] or 0) < function.lineno
        future = re.search(r"(?m)^from __future__ import .*\bannotations\b", self.text)
        return name if exists or future else f'"{name}"'

    def _is_left(self, owner: ast.ClassDef | None, function: Function) -> bool:
        marks = {ast.unparse(mark).split("(")[0].rpartition(".")[2] for mark in function.decorator_list}
        if function.name in DYNAMIC or marks & LEFT or _is_hook(function):
            return True
        if _is_overloaded((owner or self.tree).body, function):
            return True
        if "type:" in "".join(LINE.findall(self.text)[function.lineno - 1 :][:1]):
            return True
        if function.name == "__init__" and not writes_init_none(self.sources):
            return True
        if owner is None or function.name in SPECIAL:
            return False
        # A method that subclasses replace may return something else there, and so may the one that it replaces.
        replaced = any(
            owner.name in [base.rpartition(".")[2] for base in each.bases] and function.name in each.methods
            for known in self.sources.classes.values()
            for each in known
        )
        bases = [ast.unparse(base).rpartition(".")[2] for base in owner.bases]
        above = [
            outline.functions.get(f"{base}.{function.name}")
            for outline in self.sources.outlines.values()
            for base in bases
        ]
        return replaced or any(one is not None and not one.returns for one in above)


def _functions(tree: ast.Module) -> Iterator[tuple[ast.ClassDef | None, Function]]:
    """The functions of a module and the methods of its classes."""
    for node in tree.body:
        if isinstance(node, Function):
            yield None, node
        elif isinstance(node, ast.ClassDef):
            yield from ((node, each) for each in node.body if isinstance(each, Function))


def _own_parameters(owner: ast.ClassDef | None, function: Function) -> list[ast.arg]:
    """The parameters without `self` and `cls`."""
    every = [*function.args.posonlyargs, *function.args.args]
    static = any(ast.unparse(mark) == "staticmethod" for mark in function.decorator_list)
    return [*(every[1:] if owner and not static else every), *function.args.kwonlyargs]


def _defaults(given: ast.arguments) -> dict[str, ast.expr]:
    every = [*given.posonlyargs, *given.args]
    pairs = [*zip(every[len(every) - len(given.defaults) :], given.defaults, strict=True)]
    pairs += [(one, value) for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
    return {one.arg: value for one, value in pairs}


def _is_hook(function: Function) -> bool:
    """Whether the body does nothing or is not implemented: others decide what it returns."""
    body = [each for each in function.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if not body or all(isinstance(each, ast.Pass) for each in body):
        return function.name not in ("__init__", "__post_init__")
    return any("NotImplemented" in ast.unparse(each) for each in body if isinstance(each, ast.Raise | ast.Return))


def _is_overloaded(body: Sequence[ast.stmt], function: Function) -> bool:
    """Whether others of its name say what callers see: their types would have to be completed together."""
    beside = [one for one in body if isinstance(one, Function) and one.name == function.name]
    return any(ast.unparse(mark).rpartition(".")[2] == "overload" for one in beside for mark in one.decorator_list)
