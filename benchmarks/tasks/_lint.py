"""Lint tasks: sound functions and files of the bank, spoilt in one or several ways."""

from __future__ import annotations

import ast
import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.tasks._bank import Target, modules
from benchmarks.tasks._defects import BODY, FIXED_BY_RUFF, Place, Spoilt, message_named
from benchmarks.tasks._projects import drawn, neighbours, source
from remora_lab.bench.tasks import Half, Level, LintCheck, Task

BASE = ("E", "F", "W", "I")
FAMILIES = ("B", "C4", "ERA", "ISC", "PIE", "PLW", "Q", "RET", "RUF", "SIM", "T20", "UP")
"""Rules that the bank's code satisfies as it stands."""
WITHIN = {"C408": "C4", "C414": "C4", "T201": "T20"}
STAYING = {
    "FBT001": "",
    "FBT002": "",
    "PLR0913": "\n[tool.ruff.lint.pylint]\nmax-args = 2\n",
    "PLR0911": "\n[tool.ruff.lint.pylint]\nmax-returns = 2\n",
}
"""Codes that can only be mended by changing what callers rely on, or the whole function; and their settings."""
IN_BODY = 40
"""Tasks of one half that are about a function or method."""


@dataclass(frozen=True)
class Choice:
    """A defect at its place in a function's lines."""

    code: str
    index: int
    spoilt: Spoilt

    @property
    def rows(self) -> range:
        return range(self.index, self.index + max(1, self.spoilt.old))


def half_of(codes: Sequence[str]) -> Half:
    """The one half in which this mix of codes may occur."""
    digest = hashlib.sha256(",".join(sorted(codes)).encode()).digest()
    return "train" if digest[0] % 2 else "eval"


def body_tasks(half: Half, draw: random.Random, *, leaving: bool = False) -> Iterator[Task]:
    """Tasks about one function or method each. With `leaving`, every other one has errors that are left to people."""
    targets = [target for module in modules(half) for target in module.targets]
    draw.shuffle(targets)
    left = [target for target in targets if _staying(target)]
    used: Counter[str] = Counter()
    mixes: set[frozenset[str]] = set()
    for number in range(IN_BODY):
        sizes = (1, 2, 3, 2, 4, 1, 3, 2, 5, 3)
        leaves = number % 2 == 1 if leaving else number % 5 == 4
        among = left if leaving and leaves else targets
        yield _body_task(half, among, number, sizes[number % 10], draw, used, mixes, leaves=leaves)


def _body_task(
    half: Half,
    targets: list[Target],
    number: int,
    size: int,
    draw: random.Random,
    used: Counter[str],
    mixes: set[frozenset[str]],
    *,
    leaves: bool,
) -> Task:
    """The next task that fits: its mix of codes is this half's and new, and its codes are the rarer ones."""
    for place in range(len(targets)):
        target = targets[(number + place) % len(targets)]
        staying = _staying(target) if leaves else ()
        for _ in range(12):
            chosen = _chosen(_choices(target), size, draw, used)
            mix = frozenset([*(each.code for each in chosen), *staying])
            if chosen and len(mix) >= min(size, 3) and mix not in mixes and half_of(sorted(mix)) == half:
                mixes.add(mix)
                used.update(mix)
                return _spoilt_task(half, target, chosen, staying, number, draw)
    raise LookupError(f"no mix of {size} codes is left for `{half}`")


def _staying(target: Target) -> tuple[str, ...]:
    if any(ast.unparse(each.annotation) == "bool" for each in target.parameters if each.annotation):
        return ("FBT001", "FBT002")
    if sum(isinstance(each, ast.Return) for each in ast.walk(target.node)) > 2:
        return ("PLR0911",)
    return ("PLR0913",) if len(target.parameters) > 2 else ()


def _choices(target: Target) -> list[Choice]:
    lines, first = _lines(target)
    annotated = {each.arg: ast.unparse(each.annotation) for each in target.parameters if each.annotation}
    booleans = frozenset(name for name, kind in annotated.items() if kind == "bool")
    mappings = {name for name, kind in annotated.items() if kind.startswith("dict[")}
    mappings |= {match[1] for line in lines if (match := re.match(r"\s+(\w+): dict\[", line))}
    local = next(iter(annotated), "")
    found = []
    for index in range(first, len(lines)):
        place = Place(lines, index, booleans, frozenset(mappings), local)
        for code, ways in BODY.items():
            made = [spoilt for way in ways if (spoilt := way(place))]
            found += [Choice(code, index, spoilt) for spoilt in made]
    return found


