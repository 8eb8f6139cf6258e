"""The other way to the same fields: Python's own `ast`, one pass over the tree, nothing kept."""

from __future__ import annotations

import ast
import warnings
from hashlib import sha256
from typing import Any

from remora.discovery import NodeFacts

BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.match_case)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef)


class Pass:
    """One file."""

    def __init__(self, source: bytes) -> None:
        self._text = source.decode()
        self._lines = self._text.splitlines(keepends=True)
        self.nodes: list[NodeFacts] = []
        self.imports: dict[str, str] = {}
        self.typed: dict[str, str] = {}

    def run(self) -> list[NodeFacts]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(self._text)
        self._scope(tree, "", "file")
        return self.nodes

    def _scope(self, node: Any, qualified: str, kind: str) -> None:
        """A definition and what stands in it; those inside it are looked at afterwards, each on its own."""
        own = _Own(self)
        place = len(self.nodes)
        inner: list[Any] = []
        for child in ast.iter_child_nodes(node):
            if child not in getattr(node, "decorator_list", ()):
                own.visit(child, inner)
        if kind == "file":
            self.typed = own.typed
        self.nodes.insert(place, self._facts(node, qualified, kind, own))
        for each in inner:
            name = f"{qualified}.{each.name}" if qualified else each.name
            in_class = kind == "class"
            self._scope(each, name, "class" if isinstance(each, ast.ClassDef) else "method" if in_class else "function")

    def _facts(self, node: Any, qualified: str, kind: str, own: _Own) -> NodeFacts:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(item.lineno for item in decorators)]) if kind != "file" else 1
        last = node.end_lineno if kind != "file" else len(self._lines)
        source = "".join(self._lines[first - 1 : last])
        doc = ast.get_docstring(node, clean=False)
        return NodeFacts(
            qualified,
            kind,
            first,
            sha256(source.encode()).hexdigest(),
            self._signature(node, kind),
            None if doc is None else next((line.strip() for line in doc.splitlines() if line.strip()), ""),
            tuple(ast.unparse(item) for item in decorators),
            tuple(dict.fromkeys(own.calls)),
            tuple(dict.fromkeys(own.raises)),
            tuple(dict.fromkeys(own.imports)),
            last - first + 1,
            own.branches + 1,
            _coverage(node, kind),
        )

    def _signature(self, node: Any, kind: str) -> str:
        if kind == "file":
            return ""
        if kind == "class":
            bases = ", ".join(map(ast.unparse, [*node.bases, *node.keywords]))
            return f"class {node.name}({bases})" if bases else f"class {node.name}"
        word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"{word} {node.name}({ast.unparse(node.args)}){returns}"


class _Own:
    """What belongs to one scope."""

    def __init__(self, file: Pass) -> None:
        self._file = file
        self.calls: list[str] = []
        self.raises: list[str] = []
        self.imports: list[str] = []
        self.typed = dict(file.typed)
        self.branches = 0

    def visit(self, node: ast.AST, inner: list[Any]) -> None:
        waiting = [node]
        while waiting:
            here = waiting.pop()
            if isinstance(here, SCOPES):
                inner.append(here)
                waiting += here.decorator_list
                continue
            self._take(here)
            waiting += list(ast.iter_child_nodes(here))[::-1]

    def _take(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            if name := _dotted(node.func):
                first, dot, rest = name.partition(".")
                self.calls.append(f"{self.typed[first]}.{rest}" if dot and first in self.typed else name)
        elif isinstance(node, BRANCHES):
            self.branches += 1 + (getattr(node, "guard", None) is not None)
        elif isinstance(node, ast.BoolOp):
            self.branches += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            self.branches += 1 + len(node.ifs)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            if name := _dotted(node.exc.func if isinstance(node.exc, ast.Call) else node.exc):
                self.raises.append(name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                self.imports.append(alias.name)
                self._file.imports[alias.asname or alias.name.partition(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self.imports.append(f"{'.' * node.level}{node.module or ''}.{alias.name}")
                self._file.imports[alias.asname or alias.name] = self.imports[-1]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            kind = _dotted(node.value.func)
            if isinstance(node.targets[0], ast.Name) and kind.rpartition(".")[2][:1].isupper():
                self.typed[node.targets[0].id] = kind
        elif isinstance(node, ast.arg) and node.annotation is not None and (kind := _dotted(node.annotation)):
            self.typed[node.arg] = kind


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _coverage(node: Any, kind: str) -> float:
    if kind in ("file", "class"):
        return 1.0
    arguments = node.args
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    found += [item for item in (arguments.vararg, arguments.kwarg) if item]
    own = kind == "method" and bool(found) and found[0].annotation is None
    typed = sum(item.annotation is not None for item in found) + (node.returns is not None)
    return round(typed / (len(found) - own + 1), 2)
