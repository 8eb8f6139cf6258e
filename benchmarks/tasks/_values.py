"""Running the bank's code: what its cases come to, and which changes of it they notice."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import signal
import sys
import types
from datetime import date
from typing import Any

import pytest

from benchmarks.tasks._bank import Module, Target
from benchmarks.tasks._projects import source
from remora_lab.bench.tasks import Mutant

CHANGES = (
    (r" <= ", " < "), (r" < ", " <= "), (r" >= ", " > "), (r" > ", " >= "), (r" == ", " != "), (r" \+ ", " - "),
    (r" - ", " + "), (r" \* ", " + "), (r" // ", " * "), (r" and ", " or "), (r" or ", " and "), (r"\bnot ", ""),
    (r" % ", " // "), (r"\bmin\(", "max("), (r"\bmax\(", "min("), (r"\+=", "-="), (r"-=", "+="),
    (r" is None", " is not None"), (r"\[0\]", "[-1]"), (r"\b(\d+)\b", lambda found: str(int(found[1]) + 1)),
    (r"\.lower\(\)", ".upper()"), (r" else ", " if True else "), (r"True", "False"), (r"False", "True"),
)  # fmt: skip
"""Changes of one place in a line."""
MOST = 3
SECONDS = 2


def loaded(module: Module, text: str) -> dict[str, Any]:
    """The names of a module with this text."""
    name = f"remora_bank_{module.name}"
    made = types.ModuleType(name)
    sys.modules[name] = made
    exec(compile(text, name, "exec"), made.__dict__)  # noqa: S102 - the bank is ours
    return made.__dict__


def holds(target: Target, text: str) -> bool:
    """Whether everything that the bank says of the target is true of this text."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        space = dict(loaded(target.module, text))
        exec(target.behaviour("builtins").replace("from builtins import *  # noqa: F403", ""), space)  # noqa: S102
        for name in [name for name in space if re.fullmatch(r"test_\d+", name)]:
            space[name]()
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - a changed function may raise anything
        return False
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return True


def mutants(target: Target, text: str, path: str) -> tuple[Mutant, ...]:
    """Changes of the target that its cases notice, spread over its lines."""
    if not holds(target, text):
        raise AssertionError(f"the bank's cases of `{target.name}` do not hold")
    lines = text.split("\n")
    first = next(row for row, line in enumerate(lines) if re.match(rf"\s*def {target.node.name}\(", line))
    rows = range(
        first + (target.node.body[0].end_lineno or 0) - target.node.lineno + 1,
        first + (target.node.end_lineno or 0) - target.node.lineno + 1,
    )
    found = [mutant for row in rows for mutant in _changed(target, lines, row, path)]
    step = max(1, len(found) // MOST)
    return tuple(found[::step][:MOST])


def _changed(target: Target, lines: list[str], row: int, path: str) -> list[Mutant]:
    """The noticed changes of this line, two at most; none where the line stands twice."""
    line, found = lines[row], []
    if "\n".join(lines).count(line) != 1 or line.strip().startswith(("raise", "while", "@")):
        return []
    for pattern, new in CHANGES:
        made = re.sub(pattern, new, line, count=1)
        if made != line and _runs(target, lines, row, made) and not holds(target, _with(lines, row, made)):
            found.append(Mutant(path=path, old=line, new=made))
    return found[:2]


def _with(lines: list[str], row: int, made: str) -> str:
    return "\n".join([*lines[:row], made, *lines[row + 1 :]])


def _runs(target: Target, lines: list[str], row: int, made: str) -> bool:
    """Whether the change is still Python that can be imported."""
    try:
        loaded(target.module, _with(lines, row, made))
    except Exception:  # noqa: BLE001 - whatever it is, it is no mutant
        return False
    return True


def arguments(target: Target) -> list[dict[str, Any]]:
    """The arguments of the cases that return something, as JSON has them."""
    space = loaded(target.module, source(target.module, target.module.pieces))
    found = []
    for case in target.cases:
        given, _, expected = case.rpartition(" -> ")
        if not expected.startswith("raises "):
            taken = eval(f"(lambda *given: given)({given})", dict(space))  # noqa: S307 - the bank is ours
            bound = inspect.signature(space[target.name]).bind(*taken)
            found.append({name: _json(value) for name, value in bound.arguments.items()})
    return found


def _json(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {each.name: _json(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _json(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(_json, value))
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value
