"""A task is solved by its files, never by anybody's word."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from remora.discovery import TreeSitterDiscovery
from remora.sandbox import LocalSpawner, probe
from remora_lab.bench._code import changed_lines, definition, described, target_lines
from remora_lab.bench.checks import Verdict, check
from remora_lab.bench.tasks import Check, DocstringCheck, LintCheck, Mutant, SampleDataCheck, Task, TestCheck

PYPROJECT = '[tool.pytest.ini_options]\npythonpath = ["."]\n\n[tool.ruff.lint]\nselect = ["E", "F"]\n'
CODE = '''"""Fares."""

import os
import math


def fare(distance: int, tariff: str = "day") -> int:
    """What a ride costs."""
    rate = 3 if tariff == None else 2
    unused = math.pi
    return distance * rate


def other(l):
    return l
'''

sandboxed = pytest.mark.skipif(probe().applies == "none", reason="no OS sandbox works here")


def made(wanted: Check, node: str = "fare", code: str = CODE) -> Task:
    files = {"pyproject.toml": PYPROJECT, "rides/__init__.py": "", "rides/fares.py": code}
    return Task(
        id="t",
        operation=wanted.kind,
        half="train",
        level="easy",
        origin="hand",
        files=files,
        path="rides/fares.py",
        node=node,
        check=wanted,
    )


def verdict(tmp_path: Path, task: Task, changes: dict[str, str | None]) -> Verdict:
    trees = [tmp_path / "before", tmp_path / "after"]
    for tree, files in zip(trees, [task.files, {**task.files, **changes}], strict=True):
        for path, text in files.items():
            if text is not None:
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_text(text)
    return asyncio.run(check(task, *trees, LocalSpawner()))


LINT = LintCheck(gone=("E711", "F841"))
MENDED = CODE.replace("tariff == None", "tariff is None").replace("    unused = math.pi\n", "")


def test_errors_that_are_gone_from_the_target_alone_solve_a_lint_task(tmp_path: Path) -> None:
    assert verdict(tmp_path, made(LINT), {"rides/fares.py": MENDED}) == Verdict(solved=False, problems=("F401 is new",))
    kept = MENDED.replace("return distance * rate", "return distance * rate + 0 * int(math.pi)")
    assert verdict(tmp_path, made(LINT), {"rides/fares.py": kept}).solved


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("", ""), "E711 is still there"),
        (("== None else 2", "== None else 2  # noqa"), "an error is hidden by a comment"),
        (("def other(l):", "def other(m):"), "line 14 is not the target's"),
        (("import os\n", ""), "line 3 is not the target's"),
        (("return distance", "return distance ="), "does not parse"),
    ],
)
def test_what_is_left_hidden_or_done_elsewhere_is_told(tmp_path: Path, change: tuple[str, str], problem: str) -> None:
    text = CODE.replace(*change) if change[0] else CODE
    told = verdict(tmp_path, made(LINT), {"rides/fares.py": text})
    assert not told.solved
    assert any(problem in one for one in told.problems), told


def test_a_code_that_no_safe_edit_mends_must_stay(tmp_path: Path) -> None:
    task = made(LintCheck(gone=(), stays=("E741",)), node="other")
    assert verdict(tmp_path, task, {}).solved
    gone = {"rides/fares.py": CODE.replace("def other(l):\n    return l", "def other(m):\n    return m")}
    assert verdict(tmp_path, task, gone).problems == ("E741 is gone, but no safe edit can mend it",)


@sandboxed
def test_code_that_was_cut_out_with_its_error_solves_nothing(tmp_path: Path) -> None:
    behaviour = "from rides.fares import fare\n\ndef test_fare():\n    assert fare(2) == 4\n"
    task = made(LintCheck(gone=("E711", "F841"), behaviour=behaviour))
    kept = MENDED.replace("return distance * rate", "return distance * rate + 0 * int(math.pi)")
    assert verdict(tmp_path, task, {"rides/fares.py": kept}).solved
    other = kept.replace("if tariff is None else 2", "if tariff is None else 1")
    assert verdict(tmp_path, task, {"rides/fares.py": other}).problems == ("the code no longer does what it did",)


@pytest.mark.parametrize("path", ["notes.txt", "rides/more.py", "pyproject.toml", "rides/__init__.py"])
def test_nothing_else_may_change(tmp_path: Path, path: str) -> None:
    told = verdict(tmp_path, made(LintCheck(gone=())), {path: "x = 1\n"})
    assert not told.solved and path in told.problems[0]
    assert verdict(tmp_path / "2", made(LintCheck(gone=())), {"rides/__init__.py": None}).problems == (
        "`rides/__init__.py` is gone",
    )


def documented(text: str) -> dict[str, str | None]:
    return {"rides/fares.py": CODE.replace("What a ride costs.", text)}


FULL = """What a ride costs.

    Args:
        distance: How far.
        tariff: Which.

    Returns:
        The price.
    """
DOC = DocstringCheck(parameters=("distance", "tariff"), returns=True)


def test_a_docstring_that_names_the_parameters_solves_its_task(tmp_path: Path) -> None:
    assert verdict(tmp_path, made(DOC), documented(FULL)).solved


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (FULL.replace("tariff", "colour"), "`colour` is described, but is no parameter"),
        (FULL.replace("        tariff: Which.\n", ""), "`tariff` is not described"),
        (FULL.replace("Returns:\n        The price.", ""), "the result is not described"),
        (FULL + "\n    Raises:\n        KeyError: Never.\n    ", "`KeyError` is told as raised, but is not"),
        (FULL.replace("What a ride costs.", "Fare."), "the first sentence says nothing"),
    ],
)
def test_a_docstring_that_is_wrong_about_the_code_is_told(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in verdict(tmp_path, made(DOC), documented(text)).problems


def test_a_docstring_without_a_list_of_parameters_solves_its_task(tmp_path: Path) -> None:
    assert verdict(tmp_path, made(DOC), documented("What a ride costs.")).solved


def test_a_docstring_task_leaves_the_code_alone(tmp_path: Path) -> None:
    changed = str(documented(FULL)["rides/fares.py"]).replace("return l", "return [l]")
    assert verdict(tmp_path, made(DOC), {"rides/fares.py": changed}).problems == (
        "more than the docstring was changed",
    )


def test_a_complete_docstring_is_left_byte_for_byte(tmp_path: Path) -> None:
    task = made(DocstringCheck(unchanged=True))
    assert verdict(tmp_path, task, {}).solved
    assert not verdict(tmp_path, task, documented("What a ride costs. ")).solved


def test_the_three_styles_name_the_same_things() -> None:
    numpy = (
        "Say.\n\n"
        "Parameters\n----------\na : int\n    One.\n*b\n    Two.\n\n"
        "Returns\n-------\nint\n    It.\n\n"
        "Raises\n------\nKeyError\n    If."
    )
    sphinx = "Say.\n\n:param a: One.\n:param int b: Two.\n:returns: It.\n:raises KeyError: If."
    google = (
        "Say.\n\n"
        "Args:\n    a (int): One: x.\n        More: y.\n    *b: Two.\n\n"
        "Returns:\n    int: It.\n\n"
        "Raises:\n    KeyError: If."
    )
    for doc in (numpy, sphinx, google):
        lines = "\n    ".join(doc.split("\n"))
        found = definition(f'def f(a, *b):\n    """{lines}\n    """\n', "f")
        told = described(found) if found else None
        assert told and (told.parameters, told.raises, told.returns) == ({"a", "b"}, {"KeyError"}, True), doc


MUTANTS = (
    Mutant(path="rides/fares.py", old="distance * rate", new="distance + rate"),
    Mutant(path="rides/fares.py", old="else 2", new="else 1"),
)


@sandboxed
@pytest.mark.parametrize(
    ("body", "solved"),
    [
        ("fare(3) == 6", True),
        pytest.param("fare(2) == 4", False, marks=pytest.mark.faults),
        pytest.param("fare(3) == 7", False, marks=pytest.mark.faults),
        pytest.param("fare(3) >= 0", False, marks=pytest.mark.faults),
    ],
)
def test_tests_that_pass_and_notice_every_mutant_solve_their_task(tmp_path: Path, body: str, solved: bool) -> None:
    text = f"from rides.fares import fare\n\n\ndef test_fare():\n    assert {body}\n"
    assert verdict(tmp_path, made(TestCheck(mutants=MUTANTS)), {"tests/test_fares.py": text}).solved is solved


def test_no_test_is_no_solution_and_the_code_stays(tmp_path: Path) -> None:
    assert verdict(tmp_path, made(TestCheck(mutants=MUTANTS)), {}).problems == ("no test was written",)
    changed = {"rides/fares.py": CODE + "\n"}
    assert verdict(tmp_path / "2", made(TestCheck(mutants=MUTANTS)), changed).problems == (
        "`rides/fares.py` was changed",
    )


TYPED = """from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Zone(Enum):
    INNER = "inner"
    OUTER = "outer"


