"""The committed task suite is what the generator makes, its halves share nothing, and its defects are real."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.generator import part
from remora.sandbox import LocalSpawner
from remora_lab.bench._code import definition, target_lines
from remora_lab.bench.bench import BenchPlan, make_environment, run_bench, trials
from remora_lab.bench.checks import check
from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.oracle import Oracle
from remora_lab.bench.rows import ROWS
from remora_lab.bench.tasks import DocstringCheck, Half, LintCheck, Task, TestCheck, read_tasks

MAIN, BANK, VALUES = part("__main__"), part("_bank"), part("_values")
FOLDER, HALVES = MAIN.FOLDER, MAIN.HALVES
TASKS = {half: list(read_tasks([FOLDER / f"{half}.jsonl"])) for half in HALVES}
EVERY = [task for tasks in TASKS.values() for task in tasks]
LONGEST_TRIVIAL = 24
"""Characters of a line that says nothing of its own, such as `if not values:`."""
SHARED = re.compile(r"(from|import) .*|@dataclass.*|class \w+\(Enum\):|(Args|Returns|Raises|Parameters).*")
"""Lines that all Python code shares."""


@pytest.mark.parametrize("half", HALVES)
def test_the_committed_suite_is_what_the_generator_makes(half: Half) -> None:
    assert (FOLDER / f"{half}.jsonl").read_bytes() == MAIN.encoded(half)


@pytest.mark.parametrize("half", HALVES)
def test_each_half_has_its_share_of_every_operation_and_level(half: Half) -> None:
    tasks = TASKS[half]
    share = {name: number / len(tasks) for name, number in Counter(task.operation for task in tasks).items()}
    assert len(tasks) >= 120
    assert share["lint"] > 0.35 and share["test"] > 0.2 and share["docstring"] > 0.15 and share["sample_data"] > 0.12
    assert min(Counter(task.level for task in tasks).values()) >= 20
    assert sum(task.origin == "hand" for task in tasks) >= 8
    assert len({code for task in tasks if isinstance(task.check, LintCheck) for code in task.check.gone}) >= 30


def _definitions(task: Task) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    trees = [ast.parse(text) for path, text in task.files.items() if path.endswith(".py") and "test" not in path]
    names = {each.name for tree in trees for each in ast.walk(tree) if isinstance(each, kinds)}
    return names - {"__init__"}


def _lines(task: Task) -> set[str]:
    texts = [text for path, text in task.files.items() if path.endswith(".py") and "test" not in path]
    lines = {line.strip() for text in texts for line in text.split("\n")}
    return {line for line in lines if len(line) > LONGEST_TRIVIAL and not SHARED.fullmatch(line)}


def _sentences(task: Task) -> set[str]:
    told = task.solution.get("summary", "")
    return {sentence for sentence in re.split(r"[.\n]", str(told)) if len(sentence.split()) > 2}


def _mix(task: Task) -> set[frozenset[str]]:
    return {frozenset((*task.check.gone, *task.check.stays))} if isinstance(task.check, LintCheck) else set()


@pytest.mark.parametrize("part", [_definitions, _lines, _sentences, _mix])
def test_the_halves_share_nothing(part) -> None:  # type: ignore[no-untyped-def]
    train, evaluation = ({item for task in TASKS[half] for item in part(task)} for half in HALVES)
    assert train and evaluation
    assert not train & evaluation


def _written(task: Task, root: Path) -> Path:
    for path, text in task.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.fixture(scope="module")
def violations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict]]:  # type: ignore[type-arg]
    """What ruff says about every lint task, in one run."""
    root = tmp_path_factory.mktemp("tasks")
    lint = [task for task in EVERY if task.operation == "lint"]
    for task in lint:
        _written(task, root / task.id)
    argv = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=json", "."]
    said = json.loads(subprocess.run(argv, cwd=root, capture_output=True, check=False).stdout)
    found: dict[str, list[dict]] = {task.id: [] for task in lint}  # type: ignore[type-arg]
    for each in said:
        found[Path(each["filename"]).relative_to(root).parts[0]].append(each)
    return found


def test_ruff_finds_in_each_target_what_the_task_says_and_no_more(violations) -> None:  # type: ignore[no-untyped-def]
    for task in EVERY:
        if isinstance(task.check, LintCheck):
            rows = target_lines(task.files[task.path], task.node)
            there = {each["code"] for each in violations[task.id] if each["location"]["row"] in rows}
            assert there == {*task.check.gone, *task.check.stays}, task.id


def test_which_codes_ruff_fixes_safely_is_as_the_generator_says(violations) -> None:  # type: ignore[no-untyped-def]
    fixes = {each["code"]: (each["fix"] or {}).get("applicability") for told in violations.values() for each in told}
    assert {code for code, how in fixes.items() if how == "safe"} == part("_defects").FIXED_BY_RUFF & set(fixes)


def test_the_banks_code_does_what_its_cases_say() -> None:
    for module in [module for half in HALVES for module in BANK.modules(half)]:
        text = VALUES.source(module, module.pieces)
        for target in module.targets:
            assert VALUES.holds(target, text), target.name


def test_every_mutant_is_another_program_that_can_be_made() -> None:
    for task in EVERY:
        if isinstance(task.check, TestCheck):
            assert len(task.check.mutants) >= 2, task.id
            for mutant in task.check.mutants:
                text = task.files[mutant.path]
                assert text.count(mutant.old) == 1, task.id
                assert ast.dump(ast.parse(text.replace(mutant.old, mutant.new))) != ast.dump(ast.parse(text)), task.id


def test_a_docstring_task_is_unsolved_before_unless_it_is_to_be_left_alone(tmp_path: Path) -> None:
    for task in EVERY:
        if isinstance(task.check, DocstringCheck):
            root = _written(task, tmp_path / task.id)
            assert "#" in task.node or definition(task.files[task.path], task.node) is not None, task.id
            solved = asyncio.run(check(task, root, root, LocalSpawner())).solved
            assert solved is task.check.unchanged, task.id


@pytest.mark.faults
@pytest.mark.parametrize("half", HALVES)
def test_no_task_is_solved_before_and_no_lint_task_begins_with_other_behaviour(half: Half, tmp_path: Path) -> None:
    spawner = LocalSpawner()
    for task in TASKS[half]:
        root = _written(task, tmp_path / task.id)
        told = asyncio.run(check(task, root, root, spawner))
        assert told.solved is (isinstance(task.check, DocstringCheck) and task.check.unchanged), task.id
        if isinstance(task.check, LintCheck):
            kept = task.model_copy(update={"check": LintCheck(gone=(), behaviour=task.check.behaviour)})
            assert asyncio.run(check(kept, root, root, spawner)).solved, task.id


@pytest.mark.faults
@pytest.mark.parametrize("control", [name for name in CONTROLS if name != "unfamiliar"])
def test_the_oracle_solves_nearly_all_of_the_suite_within_the_budget(
    control: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    tasks = TASKS["eval"] if control == "none" else TASKS["eval"][::8]
    asked = BenchPlan(tasks, [ROWS["oracle"]], [CONTROLS[control]], 1)

    async def solved() -> list[bool]:
        place = make_environment(tmp_path / "r.jsonl", None, Oracle)
        return [one.solved async for one in run_bench(trials(asked), asked.models, place, keep=lambda one: None)]

    results = asyncio.run(solved())
    record_property(f"oracle, {control}", f"{sum(results)} of {len(results)} tasks")
    assert sum(results) >= 0.95 * len(results)
