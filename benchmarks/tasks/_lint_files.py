"""Lint tasks about a file: its imports, classes and constants."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from benchmarks.tasks._bank import Module, Piece, modules
from benchmarks.tasks._lint import BASE, half_of, level_of
from benchmarks.tasks._projects import drawn, source
from remora_lab.bench.tasks import Half, LintCheck, Task

IN_FILES = 11
"""Tasks of one half that are about a file."""
UNUSED = {"train": ("json", "os", "sys", "time"), "eval": ("csv", "glob", "shutil", "uuid")}


def file_tasks(half: Half, draw: random.Random) -> Iterator[Task]:
    """Tasks about what stands outside functions."""
    mixes: set[frozenset[str]] = set()
    found = modules(half)
    for number in range(IN_FILES):
        made = None
        for attempt in range(400):
            module = found[(number + attempt) % len(found)]
            made = _attempt(half, module, 1 + (number + attempt) % 4, draw, number, mixes)
            if made:
                break
        if made is None:
            raise LookupError(f"no mix of codes is left for files of `{half}`")
        yield made


def _attempt(
    half: Half, module: Module, size: int, draw: random.Random, number: int, mixes: set[frozenset[str]]
) -> Task | None:
    names = [each.name for each in module.pieces if each.is_function]
    classes = [each.name for each in module.pieces if not each.is_function]
    pieces = module.kept({*draw.sample(names, k=draw.randint(1, 3)), *classes[:2]})
    text = source(module, pieces)
    edits: list[dict[str, object]] = []
    codes = []
    for code in draw.sample(sorted(WAYS), k=len(WAYS)):
        spoilt = WAYS[code](text, half, draw) if len(codes) < size else None
        if spoilt:
            text, edit = spoilt
            codes.append(code)
            edits += [{"code": code, **edit}] if edit else []
    mix = frozenset(codes)
    if len(codes) != size or mix in mixes or half_of(sorted(mix)) != half:
        return None
    mixes.add(mix)
    return _task(half, module, pieces, text, sorted(codes), edits, number, draw)


def _task(
    half: Half,
    module: Module,
    pieces: tuple[Piece, ...],
    text: str,
    codes: list[str],
    edits: list[dict[str, object]],
    number: int,
    draw: random.Random,
) -> Task:
    project = drawn(module, draw)
    kept = {each.name for each in pieces}
    tests = [target.behaviour(project.importable) for target in module.targets if target.owner in kept]
    behaviour = "\n".join(test.replace("def test_", f"def test_{place}_") for place, test in enumerate(tests))
    rules = (*BASE, *sorted({"UP", "ERA", "T20", "Q", *draw.sample(("B", "C4", "PIE", "SIM"), k=2)}))
    return Task(
        id=f"{half}-lint-file-{number:03d}",
        operation="lint",
        half=half,
        level=level_of(codes, ()),
        origin="generated",
        files=project.files(text, rules),
        path=project.path,
        check=LintCheck(gone=tuple(codes), behaviour=behaviour),
        solution={"edits": edits, "leave": []},
    )


def _import_rows(lines: list[str]) -> list[int]:
    begins = ("import ", "from ")
    return [row for row, line in enumerate(lines) if line.startswith(begins) and "__future__" not in line]


def _unused_import(text: str, half: Half, draw: random.Random) -> tuple[str, dict[str, object]] | None:
    name = draw.choice(UNUSED[half])
    lines = text.split("\n")
    places = _import_rows(lines)
    if not places:
        return None
    straight = [row for row in places if lines[row].startswith("import ") and lines[row] < f"import {name}"]
    row = straight[-1] + 1 if straight else places[0]
    return "\n".join([*lines[:row], f"import {name}", *lines[row:]]), {}


def _unsorted_imports(text: str, half: Half, draw: random.Random) -> tuple[str, dict[str, object]] | None:
    lines = text.split("\n")
    places = _import_rows(lines)
    if len(places) < 2:
        return None
    first, second = places[-2:]
    lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines), {}


def _class_line(new: str):  # type: ignore[no-untyped-def]
    def spoil(text: str, half: Half, draw: random.Random) -> tuple[str, dict[str, object]] | None:
        made = re.sub(r"(?m)^(class \w+):$", new, text, count=1)
        return (made, {}) if made != text else None

    return spoil


def _coding(text: str, half: Half, draw: random.Random) -> tuple[str, dict[str, object]] | None:
    return "# -*- coding: utf-8 -*-\n" + text, {}


def _optional(text: str, half: Half, draw: random.Random) -> tuple[str, dict[str, object]] | None:
    if not re.search(r"(?m)^    \w+: \w+ \| None = None$", text):
        return None
    made = re.sub(r"(?m)^(    \w+): (\w+) \| None = None$", r"\1: Optional[\2] = None", text)
    lines = made.split("\n")
    places = _import_rows(lines)
    row = places[-1] + 1
    return "\n".join([*lines[:row], "from typing import Optional", *lines[row:]]), {}


def _line_added(made: dict[str, str]):  # type: ignore[no-untyped-def]
    """Puts a line after the imports, which a good edit takes away."""

    def spoil(text: str, half: Half, draw: random.Random) -> tuple[str, dict[str, object]] | None:
        lines = text.split("\n")
        constants = [row for row, line in enumerate(lines) if re.match(r"[A-Z_]+ = ", line)]
        if not constants:
            return None
        row = constants[-1] + 1
        return "\n".join([*lines[:row], made[half], *lines[row:]]), {"bad": [made[half]], "good": []}

    return spoil


def _semicolon(text: str, half: Half, draw: random.Random) -> tuple[str, dict[str, object]] | None:
    made = re.sub(r"(?m)^([A-Z_]+ = [\w. *()\"]+)$", r"\1;", text, count=1)
    return (made, {}) if made != text else None


def _quotes(text: str, half: Half, draw: random.Random) -> tuple[str, dict[str, object]] | None:
    made = re.sub(r'(?m)^(    [A-Z]+ = )"(\w+)"$', r"\1'\2'", text, count=1)
    return (made, {}) if made != text else None


WAYS = {
    "E703": _semicolon,
    "ERA001": _line_added({"train": "# VERSION = (1, 2)", "eval": "# DEBUG = False"}),
    "F401": _unused_import,
    "I001": _unsorted_imports,
    "Q000": _quotes,
    "T201": _line_added({"train": 'print("loaded")', "eval": "print(__name__)"}),
    "UP004": _class_line(r"\1(object):"),
    "UP009": _coding,
    "UP039": _class_line(r"\1():"),
    "UP045": _optional,
}
"""By rule code, how it gets into a file outside its functions."""