@dataclass
class Ride:
    distance: int
    zone: Zone
    note: str | None = None


def total(rides: list[Ride], discount: float = 0.0) -> float:
    return sum(ride.distance for ride in rides) * (1 - discount)
"""


@sandboxed
@pytest.mark.parametrize(
    ("cases", "solved"),
    [
        ([{"rides": [{"distance": 2, "zone": "inner"}]}, {"rides": [], "discount": 1}], True),
        pytest.param(
            [{"rides": [{"distance": 2, "zone": "OUTER", "note": None}]}, {"rides": []}], True, marks=pytest.mark.faults
        ),
        pytest.param([{"rides": [{"distance": 2, "zone": "inner"}]}], False, marks=pytest.mark.faults),
        pytest.param([{"rides": []}, {"rides": []}], False, marks=pytest.mark.faults),
        ([{"rides": [{"distance": "2", "zone": "inner"}]}, {"rides": []}], False),
        pytest.param([{"rides": [{"distance": 2, "zone": "moon"}]}, {"rides": []}], False, marks=pytest.mark.faults),
        pytest.param([{"rides": [{"zone": "inner"}]}, {"rides": []}], False, marks=pytest.mark.faults),
        pytest.param([{"rides": []}, {"rides": [], "colour": 1}], False, marks=pytest.mark.faults),
        pytest.param([{"rides": []}, {"discount": 0.5}], False, marks=pytest.mark.faults),
    ],
)
def test_cases_that_fit_the_types_solve_a_sample_data_task(
    tmp_path: Path, cases: list[dict[str, object]], solved: bool
) -> None:
    task = made(SampleDataCheck(cases=2), node="total", code=TYPED)
    told = verdict(tmp_path, task, {"tests/fixtures/fares_total.json": json.dumps({"cases": cases})})
    assert told.solved is solved, told


def test_a_target_s_lines_are_those_that_its_agent_owns(tmp_path: Path) -> None:
    code = (
        "A = 1\n\n\n"
        "class B:\n    C = 2\n\n    @property\n    def d(self):\n        def e():\n"
        "            return 1\n\n        return e\n\n\n"
        "def f():\n    return [\n        1,\n    ]\n"
    )
    (tmp_path / "a.py").write_text(code)
    for node in TreeSitterDiscovery(tmp_path, state_dir=tmp_path / ".agentfs").find([tmp_path]):
        if node.node_type.value == "class":
            continue
        name = node.node_id.partition(":")[2]
        owned = {row for lines in node.owned for row in range(lines.first, lines.last + 1)}
        assert target_lines(code, name) - {code.count("\n") + 1} == owned - {code.count("\n") + 1}, name


def test_a_line_put_in_counts_as_a_change_of_the_line_before_it() -> None:
    assert changed_lines("a\nb\n", "a\nx\nb\n") == {1}
    assert changed_lines("a\nb\nc\n", "a\nc\n") == {2}
    assert changed_lines("a\nb\n", "a\nb\n") == set()
