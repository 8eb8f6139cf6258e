"""What a project promises becomes a test: examples of its documents, errors that it raises, round trips."""

from __future__ import annotations

import ast
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from remora.sandbox import probe
from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
AGENT = Path(__file__).parents[2] / "agents" / "test"
NEEDS_SANDBOX = pytest.mark.skipif(probe().applies == "none", reason="row 22: no sandbox works here for project code")

CODE = '''"""Numbers in base 3.

>>> encode(5)
'12'
"""


def encode(number):
    if number < 0:
        raise ValueError("negative")
    digits = ""
    while number:
        digits = str(number % 3) + digits
        number //= 3
    return digits or "0"


def decode(digits):
    return int(digits, 3)
'''
README = """# Base 3

```python
from base3 import encode

text = encode(17)
print(text)
# 122
encode(9)  # => '100'
encode(1)  # the first one
```
"""


@pytest.fixture
def sandboxed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a module of the agent's code for the sandbox, which is asked about `encode` of `base3`."""
    package, exchange = ModuleType("sandboxed_promises"), ModuleType("sandboxed_promises.exchange")
    package.__path__ = [str(AGENT / "sandboxed")]
    exchange.SPEC = {"module": "base3", "name": "encode", "names": ["encode"], "longest": 72}  # type: ignore[attr-defined]
    for module in (package, exchange):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return lambda name: importlib.import_module(f"{package.__name__}.{name}")


