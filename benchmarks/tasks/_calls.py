"""Test and sample data tasks: functions of the bank as they are, to be called."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator

from benchmarks.tasks._bank import Target, modules
from benchmarks.tasks._projects import Project, drawn, neighbours, source
from benchmarks.tasks._values import arguments, mutants
from remora_lab.bench.tasks import Half, Level, SampleDataCheck, Task, TestCheck

TESTS = 31
SAMPLES = 19
FEWEST_MUTANTS = 2
SIMPLE = re.compile(r"(int|str|float|bool)( \| None)?")


def test_tasks(half: Half, draw: random.Random) -> Iterator[Task]:
    """Functions to cover with tests."""
    targets = [target for module in modules(half) for target in module.targets]
    draw.shuffle(targets)
    targets.sort(key=lambda target: "." not in target.name)
    made = 0
    for target in targets:
        project = drawn(target.module, draw)
        pieces = target.module.kept(neighbours(target.module, target.owner, draw))
        text = source(target.module, pieces)
        changes = mutants(target, text, project.path)
        if len(changes) >= FEWEST_MUTANTS and made < TESTS:
            files = {**project.files(text), **_other_tests(target, project, draw)}
            yield Task(
                id=f"{half}-test-{made:03d}",
                operation="test",
                half=half,
                level=_level(target),
                origin="generated",
                files=files,
                path=project.path,
                node=target.name,
                check=TestCheck(mutants=changes),
                solution={"body": _body(target, project.importable)}
                if target.checks
                else {"cases": list(target.cases)},
            )
            made += 1
    if made < TESTS:
        raise LookupError(f"only {made} functions of `{half}` can be tested")


def _body(target: Target, module: str) -> str:
    """Whole tests of a method."""
    parts = []
    for number, check in enumerate(target.checks, start=1):
        lines = check.replace("; ", "\n    ").replace("): ", "):\n        ")
        parts.append(f"def test_{target.node.name}_{number}():\n    {lines}")
    named = {name for check in target.checks for name in _names(check)}
    needed = sorted(named & {piece.name for piece in target.module.pieces})
    head = f"from {module} import {', '.join(needed)}"
    return "\n\n\n".join([head, *parts])


def _names(text: str) -> set[str]:
    return {each.id for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Name)}


def _other_tests(target: Target, project: Project, draw: random.Random) -> dict[str, str]:
    """Sometimes a folder of tests is there, with tests of something else."""
    if draw.randrange(5) < 3:
        return {}
    text = f"import {project.importable}\n\n\ndef test_there_is_a_module():\n    assert {project.importable}.__doc__\n"
    return {f"tests/test_{target.module.package}.py": text}


def _level(target: Target) -> Level:
    kinds = [ast.unparse(each.annotation) for each in target.parameters if each.annotation]
    simple = all(SIMPLE.fullmatch(kind) for kind in kinds)
    if "." in target.name or (target.raises and not simple):
        return "hard"
    return "easy" if simple and len(kinds) < 3 else "medium"


def sample_tasks(half: Half, draw: random.Random) -> Iterator[Task]:
    """Functions that want sample arguments: those with more than plain values first."""
    targets = [target for module in modules(half) for target in module.targets if len(_good(target)) > 1]
    draw.shuffle(targets)
    targets.sort(key=lambda target: _level(target) == "easy")
    for number, target in enumerate(targets[:SAMPLES]):
        project = drawn(target.module, draw)
        pieces = target.module.kept(neighbours(target.module, target.owner, draw, most=1))
        yield Task(
            id=f"{half}-sample-{number:03d}",
            operation="sample_data",
            half=half,
            level=_level(target),
            origin="generated",
            files=project.files(source(target.module, pieces)),
            path=project.path,
            node=target.name,
            check=SampleDataCheck(cases=2),
            solution={"cases": _good(target)[:3]},
        )


def _good(target: Target) -> list[dict[str, object]]:
    return arguments(target) if target.cases else []
