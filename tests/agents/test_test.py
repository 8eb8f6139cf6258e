"""The `test` agent's tools on real files, with real pytest in the sandbox."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.context.contracts import ToolResult
from remora.sandbox import probe
from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
SHAPES = (Path(__file__).parent / "corpus_shapes.py.txt").read_text()
PACKAGE = {"src/kit/__init__.py": "", "src/kit/shapes.py": SHAPES, "tests/test_old.py": "import os\n"}
needs_sandbox = pytest.mark.skipif(probe().applies == "none", reason="row 22: no sandbox works here for project code")


async def _call(tools: ScriptTools, name: str, **args: Any) -> dict[str, Any]:
    """The tool's value, which always keeps the contract and fits a small prompt."""
    value: dict[str, Any] = (await tools.call(name, args)).value
    ToolResult.model_validate(value)
    assert len(value["summary"]) < 200
    assert "\n" not in value["summary"]
    assert value["candidate_actions"]
    assert all(len(item["text"]) < 8000 for item in value["excerpts"])
    return value


async def _all(tools: ScriptTools) -> dict[str, Any]:
    """The first candidates followed to the end, as a policy without a model does."""
    value = await _call(tools, "analyze_signature")
    while (action := value["candidate_actions"][0])["tool"] != "submit_result":
        value = await _call(tools, action["tool"], **action["args"])
    return value


def _written(folder: Path) -> dict[str, str]:
    upper = folder / ".agentfs/workspaces/AGENT"
    return {path.relative_to(upper).as_posix(): path.read_text() for path in sorted(upper.rglob("*")) if path.is_file()}


def _shape(make: Make, name: str, **options: Any) -> ScriptTools:
    return make("test", PACKAGE, f"src/kit/shapes.py:{name}", **options)


CALLS = {
    "plain": ("plain(...)", "3, 3"),
    "annotated": ("annotated(...)", "3"),
    "positional_only": ("positional_only(...)", "3, 3"),
    "keyword_only": ("keyword_only(...)", "width=3"),
    "star_args": ("star_args(...)", "1"),
    "expression_default": ("expression_default(...)", ""),
    "one_line": ("one_line(...)", "3"),
    "waiting": ("waiting(...)", "0"),
    "choice": ("choice(...)", '"r"'),
    "money": ("money(...)", '3, Path("a.txt")'),
    "level": ("level(...)", '"low"'),
    "takes_callable": ("takes_callable(...)", "str"),
    "größe": ("größe(...)", "3"),
    "Point.moved": ("Point(x=3).moved(...)", "3"),
    "Point.length": ("Point(x=3).length", ""),
    "Point.origin": ("Point.origin(...)", "2"),
    "Point.square": ("Point.square(...)", "3"),
}


@pytest.mark.parametrize(("name", "call", "first"), [(name, *rest) for name, rest in CALLS.items()], ids=CALLS.keys())
async def test_the_signature_gives_a_call_and_arguments_that_fit(
    agent_tools: Make, name: str, call: str, first: str
) -> None:
    value = await _call(_shape(agent_tools, name), "analyze_signature")
    assert value["result"]["call"].replace("%s", "...") == call
    assert value["result"]["cases"][0] == first
    assert value["excerpts"][0]["label"] == "source"
    assert value["knowledge_delta"]["signature"].startswith(("def ", "async def "))


async def test_a_function_inside_a_function_is_left_alone_and_told_why(agent_tools: Make, tmp_path: Path) -> None:
    value = await _all(_shape(agent_tools, "outer.inner"))
    assert value["summary"] == "No test for outer.inner: it stands inside a function and cannot be imported"
    assert _written(tmp_path) == {}


async def test_a_test_is_not_tested(agent_tools: Make) -> None:
    tools = agent_tools("test", {"tests/test_a.py": "def test_x():\n    assert 1\n"}, "tests/test_a.py:test_x")
    assert (await _all(tools))["summary"] == "No test for test_x: it is part of the tests itself"


