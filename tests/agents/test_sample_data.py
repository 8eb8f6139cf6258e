"""The `sample_data` agent's tools on real files, without a sandbox: no code is run."""

from __future__ import annotations

import inspect
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.context.contracts import ToolResult
from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
CORPUS = Path(__file__).parent / "corpus_shapes.py.txt"
PACKAGE = {"kit/__init__.py": "", "kit/shapes.py": CORPUS.read_text()}


async def _call(tools: ScriptTools, name: str, **args: Any) -> dict[str, Any]:
    value: dict[str, Any] = (await tools.call(name, args)).value
    ToolResult.model_validate(value)
    assert len(value["summary"]) < 200
    assert value["candidate_actions"]
    return value


def _written(folder: Path) -> dict[str, str]:
    upper = folder / ".agentfs/workspaces/AGENT"
    return {path.relative_to(upper).as_posix(): path.read_text() for path in sorted(upper.rglob("*")) if path.is_file()}


def _shape(make: Make, name: str, **more: str) -> ScriptTools:
    return make("sample_data", {**PACKAGE, **more}, f"kit/shapes.py:{name}", sandbox=False)


WRITTEN = [
    "plain", "annotated", "positional_only", "keyword_only", "star_args", "expression_default", "one_line", "waiting",
    "counting", "cached", "money", "level", "nothing", "forever", "größe", "outer", "outer.inner",
    "Point.moved", "Point.origin", "Point.square",
]  # fmt: skip


@pytest.mark.parametrize("variant", ["typical", pytest.param("edge", marks=pytest.mark.faults)])
async def test_every_case_binds_to_the_real_signature(agent_tools: Make, tmp_path: Path, variant: str) -> None:
    module = runpy.run_path(str(CORPUS))
    for name in [name for name in WRITTEN if "." not in name]:
        tools = _shape(agent_tools, name)
        seen = await _call(tools, "analyze_signature")
        if seen["result"]["refused"].startswith(("no type, example, test or call says", "its type alone does not say")):
            assert (await _call(tools, "write_fixture_file", variant=variant))["outcome"] == "error"
            continue
        assert seen["knowledge_delta"]["fixture_problems"] == 1
        value = await _call(tools, "write_fixture_file", variant=variant)
        assert value["outcome"] == "success", value["summary"]
        fixture = json.loads(_written(tmp_path)[f"tests/fixtures/shapes_{name}.json"])
        assert fixture["function"] == f"kit.shapes.{name}"
        function = inspect.unwrap(module[name])
        parameters = inspect.signature(function).parameters
        for case in fixture["cases"]:
            given = [case[key] for key, one in parameters.items() if key in case and one.kind == one.POSITIONAL_ONLY]
            named = {
                key: value for key, value in case.items() if parameters[key].kind != inspect.Parameter.POSITIONAL_ONLY
            }
            inspect.signature(function).bind(*given, **named)
        assert (await _call(tools, "analyze_signature"))["knowledge_delta"]["fixture_problems"] == 0


@pytest.mark.parametrize("name", [name for name in WRITTEN if "." in name])
async def test_methods_and_inner_functions_have_samples_too(agent_tools: Make, tmp_path: Path, name: str) -> None:
    await _call(_shape(agent_tools, name), "write_fixture_file")
    fixture = json.loads(next(iter(_written(tmp_path).values())))
    assert "self" not in fixture["parameters"]
    assert "cls" not in fixture["parameters"]
    assert fixture["cases"]


async def test_values_fit_their_types(agent_tools: Make, tmp_path: Path) -> None:
    code = (
        "from typing import *\nfrom datetime import date\n\n\n"
        "def f(a: int, b: Optional[float], c: List[Dict[str, int]], d: 'str | None', e: Literal['x', 'y'],\n"
        "      g: tuple[int, str], h: bool, i: set[str], j: date, k: dict[str, list[float]], l: bytes):\n"
        '    """F.\n\n    c: Counts.\n    d: A word: `a`.\n    g: A line.\n    i: Words.\n    k: Rows.\n'
        '    l: Data: `ab`.\n    """\n'
    )
    tools = agent_tools("sample_data", {"a.py": code}, "a.py:f", sandbox=False)
    await _call(tools, "write_fixture_file", values={"d": "a", "l": "ab"})
    first = json.loads(_written(tmp_path)["tests/fixtures/a_f.json"])["cases"][0]
    assert first == {
        "a": 3, "b": 1.5, "c": [{"a": 3}, {}], "d": "a", "e": "x", "g": [3, "a"], "h": True,
        "i": ["a", "Hello, World", ""],
        "j": "2024-02-29", "k": {"a": [1.5, 3, 0]}, "l": "ab",
    }  # fmt: skip