def _lines(target: Target) -> tuple[list[str], int]:
    """The lines of the function itself, and the index of the first after its docstring."""
    piece = next(each for each in target.module.pieces if each.name == target.owner)
    top = piece.node.lineno
    lines = piece.text.split("\n")[target.node.lineno - top : (target.node.end_lineno or 0) - top + 1]
    return lines, (target.node.body[0].end_lineno or 0) - target.node.lineno + 1


def _chosen(choices: list[Choice], size: int, draw: random.Random, used: Counter[str]) -> tuple[Choice, ...]:
    """Up to `size` codes whose lines do not meet; codes that were used less come sooner."""
    shuffled = sorted(choices, key=lambda each: 2 * used[each.code] + draw.random() * 4)
    kept: list[Choice] = []
    for each in shuffled:
        rows = {row for other in kept for row in range(other.rows.start - 1, other.rows.stop + 1)}
        if len(kept) < size and each.code not in {other.code for other in kept} and not rows & set(each.rows):
            kept.append(each)
    # Messages in exceptions are found wherever they stand, so all of them belong to the task.
    extra = [each for each in choices if each.code in {other.code for other in kept} & {"EM101", "EM102"}]
    kept += [each for each in extra if each not in kept]
    taken = Counter(row for each in kept for row in each.rows)
    return tuple(sorted(kept, key=lambda each: each.index)) if max(taken.values(), default=1) == 1 else ()


def _spoilt_task(
    half: Half, target: Target, chosen: tuple[Choice, ...], staying: tuple[str, ...], number: int, draw: random.Random
) -> Task:
    lines, _ = _lines(target)
    edits = []
    for each in reversed(chosen):
        old = lines[each.index : each.index + each.spoilt.old]
        lines[each.index : each.index + each.spoilt.old] = each.spoilt.new
        edits.append(_edit(each, old))
    codes = tuple(dict.fromkeys(each.code for each in chosen))
    project = drawn(target.module, draw)
    text = source(target.module, *_with(target, lines, draw))
    more = "".join(dict.fromkeys(STAYING[code] for code in staying))
    return Task(
        id=f"{half}-lint-{number:03d}",
        operation="lint",
        half=half,
        level=level_of(codes, staying),
        origin="generated",
        files=project.files(text, _rules(codes, staying, draw), more),
        path=project.path,
        node=target.name,
        check=LintCheck(gone=codes, stays=staying, behaviour=target.behaviour(project.importable)),
        solution={"edits": edits[::-1], "leave": list(staying)},
    )


def _edit(choice: Choice, old: list[str]) -> dict[str, object]:
    """What stands there, and what a good edit puts in its place: no more lines than it must."""
    bad, good = list(choice.spoilt.new), list(old)
    if choice.code.startswith("EM"):
        good = list(message_named(old[0]))
    while bad and good and bad[-1] == good[-1]:
        bad, good = bad[:-1], good[:-1]
    return {"code": choice.code, "bad": bad, "good": good}


def _with(target: Target, lines: list[str], draw: random.Random) -> tuple[tuple, dict[str, str]]:  # type: ignore[type-arg]
    """The pieces of the module around the target, and the target's own text."""
    pieces = target.module.kept(neighbours(target.module, target.owner, draw))
    piece = next(each for each in pieces if each.name == target.owner)
    text = piece.text.split("\n")
    top = target.node.lineno - piece.node.lineno
    text[top : (target.node.end_lineno or 0) - piece.node.lineno + 1] = lines
    return pieces, {target.owner: "\n".join(text)}


def _rules(codes: Sequence[str], staying: Sequence[str], draw: random.Random) -> tuple[str, ...]:
    """The rules of a project that minds these codes, and some more that it has no trouble with."""
    wanted = {_family(code) for code in codes} - {"E", "F", "W", "I"}
    extra = draw.sample(FAMILIES, k=draw.randint(0, 4))
    return (*BASE, *sorted({*wanted, *extra, *staying}))


def _family(code: str) -> str:
    if code.startswith("EM"):
        return code
    return WITHIN.get(code) or re.match(r"[A-Z]+", code)[0]  # type: ignore[index]


def level_of(codes: Sequence[str], staying: Sequence[str]) -> Level:
    by_hand = sum(code not in FIXED_BY_RUFF for code in codes)
    if by_hand == 0 and len(codes) <= 2 and not staying:
        return "easy"
    return "hard" if staying or by_hand > 1 or len(codes) > 3 else "medium"