async def test_existing_tests_are_found_and_shown(agent_tools: Make) -> None:
    files = {
        "a.py": "def f(x):\n    return x\n",
        "tests/test_f.py": "from a import f\n\n\ndef test_f():\n    assert f(1) == 1\n",
    }
    value = await _call(agent_tools("test", files, "a.py:f"), "read_existing_tests")
    assert value["summary"] == "1 call of f in tests/test_f.py"
    assert value["excerpts"][0]["text"] == "def test_f():\n    assert f(1) == 1"
    assert value["excerpts"][0]["start_line"] == 4
    none = agent_tools("test", {"b.py": "def lonely(x):\n    return x\n"}, "b.py:lonely")
    assert (await _call(none, "read_existing_tests"))["summary"] == "No test names lonely"


KEPT = ["level"]
MORE_KEPT = [
    "waiting", "Point.moved",
    "annotated", "positional_only", "keyword_only", "star_args", "one_line", "counting",
    "cached", "choice", "money", "forever", "größe", "outer", "Point.length", "Point.origin",
]  # fmt: skip


@needs_sandbox
@pytest.mark.faults
@pytest.mark.parametrize("name", ["expression_default", "Point.square"])
async def test_no_test_is_written_where_nothing_proves_a_result(agent_tools: Make, tmp_path: Path, name: str) -> None:
    tools = _shape(agent_tools, name)
    value = await _call(tools, "analyze_signature")
    while (action := value["candidate_actions"][0])["tool"] != "submit_result":
        value = await _call(tools, action["tool"], **action["args"])
    assert _written(tmp_path) == {}


@needs_sandbox
@pytest.mark.parametrize("name", [*KEPT, *(pytest.param(name, marks=pytest.mark.faults) for name in MORE_KEPT)])
async def test_a_written_test_passes_notices_changes_and_nothing_else_stays(
    agent_tools: Make, tmp_path: Path, name: str
) -> None:
    tools = _shape(agent_tools, name)
    value = await _call(tools, "analyze_signature")
    while (action := value["candidate_actions"][0])["tool"] != "submit_result":
        value = await _call(tools, action["tool"], **action["args"])
    before = _written(tmp_path)
    value = await _call(tools, "run_tests")
    assert value["knowledge_delta"]["test_problems"] == 0, value["summary"]
    assert value["candidate_actions"][0]["tool"] == "submit_result"
    assert _written(tmp_path) == before
    assert (tmp_path / "src/kit/shapes.py").read_text() == SHAPES
    ((path, text),) = before.items()
    assert "remora_change" not in text
    assert path == "tests/test_shapes.py"
    assert text.startswith('"""Edge cases of `kit.shapes`."""\n')
    assert f"def test_{name.replace('.', '_').lower()}_" in text
    assert "    # Fails if " in text or "_raises_" in text
    assert "type(" not in text
    assert not (tmp_path / path).exists()
    # Outside, with plain pytest, as its owner will run it.
    (tmp_path / path).write_text(text)
    run = await asyncio.to_thread(_plain_pytest, tmp_path, path)
    assert run.returncode == 0, run.stdout.decode()


def _plain_pytest(folder: Path, path: str) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path]
    return subprocess.run(argv, cwd=folder, env={"PYTHONPATH": "src"}, capture_output=True, check=False)


@needs_sandbox
async def test_a_parameter_that_no_type_and_no_test_describes_gets_no_test(agent_tools: Make, tmp_path: Path) -> None:
    value = await _all(_shape(agent_tools, "plain"))
    assert value["summary"] == "No test written: no type, test or document says what `a` is"
    assert _written(tmp_path) == {}


@needs_sandbox
async def test_code_whose_results_show_nothing_gets_no_test(agent_tools: Make) -> None:
    files = {"a.py": "def nothing(x: int) -> None:\n    print(x + 1)\n"}
    value = await _all(agent_tools("test", files, "a.py:nothing"))
    assert value["summary"].startswith("No test written: nothing in the code or its documents proves a result ")


@needs_sandbox
@pytest.mark.faults
async def test_the_same_call_writes_the_same_file(agent_tools: Make, tmp_path: Path) -> None:
    tools = _shape(agent_tools, "annotated")
    await _call(tools, "write_test_file")
    first = _written(tmp_path)
    await _call(tools, "write_test_file")
    assert _written(tmp_path) == first


