"""What a new test may pass to a function: values that a reader takes for ones that somebody would write."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
AGENT = Path(__file__).parents[2] / "agents" / "test"


@pytest.fixture
def sandboxed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of the agent's code for the sandbox."""
    package = ModuleType("sandboxed_code")
    package.__path__ = [str(AGENT / "sandboxed")]
    monkeypatch.setitem(sys.modules, package.__name__, package)
    return lambda name: importlib.import_module(f"{package.__name__}.{name}")


def to_days(year, month, day=1):  # type: ignore[no-untyped-def]
    """Days since 1858.

    >>> to_days(1970, 1)
    """
    return year * 365 + month * 30 + day if month > 12 else day


def fee(weight: int, tax: float = 0.5) -> float:
    return weight * tax


WRITTEN = ["to_days(2000, 1, 1)", "to_days(1999, 9, day=26)"]


@pytest.mark.parametrize(
    ("call", "is_believable"),
    [
        ("to_days(2000, 9, 26)", True),
        ("to_days(1970, 1)", True),
        ("to_days(1858, 1)", False),
        ("to_days(2000, 13, 1)", True),
        ("to_days(2000, 2000, 1)", False),
        ("to_days(51545, 1, 1)", False),
        ("to_days(2000, -9, 1)", False),
        ("to_days(2000, 1, day=7)", False),
    ],
)
def test_an_untyped_parameter_gets_numbers_that_somebody_gave_it_or_that_the_code_is_about(
    sandboxed: Callable[[str], Any], call: str, is_believable: bool
) -> None:
    definition = ast.parse(inspect.getsource(to_days)).body[0]
    numbers = sandboxed("numbers").Numbers(to_days, definition, WRITTEN, False)
    assert numbers.could_write(call) is is_believable


@pytest.mark.parametrize(
    ("call", "is_believable"),
    [("fee(3, 1.5)", True), ("fee(100)", True), ("fee(-28910)", False), ("fee(3, 0.123)", False)],
)
def test_a_parameter_with_a_type_gets_small_and_round_numbers_too(
    sandboxed: Callable[[str], Any], call: str, is_believable: bool
) -> None:
    definition = ast.parse(inspect.getsource(fee)).body[0]
    assert sandboxed("numbers").Numbers(fee, definition, [], False).could_write(call) is is_believable


def test_a_mark_ends_a_sentence_and_no_word(sandboxed: Callable[[str], Any]) -> None:
    words = sandboxed("words").Words(["null value"], [])
    assert words.could_write("null value.")
    assert not words.could_write(" ")
    assert not words.could_write("null.")
    assert not words.could_write("9.value")


@pytest.mark.parametrize(
    ("code", "how", "decides"),
    [
        ("if x < 5:\n    y = 1", "constant", "edge"),
        ("if x < 1e-9:\n    y = 1", "constant", ""),
        ("if x == 0:\n    y = 1\nelse:\n    y = 2", "comparison", ""),
        ("if x == 0:\n    raise ValueError", "comparison", "guard"),
        ("if x == 0:\n    return 1\nraise ValueError", "comparison", "guard"),
        ("if x == 0:\n    check(x)", "comparison", "guard"),
        ("if x == 0:\n    y = check(x)", "comparison", "guard"),
        ("if x == 0:\n    y = 1\nif y:\n    raise ValueError", "comparison", "guard"),
    ],
)
def test_a_tolerance_is_no_edge_and_a_choice_of_values_decides_about_no_error(
    sandboxed: Callable[[str], Any], code: str, how: str, decides: str
) -> None:
    tree = ast.parse(code)
    compared = next(one for one in ast.walk(tree) if isinstance(one, ast.Compare))
    part = compared.comparators[0] if how == "constant" else compared
    assert sandboxed("changes").role(tree, part, compared, how) == decides


def test_a_sign_is_named_and_not_called_empty() -> None:
    spec = importlib.util.spec_from_file_location("writing", AGENT / "tools" / "writing.py")
    assert spec and spec.loader
    writing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writing)
    case, reasons = {"arguments": "'#'"}, {"errors": {}, "ends": {}}
    assert writing.test_name("safe", case, {"value": "'x'"}, reasons) == "test_safe_of_hash"


@pytest.mark.parametrize("agent", ["test", "sample_data"])
async def test_scripts_around_a_project_get_neither_tests_nor_fixtures(agent_tools: Make, agent: str) -> None:
    code = "def read(name: str) -> str:\n    return name\n"
    tools = agent_tools(agent, {"setup.py": code}, "setup.py:read", sandbox=False)
    value: dict[str, Any] = (await tools.call("analyze_signature", {})).value
    assert "its file is no part of what the project does" in value["summary"]


async def test_one_call_is_no_sample_for_a_parameter_without_a_type(agent_tools: Make) -> None:
    code = "def read(name):\n    return name.encode('utf8')\n"
    files = {"a.py": code, "b.py": "from a import read\n\nx = read('README.rst')\n"}
    tools = agent_tools("sample_data", files, "a.py:read", sandbox=False)
    value: dict[str, Any] = (await tools.call("analyze_signature", {})).value
    assert value["summary"] == "No fixture for read: only one example, test or call shows what it is given"


async def test_what_its_own_file_passes_to_a_function_is_no_sample(agent_tools: Make) -> None:
    code = "def read(name):\n    return name.encode('utf8')\n\n\nx = read('a.rst'), read('b.rst')\ny = read('c.rst')\n"
    tools = agent_tools("sample_data", {"a.py": code}, "a.py:read", sandbox=False)
    value: dict[str, Any] = (await tools.call("analyze_signature", {})).value
    assert value["summary"] == "No fixture for read: no type, example, test or call says what `name` is"


@pytest.mark.parametrize("node", ["pkg/_parts.py:read", "pkg/app.py:main"])
async def test_types_alone_are_no_sample_for_what_others_do_not_call(agent_tools: Make, node: str) -> None:
    file, _, name = node.partition(":")
    code = f"def {name}(text: str) -> str:\n    return text\n"
    value = (await agent_tools("sample_data", {file: code}, node, sandbox=False).call("analyze_signature", {})).value
    assert "no example, test or call shows what it is given" in value["summary"]


async def test_calls_that_differ_only_by_a_flag_are_one_sample(agent_tools: Make) -> None:
    calls = '    >>> fits("a.py")\n    >>> fits("a.py", strict=False)\n'
    code = f'def fits(path, strict=True):\n    """Try it.\n\n{calls}    """\n'
    for more, why in (("", "only one example, test or call shows"), ('    >>> fits("b.py")\n', "is not written yet")):
        made = code.replace("strict=False)\n", f"strict=False)\n{more}")
        tools = agent_tools("sample_data", {"a.py": made}, "a.py:fits", sandbox=False)
        assert why in (await tools.call("analyze_signature", {})).value["summary"]