async def test_own_values_are_taken_and_misfits_refused(agent_tools: Make, tmp_path: Path) -> None:
    tools = _shape(agent_tools, "annotated")
    value = await _call(tools, "write_fixture_file", values={"count": 42, "name": "Zoë"})
    assert value["outcome"] == "success"
    fixture = json.loads(next(iter(_written(tmp_path).values())))
    assert all(case["count"] == 42 and case["name"] == "Zoë" for case in fixture["cases"])
    before = _written(tmp_path)
    wrong = await _call(tools, "write_fixture_file", values={"count": "many"})
    assert wrong["error"] == "No fixture written: case 1: `count` is not int"
    unknown = await _call(tools, "write_fixture_file", values={"colour": 1})
    assert unknown["error"] == "No fixture written: `colour` is no parameter"
    assert _written(tmp_path) == before
    assert [each["tool"] for each in unknown["candidate_actions"]] == ["write_fixture_file", "submit_result"]
    assert (await _call(tools, "write_fixture_file", **unknown["candidate_actions"][0]["args"]))["outcome"] == "success"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Point.length", "it takes no arguments"),
        ("takes_callable", "there is no sample for `action: Callable[[int], str]`"),
    ],
)
async def test_where_nothing_fits_the_end_says_so(agent_tools: Make, tmp_path: Path, name: str, why: str) -> None:
    tools = _shape(agent_tools, name)
    value = await _call(tools, "analyze_signature")
    assert value["candidate_actions"][0]["args"]["summary"] == f"No fixture for {name}: {why}"
    assert (await _call(tools, "write_fixture_file"))["error"] == f"No fixture written: {why}"
    assert _written(tmp_path) == {}


async def test_the_same_call_writes_the_same_file_and_edited_ones_are_left_alone(
    agent_tools: Make, tmp_path: Path
) -> None:
    tools = _shape(agent_tools, "level")
    cases = [{"name": "low"}, {"name": "high"}]
    await _call(tools, "write_fixture_file", cases=cases)
    await _call(tools, "write_fixture_file", cases=cases)
    ((path, text),) = _written(tmp_path).items()
    (tmp_path / ".agentfs/workspaces/AGENT" / path).unlink()
    fixture = json.loads(text)
    fixture["cases"][0]["name"] = "mine"
    edited = _shape(agent_tools, "level", **{path: json.dumps(fixture)})
    await _call(edited, "write_fixture_file", cases=cases)
    assert list(_written(tmp_path)) == ["tests/fixtures/shapes_level_remora.json"]


async def test_windows_line_ends_tabs_and_names_beyond_ascii_are_read(agent_tools: Make, tmp_path: Path) -> None:
    code = "def größe(länge: int,\r\n\tstraße: str = 'ß') -> str:\r\n\treturn straße * länge\r\n"
    tools = agent_tools("sample_data", {"src/ä.py": code}, "src/ä.py:größe", sandbox=False)
    await _call(tools, "write_fixture_file")
    fixture = json.loads(_written(tmp_path)["tests/fixtures/ä_größe.json"])
    assert fixture["parameters"] == {"länge": "int", "straße": "str"}


ORDERS = {
    "kit/__init__.py": "",
    "kit/parts.py": (
        "from dataclasses import dataclass, field\nfrom enum import Enum\n\n\n"
        'class Colour(Enum):\n    RED = "red"\n    BLUE = "blue"\n\n\n'
        "@dataclass\nclass Part:\n    name: str\n    colour: Colour = Colour.RED\n"
        "    sizes: list[int] = field(default_factory=list)\n"
    ),
    "kit/orders.py": (
        "from kit.parts import Colour, Part\n\n\n"
        "def order(parts: list[Part], spare: Part | None = None, colour: Colour = Colour.RED) -> int:\n"
        "    return len(parts)\n\n\ndef paint(shade: Colour) -> str:\n    return shade.value\n"
    ),
}


