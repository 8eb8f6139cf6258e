"""Docstring tasks: docstrings that are missing, tell of other parameters, or are complete and must stay as they are."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.tasks._bank import Piece, Target, modules
from benchmarks.tasks._projects import drawn, neighbours, source
from remora_lab.bench.tasks import DocstringCheck, Half, Level, Task

STATES = ("missing", "outdated", "missing", "complete", "missing", "outdated", "missing", "outdated")
IN_FUNCTIONS = 22
IN_CLASSES = 4
FORMER = {"train": ("colour", "verbose", "handler"), "eval": ("locale", "strictness", "callback")}
"""Parameters that there once were."""
FORMERLY = {"train": "Was used by the first version.", "eval": "Left over from an older release."}


@dataclass(frozen=True)
class Doc:
    """A docstring by its parts."""

    summary: str
    args: tuple[tuple[str, str], ...]
    returns: str
    raises: tuple[tuple[str, str], ...]

    def written(self, style: str) -> str:
        return {"google": self._google, "numpy": self._numpy, "sphinx": self._sphinx}[style]()

    def _google(self) -> str:
        args = ["Args:", *(f"    {name}: {text}" for name, text in self.args)] if self.args else []
        raises = ["Raises:", *(f"    {name}: {text}" for name, text in self.raises)] if self.raises else []
        blocks = [[self.summary], args, ["Returns:", f"    {self.returns}"] if self.returns else [], raises]
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def _numpy(self) -> str:
        args = [line for name, text in self.args for line in (name, f"    {text}")]
        raises = [line for name, text in self.raises for line in (name, f"    {text}")]
        blocks = [
            [self.summary],
            ["Parameters", "----------", *args] if args else [],
            ["Returns", "-------", "object", f"    {self.returns}"] if self.returns else [],
            ["Raises", "------", *raises] if raises else [],
        ]
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def _sphinx(self) -> str:
        fields = [f":param {name}: {text}" for name, text in self.args]
        fields += [f":returns: {self.returns}"] if self.returns else []
        fields += [f":raises {name}: {text}" for name, text in self.raises]
        return "\n".join([self.summary, "", *fields])


def doc_of(node: ast.FunctionDef) -> Doc:
    """The parts of a docstring of the bank."""
    parts = re.split(r"\n\n(?=Args:|Returns:|Raises:)", ast.get_docstring(node) or "")
    named = {part.partition(":\n")[0]: part.partition(":\n")[2] for part in parts[1:]}
    pairs = {
        key: tuple((name, text) for name, text in re.findall(r"(?m)^    (\w+): (.*)$", named.get(key, "")))
        for key in ("Args", "Raises")
    }
    return Doc(parts[0], pairs["Args"], named.get("Returns", "").strip(), pairs["Raises"])


def docstring_tasks(half: Half, draw: random.Random) -> Iterator[Task]:
    """The docstring tasks of one half."""
    targets = [target for module in modules(half) for target in module.targets]
    draw.shuffle(targets)
    methods = [target for target in targets if "." in target.name]
    chosen = [*methods[:3], *(target for target in targets if "." not in target.name)]
    for number, target in enumerate(chosen[:IN_FUNCTIONS]):
        yield _about(target, STATES[number % len(STATES)], number, draw)
    for number, piece in enumerate(_classes(half, draw)):
        yield _about_class(half, piece, number, draw)


def _about(target: Target, state: str, number: int, draw: random.Random) -> Task:
    style = "google" if state == "missing" else ("google", "sphinx", "numpy")[number % 3]
    doc = doc_of(target.node)
    shown = _outdated(doc, target.module.half, draw) if state == "outdated" else doc
    project = drawn(target.module, draw)
    pieces = target.module.kept(neighbours(target.module, target.owner, draw, most=3))
    piece = next(each for each in pieces if each.name == target.owner)
    text = _replaced(piece, target.node, None if state == "missing" else shown.written(style))
    check = DocstringCheck(
        parameters=tuple(each.arg for each in target.parameters),
        returns=True,
        raises=target.raises,
        unchanged=state == "complete",
    )
    return Task(
        id=f"{target.module.half}-docstring-{number:03d}",
        operation="docstring",
        half=target.module.half,
        level=_level(target, state),
        origin="generated",
        files=project.files(source(target.module, pieces, {target.owner: text})),
        path=project.path,
        node=target.name,
        check=check,
        solution={"summary": doc.summary},
    )


def _level(target: Target, state: str) -> Level:
    if state == "outdated" or "." in target.name:
        return "hard"
    return "easy" if len(target.parameters) < 3 and not target.raises else "medium"


def _outdated(doc: Doc, half: Half, draw: random.Random) -> Doc:
    """The docstring as it was before the signature changed."""
    args = list(doc.args)
    former = draw.choice(FORMER[half])
    args.insert(draw.randrange(len(args) + 1), (former, FORMERLY[half]))
    return replace(doc, args=tuple(args))


def _replaced(piece: Piece, node: ast.FunctionDef | ast.ClassDef, doc: str | None) -> str:
    """The piece with another docstring in this definition, or with none."""
    lines = piece.text.split("\n")
    top = piece.node.lineno - (1 if piece.text.startswith("@") else 0)
    old = node.body[0]
    indent = " " * old.col_offset
    new = [] if doc is None else _quoted(doc, indent)
    after = (old.end_lineno or 0) - top + 1
    while doc is None and after < len(lines) and not lines[after].strip():
        after += 1
    lines[old.lineno - top : after] = new
    return "\n".join(lines)


def _quoted(doc: str, indent: str) -> list[str]:
    lines = [indent + line if line else "" for line in doc.split("\n")]
    if len(lines) == 1:
        return [f'{indent}"""{doc}"""']
    return [f'{indent}"""{doc.partition(chr(10))[0]}', *lines[1:], f'{indent}"""']


def _classes(half: Half, draw: random.Random) -> list[tuple]:  # type: ignore[type-arg]
    found = [
        (module, piece)
        for module in modules(half)
        for piece in module.pieces
        if isinstance(piece.node, ast.ClassDef) and not piece.node.name.endswith("Error")
    ]
    return draw.sample(found, k=IN_CLASSES)


def _about_class(half: Half, found: tuple, number: int, draw: random.Random) -> Task:  # type: ignore[type-arg]
    module, piece = found
    project = drawn(module, draw)
    pieces = module.kept(neighbours(module, piece.name, draw))
    leave = number == IN_CLASSES - 1
    texts = {} if leave else {piece.name: _replaced(piece, piece.node, None)}
    return Task(
        id=f"{half}-docstring-class-{number:03d}",
        operation="docstring",
        half=half,
        level="easy",
        origin="generated",
        files=project.files(source(module, pieces, texts)),
        path=project.path,
        node=piece.name,
        check=DocstringCheck(unchanged=leave),
        solution={"summary": ast.get_docstring(piece.node)},
    )