@needs_sandbox
async def test_an_expected_value_is_written_and_a_wrong_one_is_refused(agent_tools: Make, tmp_path: Path) -> None:
    tools = _shape(agent_tools, "level")
    value = await _call(
        tools, "write_test_file", cases=["'low' -> 1", "level('high') == 8", "'x' -> raises ValueError"]
    )
    assert value["diagnostics"] == ["level('high') returns 9, not 8"]
    text = next(iter(_written(tmp_path).values()))
    assert '    assert level("low") == 1\n' in text
    assert '    with pytest.raises(ValueError):\n        level("x")\n' in text
    assert "== 8" not in text


NONSENSE = [
    "1, (",
    "__import__('os').system('id')",
    "undefined_name",
    ")); x = ((",
    "1\nimport os",
    "''.__class__",
    "open('a')",
]


@needs_sandbox
async def test_a_case_that_is_nonsense_or_more_than_values_does_not_get_into_the_file(
    agent_tools: Make, tmp_path: Path
) -> None:
    value = await _call(_shape(agent_tools, "level"), "write_test_file", cases=NONSENSE)
    assert value["outcome"] in ("success", "partial", "error")
    for text in _written(tmp_path).values():
        compile(text, "t", "exec")
        assert not any(case in text for case in NONSENSE)


@pytest.mark.faults
@needs_sandbox
async def test_whole_test_functions_are_taken_and_judged_the_same_way(agent_tools: Make) -> None:
    tools = _shape(agent_tools, "level")
    good = "@pytest.mark.parametrize('n, v', [('low', 1), ('high', 9)])\ndef test_it(n, v):\n    assert level(n) == v\n"
    await _call(tools, "write_test_file", body=good)
    assert (await _call(tools, "run_tests"))["knowledge_delta"]["test_problems"] == 0
    await _call(tools, "write_test_file", body="def test_it():\n    assert level('low') == 2\n")
    failing = await _call(tools, "run_tests")
    assert failing["summary"].startswith("A test fails: ")
    await _call(tools, "write_test_file", body="def test_it():\n    assert callable(level)\n")
    assert (await _call(tools, "run_tests"))["summary"].startswith("The tests pass, but notice no change")
    await _call(tools, "write_test_file", body="def test_it(:\n")
    assert (await _call(tools, "run_tests"))["summary"].startswith("The tests did not run: ")


@needs_sandbox
async def test_a_file_of_the_users_is_never_written_over(agent_tools: Make, tmp_path: Path) -> None:
    name = "tests/test_shapes.py"
    tools = agent_tools("test", {**PACKAGE, name: "def test_mine():\n    pass\n"}, "src/kit/shapes.py:level")
    await _call(tools, "write_test_file")
    assert list(_written(tmp_path)) == ["tests/test_shapes_edges.py"]


@needs_sandbox
async def test_a_function_that_its_own_tests_protect_needs_no_test(agent_tools: Make, tmp_path: Path) -> None:
    code = "def fee(n: int) -> int:\n    return 5 if n < 20 else 10\n"
    own = "from a import fee\n\n\ndef test_fee():\n    assert [fee(19), fee(20), fee(21)] == [5, 10, 10]\n"
    tools = agent_tools("test", {"a.py": code, "tests/test_fee.py": own}, "a.py:fee")
    checked = await _call(tools, "run_tests")
    assert checked["knowledge_delta"]["test_problems"] == 0
    assert "Its own test notices all" in checked["summary"]
    weak = own.replace("fee(20), ", "").replace("10, 10", "10")
    tools = agent_tools("test", {"a.py": code, "tests/test_fee.py": weak}, "a.py:fee")
    assert (await _call(tools, "run_tests"))["knowledge_delta"]["changes_missed"] != []
    await _call(tools, "write_test_file")
    ((path, text),) = _written(tmp_path).items()
    assert path == "tests/test_a.py"
    assert "    assert fee(20) == 10\n" in text
    assert text.count("def test_") == 1