async def test_objects_of_the_projects_own_classes_have_samples(agent_tools: Make, tmp_path: Path) -> None:
    tools = agent_tools("sample_data", ORDERS, "kit/orders.py:order", sandbox=False)
    value = await _call(tools, "write_fixture_file")
    assert value["outcome"] == "success", value["summary"]
    cases = json.loads(_written(tmp_path)["tests/fixtures/orders_order.json"])["cases"]
    parts = [part for case in cases for part in case["parts"]]
    assert parts and all(set(part) <= {"name", "colour", "sizes"} and part["name"] for part in parts)
    assert {case["colour"] for case in cases if "colour" in case} <= {"red", "blue"}
    assert any(case.get("spare") for case in cases)


async def test_own_cases_stand_in_place_of_those_from_the_types(agent_tools: Make, tmp_path: Path) -> None:
    tools = agent_tools("sample_data", ORDERS, "kit/orders.py:order", sandbox=False)
    cases = [{"parts": []}, {"parts": [{"name": "bolt", "colour": "blue"}], "colour": "red"}]
    await _call(tools, "write_fixture_file", cases=[*cases, cases[0]])
    assert json.loads(_written(tmp_path)["tests/fixtures/orders_order.json"])["cases"] == cases


@pytest.mark.parametrize(
    "case",
    [
        {"parts": [{"colour": "red"}]},
        {"parts": [{"name": "a", "weight": 1}]},
        {"parts": [{"name": 1}]},
        {"parts": [], "colour": "green"},
        {"spare": None},
        {"parts": [], "extra": 1},
    ],
)
async def test_a_case_that_does_not_fit_the_projects_classes_is_refused(
    agent_tools: Make, tmp_path: Path, case: dict[str, Any]
) -> None:
    tools = agent_tools("sample_data", ORDERS, "kit/orders.py:order", sandbox=False)
    value = await _call(tools, "write_fixture_file", cases=[case])
    assert value["outcome"] == "error"
    assert not [path for path in _written(tmp_path) if path.endswith(".json")]


async def test_a_relative_import_is_followed_from_the_file_that_has_it(agent_tools: Make) -> None:
    files = {
        "app/main.py": "from app.parts.box import Box\n\n\ndef weigh(box: Box) -> int:\n    return box.lid.weight\n",
        "app/parts/box.py": (
            "from dataclasses import dataclass\n\nfrom .lid import Lid\n\n\n@dataclass\nclass Box:\n    lid: Lid\n"
        ),
        "app/parts/lid.py": "from dataclasses import dataclass\n\n\n@dataclass\nclass Lid:\n    weight: int\n",
    }
    tools = agent_tools("sample_data", files, "app/main.py:weigh", sandbox=False)
    value = await _call(tools, "write_fixture_file")
    assert value["result"]["fixture"]["cases"][0] == {"box": {"lid": {"weight": 3}}}


async def test_values_of_the_projects_tests_come_before_guesses(agent_tools: Make, tmp_path: Path) -> None:
    files = {
        "a.py": "def greet(who, times=1):\n    return who * times\n",
        "tests/test_a.py": (
            "from a import greet\n\n\ndef test_it():\n    assert greet('Ann', times=2) == 'AnnAnn'\n"
            "    assert greet('Bo') == 'Bo'\n    assert other.greet('Cy') == 'Cy'\n"
        ),
        "tests/fixtures/names.json": "[]\n",
    }
    tools = agent_tools("sample_data", files, "a.py:greet", sandbox=False)
    await _call(tools, "write_fixture_file")
    text = _written(tmp_path)["tests/fixtures/a_greet.json"]
    assert json.loads(text)["cases"][:2] == [{"who": "Ann", "times": 2}, {"who": "Bo"}]
    assert "Cy" not in text
    assert json.loads(text)["parameters"] == {}


@pytest.mark.parametrize(
    ("reads", "why"),
    [("pass", "no test of this project reads values from a file"), ("json.load(open('x'))", "is not written yet")],
)
async def test_a_fixture_is_for_tests_that_read_one(agent_tools: Make, reads: str, why: str) -> None:
    tests = f"import json\nfrom a import again\n\n\ndef test_it():\n    again('x', 2)\n    again('y', 3)\n    {reads}\n"
    files = {"a.py": "def again(who, times=1):\n    return who * times\n", "tests/test_a.py": tests}
    tools = agent_tools("sample_data", files, "a.py:again", sandbox=False)
    assert why in (await _call(tools, "analyze_signature"))["summary"]