@pytest.fixture
def base3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, in a project with a README."""
    (tmp_path / "base3.py").write_text(CODE)
    (tmp_path / "README.md").write_text(README)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "base3", raising=False)
    return importlib.import_module("base3")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (">>> base3.encode(5)\n'12'\n", [("encode(5)", "'12'")]),
        ("```pycon\n>>> encode(5)\n'12'\n```\n", [("encode(5)", "'12'")]),
        (">>> one = 5\n>>> encode(one)\n'12'\n", [("encode(5)", "'12'")]),
        (">>> print(encode(5))\n12\n", [("encode(5)", "12")]),
        (
            ">>> encode(-1)\nTraceback (most recent call last):\n  ...\nValueError: no\n",
            [("encode(-1)", "raises ValueError")],
        ),
        ("```py\nassert encode(5) == '12'\n```\n", [("encode(5)", "'12'")]),
        (".. code-block:: python\n\n    encode(5)  # -> '12'\n\nText.\n", [("encode(5)", "'12'")]),
        ("- `encode(5)` -> `'12'`\n", [("encode(5)", "'12'")]),
        ("```sh\nencode(5)  # '12'\n```\n", []),
        ("So:\n\none = 5\nprint(encode(one))  \n#12\n\nThat is it.\n", [("encode(5)", "12")]),
        ("```py\nprint('five:', encode(5))\n```\n", []),
        ("Call encode(5) for this.\n", []),
    ],
)  # fmt: skip
def test_an_example_is_read_in_every_usual_form(
    sandboxed: Callable[[str], Any], base3: ModuleType, text: str, found: list[tuple[str, str]]
) -> None:
    read = sandboxed("documented").read(text, "README.md", base3)
    assert [(one.call, one.shown.strip()) for one in read] == found


def test_an_example_that_the_code_does_not_keep_is_no_expectation(
    sandboxed: Callable[[str], Any], base3: ModuleType
) -> None:
    spec = sandboxed("exchange").SPEC
    found = sandboxed("documented").examples(sandboxed("calls").Calls(spec, base3), base3, "encode")
    assert {one["call"]: (one["expected"], one["where"]) for one in found} == {
        "encode(5)": ("'12'", "docstring"),
        "encode(17)": ("'122'", "README.md"),
        "encode(9)": ("'100'", "README.md"),
        "encode(1)": ("", "README.md"),
    }


def test_an_example_that_a_test_has_is_left_alone(sandboxed: Callable[[str], Any], base3: ModuleType) -> None:
    Path("tests").mkdir()
    Path("tests/check_all.py").write_text("def main():\n    assert '12' == base3.encode( 5 )\n")
    found = sandboxed("documented").examples(
        sandboxed("calls").Calls(sandboxed("exchange").SPEC, base3), base3, "encode"
    )
    assert "encode(5)" not in [one["call"] for one in found]
    assert "encode(17)" in [one["call"] for one in found]


def test_an_error_is_meant_only_if_the_project_raises_it(sandboxed: Callable[[str], Any], base3: ModuleType) -> None:
    errors = sandboxed("errors")
    errors.HERE = os.getcwd() + os.sep
    for given, meant in ((-1, True), ("a", False)):
        with pytest.raises((ValueError, TypeError)) as raised:
            base3.encode(given)
        assert errors.is_deliberate(raised.value) is meant


def test_the_first_calls_are_at_the_edges_of_the_code(sandboxed: Callable[[str], Any], base3: ModuleType) -> None:
    definition = next(one for one in ast.parse(CODE).body if isinstance(one, ast.FunctionDef))
    changes = SimpleNamespace(live=[base3.encode], definition=definition)
    edges, kinds = sandboxed("seeds").seeds(changes, {"call": "encode(%s)", "bound": False})
    assert edges == ["encode(0)", "encode(-1)", "encode(1)"]
    assert "encode('a')" in kinds


def test_a_limit_between_two_arguments_is_tried(sandboxed: Callable[[str], Any], base3: ModuleType) -> None:
    code = "def cut(text, least=0, most=75):\n    if most < least:\n        raise ValueError\n    return text[:most]\n"
    definition = ast.parse(code).body[0]
    changes = SimpleNamespace(live=[lambda text, least=0, most=75: text], definition=definition)
    _, refused = sandboxed("seeds").seeds(changes, {"call": "cut(%s)", "bound": False})
    assert {"cut('a', most=-1)", "cut('a', least=76)"} <= set(refused)


@pytest.mark.parametrize(
    ("name", "comes_first", "inverse"),
    [
        ("encode", True, "decode"),
        ("b45decode", False, "b45encode"),
        ("to_str", True, "from_str"),
        ("decodeBytes", False, "encodeBytes"),
        ("snake_to_camel", False, "camel_to_snake"),
    ],
)
def test_an_inverse_is_known_by_its_name(
    sandboxed: Callable[[str], Any], name: str, comes_first: bool, inverse: str
) -> None:
    assert (comes_first, inverse) in sandboxed("properties").inverse_names(name)


def test_only_plain_strings_change_their_quotes() -> None:
    spec = importlib.util.spec_from_file_location("writing", AGENT / "tools" / "writing.py")
    assert spec and spec.loader
    writing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writing)
    text = "f(b'\\x00') == '0' and g('say \"a\"', 'it\\'s')"
    assert writing.with_quotes(text, '"') == 'f(b"\\x00") == "0" and g(\'say "a"\', \'it\\\'s\')'


@NEEDS_SANDBOX
async def test_a_project_without_tests_and_types_gets_tests_of_what_it_promises(
    agent_tools: Make, tmp_path: Path
) -> None:
    tools = agent_tools("test", {"base3.py": CODE, "README.md": README}, "base3.py:encode")
    assert (await tools.call("run_tests", {})).value["summary"] == "The project has no tests"
    await tools.call("write_test_file", {})
    text = (tmp_path / ".agentfs/workspaces/AGENT/tests/test_base3.py").read_text()
    assert '@pytest.mark.parametrize("value", [0, 1, 255, 123456789])\ndef test_decode_reverses_encode(value):' in text
    assert "    # What the documents show.\n" in text or "    # What README.md shows.\n" in text
    assert "def test_encode_raises_value_error_if_number_is_less_than_0():" in text or "encode(-1)" in text
    assert (await tools.call("run_tests", {})).value["knowledge_delta"]["test_problems"] == 0


@NEEDS_SANDBOX
async def test_examples_that_the_project_runs_itself_are_no_new_tests(agent_tools: Make) -> None:
    code = 'def double(value):\n    """Twice.\n\n    >>> double(4)\n    8\n    """\n    return value + value\n'
    for settings, outcome in (("", "success"), ("[pytest]\naddopts = --doctest-modules\n", "error")):
        files = {"kit.py": code, "tox.ini": settings or "[tox]\n"}
        value = (await agent_tools("test", files, "kit.py:double").call("write_test_file", {})).value
        assert value["outcome"] == outcome, json.dumps(value)[:500]


@pytest.mark.parametrize("tests", ["tests/test_kit.py", "test/kit.py"])
@NEEDS_SANDBOX
async def test_tests_that_pytest_does_not_collect_may_protect_the_code_already(agent_tools: Make, tests: str) -> None:
    files = {
        "kit.py": "def double(value: int) -> int:\n    return value + value\n",
        tests: "from kit import double\n\n\ndef main():\n    assert double(4) == 8\n",
    }
    value = (await agent_tools("test", files, "kit.py:double").call("write_test_file", {})).value
    assert value["error"].startswith("No test written: tests call it which pytest does not run here")