@pytest.mark.faults
@needs_sandbox
async def test_a_project_of_unittest_classes_gets_one(agent_tools: Make, tmp_path: Path) -> None:
    files = {
        "a.py": "def fee(n: int) -> int:\n    return 5 if n < 20 else 10\n",
        "test/test_old.py": "import unittest\n\n\nclass Old(unittest.TestCase):\n    def test_it(self): pass\n",
    }
    tools = agent_tools("test", files, "a.py:fee")
    await _call(tools, "write_test_file")
    ((path, text),) = _written(tmp_path).items()
    assert path == "test/test_a.py"
    assert "class TestFeeEdges(unittest.TestCase):\n    def test_fee_of_" in text
    assert "        self.assertEqual(fee(20), 10)\n" in text
    assert (await _call(tools, "run_tests"))["knowledge_delta"]["test_problems"] == 0


@needs_sandbox
async def test_values_that_change_with_time_or_chance_are_not_pinned(agent_tools: Make, tmp_path: Path) -> None:
    code = (
        "import datetime\nimport random\nimport time\n\n\n"
        "def stamp(n: int) -> str:\n    return datetime.date.today().isoformat() * n\n\n\n"
        "def draw(n: int) -> int:\n    return random.randrange(2) + n\n\n\n"
        "def age(n: int) -> float:\n    return int(time.time() / 86400) - n\n"
    )
    for name in ("stamp", "draw", "age"):
        await _call(agent_tools("test", {"a.py": code}, f"a.py:{name}"), "write_test_file")
    assert _written(tmp_path) == {}


@needs_sandbox
async def test_code_that_cannot_be_imported_ends_honestly(agent_tools: Make, tmp_path: Path) -> None:
    tools = agent_tools("test", {"a.py": "import not_there\n\n\ndef f(x: int):\n    return x\n"}, "a.py:f")
    value = await _all(tools)
    assert "No module named 'not_there'" in value["error"]
    assert value["candidate_actions"][0]["tool"] == "submit_result"
    assert _written(tmp_path) == {}


@needs_sandbox
@pytest.mark.faults
async def test_code_that_never_ends_is_stopped(agent_tools: Make) -> None:
    tools = agent_tools("test", {"a.py": "def f(x: int):\n    while True:\n        x += 1\n"}, "a.py:f")
    value = await _all(tools)
    assert "no call of it ends within 0.25 s" in value["error"]


async def test_without_a_sandbox_only_what_runs_code_is_refused(agent_tools: Make, tmp_path: Path) -> None:
    tools = _shape(agent_tools, "level", sandbox=False)
    assert (await _call(tools, "analyze_signature"))["outcome"] == "success"
    refused = await _call(tools, "write_test_file")
    assert "sandbox" in refused["error"]
    assert refused["candidate_actions"][0]["tool"] == "submit_result"
    written = await _call(tools, "write_test_file", body="def test_it():\n    assert level('low') == 1\n")
    assert written["outcome"] == "success"
    judged = await _call(tools, "run_tests")
    assert (judged["knowledge_delta"]["test_problems"], "sandbox" in judged["error"]) == (1, True)
    assert len(_written(tmp_path)) == 1


LISTS = """from dataclasses import dataclass


@dataclass
class Item:
    price: int


def total(items: list[Item]) -> int:
    return sum(item.price for item in items)


def parts(size: int):
    if size < 1:
        raise ValueError("too small")
    yield size * 2
"""


async def test_a_list_of_the_projects_own_objects_can_be_tried(agent_tools: Make) -> None:
    value = await _call(agent_tools("test", {"shop.py": LISTS}, "shop.py:total"), "analyze_signature")
    assert value["candidate_actions"][0]["tool"] == "write_test_file"
    assert any("Item(price=" in case for case in value["result"]["cases"])


@pytest.mark.faults
@needs_sandbox
async def test_a_generator_that_raises_is_ended_so_that_it_does(agent_tools: Make) -> None:
    tools = agent_tools("test", {"shop.py": LISTS}, "shop.py:parts")
    await _call(tools, "write_test_file", cases=["0 -> raises ValueError", "2 -> [4]"])
    ran = await _call(tools, "run_tests")
    assert ran["outcome"] == "success", ran["summary"]