async def test_an_option_without_a_type_gets_no_guess_either(agent_tools: Make) -> None:
    files = {"a.py": "def f(left=None, right=None):\n    return left or right\n"}
    value = await _call(agent_tools("sample_data", files, "a.py:f", sandbox=False), "analyze_signature")
    assert value["summary"] == "No fixture for f: no type, example, test or call says what `left` is"


@pytest.mark.parametrize(
    ("code", "tests", "why"),
    [
        ("def f(mark: str) -> str:\n    return mark\n", "", "no example, test or call shows what it is given"),
        (
            "def f(mark: str) -> str:\n    return mark\n",
            "f('x')",
            "only one example, test or call shows what it is given",
        ),
        ("def f(mark: int) -> int:\n    return mark\n", "", "no example, test or call shows what it is given"),
    ],
)
async def test_where_a_project_has_tests_types_alone_are_no_sample(
    agent_tools: Make, code: str, tests: str, why: str
) -> None:
    reads = "import json\nfrom a import f\n\n\ndef test_it():\n    json.load(open('x'))\n"
    files = {"a.py": code, "tests/test_a.py": f"{reads}    {tests or 'pass'}\n"}
    value = await _call(agent_tools("sample_data", files, "a.py:f", sandbox=False), "analyze_signature")
    assert value["summary"] == f"No fixture for f: {why}"


async def test_calls_of_a_namesake_are_no_sample(agent_tools: Make) -> None:
    code = "class Box:\n    def get(self, key):\n        return key\n\n    def put(self, key):\n        return key\n"
    more = (
        "class Bag:\n    def put(self, key):\n        return {}.get('a') or {}.get('b')\n\n\nb.put('x')\nb.put('y')\n"
    )
    for name in ("get", "put"):
        tools = agent_tools("sample_data", {"a.py": code, "b.py": more}, f"a.py:Box.{name}", sandbox=False)
        value = await _call(tools, "analyze_signature")
        assert "no type, example, test or call says what `key` is" in value["summary"]


async def test_a_parameter_that_nothing_describes_gets_no_guess(agent_tools: Make) -> None:
    tools = agent_tools("sample_data", {"a.py": "def greet(who):\n    return who\n"}, "a.py:greet", sandbox=False)
    value = await _call(tools, "analyze_signature")
    assert "no type, example, test or call says what `who` is" in value["summary"]
    assert value["knowledge_delta"]["fixture_problems"] == 0


async def test_where_no_test_reads_a_file_that_is_said_before_values_are_looked_for(agent_tools: Make) -> None:
    files = {
        "a.py": "def f(size: int) -> int:\n    return size\n",
        "tests/test_a.py": "from a import f\n\n\ndef test_it():\n    assert f(1) == f(1)\n    assert f(2) == 2\n",
    }
    value = await _call(agent_tools("sample_data", files, "a.py:f", sandbox=False), "analyze_signature")
    assert value["summary"] == "No fixture for f: no test of this project reads values from a file"
    assert value["result"]["values"] == {"size": []}


async def test_a_text_that_only_has_a_type_gets_no_guess(agent_tools: Make) -> None:
    files = {"a.py": "def shout(line: str) -> str:\n    return line.upper()\n"}
    value = await _call(agent_tools("sample_data", files, "a.py:shout", sandbox=False), "analyze_signature")
    assert value["summary"] == "No fixture for shout: its type alone does not say which text `line` is"


async def test_calls_in_the_readme_are_samples(agent_tools: Make, tmp_path: Path) -> None:
    files = {
        "a.py": "def shout(line):\n    return line.upper()\n",
        "README.md": "    >>> shout('Ann is here')\n    'ANN IS HERE'\n    >>> shout('Bo too')\n    'BO TOO'\n",
    }
    tools = agent_tools("sample_data", files, "a.py:shout", sandbox=False)
    await _call(tools, "write_fixture_file")
    cases = json.loads(_written(tmp_path)["tests/fixtures/a_shout.json"])["cases"]
    assert cases == [{"line": "Ann is here"}, {"line": "Bo too"}]
