"""The `sample_data` agent writes cases that the function takes: read from its code, and tried in the sandbox."""

from __future__ import annotations

import inspect
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.context.contracts import ToolResult
from remora.sandbox import probe
from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
needs_sandbox = pytest.mark.skipif(probe().applies == "none", reason="row 22: no sandbox works here for project code")
NO_SANDBOX = "; not tried: there is no sandbox"


async def _write(tools: ScriptTools, **args: Any) -> dict[str, Any]:
    value: dict[str, Any] = (await tools.call("write_fixture_file", args)).value
    ToolResult.model_validate(value)
    assert len(value["summary"]) < 200
    assert "\n" not in value["summary"]
    return value


def _written(folder: Path) -> dict[str, Any]:
    upper = folder / ".agentfs/workspaces/AGENT"
    return {path.relative_to(upper).as_posix(): json.loads(path.read_text()) for path in upper.rglob("*.*")}


def _cases(folder: Path, name: str = "f") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _written(folder)[f"tests/fixtures/a_{name}.json"]["cases"]
    return found


READABLE = {
    "a number that a guard rejects": (
        "def f(plates: int) -> float:\n"
        "    if plates <= 0:\n        raise ValueError('cook for one guest or more')\n    return 100 / plates\n"
    ),
    "named limits": (
        "BEST, WORST = 1, 6\n\n\n"
        "def f(mark: int) -> int:\n    if not BEST <= mark <= WORST:\n        raise ValueError(mark)\n    return mark\n"
    ),
    "limits of what a list holds": (
        "LOW: int = 20\nHIGH: int = 2_000\n\n\ndef f(sizes: list[int]) -> int:\n    for size in sizes:\n"
        "        if size < LOW or size > HIGH:\n            raise ValueError(size)\n    return len(sizes)\n"
    ),
    "limits that an assert has": (
        "def f(age: int, rate: float) -> float:\n    assert 0 <= rate <= 1, 'a share'\n"
        "    if age < 18: raise ValueError(age)\n    return age * rate\n"
    ),
    "two parameters that depend on each other": (
        "def f(low: int, high: int) -> int:\n    if low >= high:\n        raise ValueError\n    return high - low\n"
    ),
    "choices": (
        "def f(mode: str) -> str:\n"
        "    if mode not in ('read', 'write'):\n        raise ValueError(mode)\n    return mode\n"
    ),
    "how many a list must hold": (
        "def f(corners: list[float]) -> float:\n"
        "    if len(corners) < 3:\n        raise ValueError\n    return sum(corners)\n"
    ),
    "a text around a mark": (
        "def f(row: str) -> float:\n    probe, sign, value = row.partition('=')\n"
        "    if not sign or not probe.strip():\n        raise ValueError(row)\n    return float(value)\n"
    ),
    "keys that are asked for": "def f(order: dict) -> float:\n    return order['net'] + order[\"tax\"]\n",
    "keys of what a list holds": (
        "def f(orders: list[dict]) -> list[float]:\n    return [order['net'] * 2 for order in orders]\n"
    ),
    "a text that is a date": (
        "from datetime import datetime\n\n\ndef f(day: str) -> int:\n"
        "    return datetime.strptime(day, '%d.%m.%Y').year\n"
    ),
}


def _takes(folder: Path, case: dict[str, Any]) -> bool:
    given = runpy.run_path(str(folder / "a.py"))["f"](**case)
    if inspect.iscoroutine(given):
        with pytest.raises(StopIteration):
            given.send(None)
    return list(given) is not None if inspect.isgenerator(given) else True


@pytest.mark.parametrize("code", READABLE.values(), ids=READABLE.keys())
async def test_what_the_code_says_it_raises_for_is_not_among_the_first_cases(
    agent_tools: Make, tmp_path: Path, code: str
) -> None:
    value = await _write(agent_tools("sample_data", {"a.py": code}, "a.py:f", sandbox=False))
    assert value["summary"].endswith(NO_SANDBOX)
    assert all(_takes(tmp_path, case) for case in _cases(tmp_path)[:2])
    assert len(_cases(tmp_path)) >= 2


TRIED = {
    "a field that is divided by": (
        "from typing import TypedDict\n\n\nclass Dish(TypedDict):\n    plates: int\n\n\n"
        "def f(dish: Dish) -> float:\n    return 10 / dish['plates']\n"
    ),
    "an index": "def f(place: int) -> int:\n    return [10, 20, 30][place]\n",
    "parts of parts": "def f(query: str) -> dict:\n    return dict(part.split('=') for part in query.split('&'))\n",
    "an option that takes few values": "def f(n: int, encoding: str = 'utf-8'):\n    return str(n).encode(encoding)\n",
    "a coroutine": "async def f(n: int) -> int:\n    if n % 2:\n        raise ValueError\n    return n\n",
    "a generator": "def f(n: int):\n    yield 1 / n\n",
}


@needs_sandbox
@pytest.mark.parametrize("code", list(TRIED.values())[:3], ids=list(TRIED)[:3])
async def test_the_function_takes_every_case_that_is_written(agent_tools: Make, tmp_path: Path, code: str) -> None:
    await _all_taken(agent_tools, tmp_path, code, "typical")


@needs_sandbox
@pytest.mark.faults
@pytest.mark.parametrize("code", [*READABLE.values(), *TRIED.values()], ids=[*READABLE, *TRIED])
async def test_the_function_takes_every_edge_case_that_is_written(agent_tools: Make, tmp_path: Path, code: str) -> None:
    await _all_taken(agent_tools, tmp_path, code, "edge")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("def f(thing, other):\n    return thing.upper() + other.lower()\n", "thing"),
        ("def f(orders, day=None):\n    return sum(order['gross'] for order in orders)\n", "orders"),
    ],
)
async def test_nothing_is_written_where_no_type_example_or_call_says_what_to_give(
    agent_tools: Make, tmp_path: Path, code: str, name: str
) -> None:
    value = await _write(agent_tools("sample_data", {"a.py": code}, "a.py:f"))
    assert value["summary"] == f"No fixture written: no type, example, test or call says what `{name}` is"
    assert _written(tmp_path) == {}


async def _all_taken(agent_tools: Make, tmp_path: Path, code: str, variant: str) -> None:
    value = await _write(agent_tools("sample_data", {"a.py": code}, "a.py:f"), variant=variant)
    assert value["outcome"] == "success", value["summary"]
    assert "not tried" not in value["summary"]
    assert len(_cases(tmp_path)) >= 2
    assert all(_takes(tmp_path, case) for case in _cases(tmp_path))
    assert list(_written(tmp_path)) == ["tests/fixtures/a_f.json"]


SHOP = """\
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Part:
    name: str
    price: Decimal
    grams: int
    size: Size = Size.SMALL

    def __post_init__(self):
        if self.grams < 0:
            raise ValueError("less than nothing")

    def at(self, day: date, factor: int) -> Decimal:
        return self.price * day.year / factor


class Till:
    def __init__(self, owner: object) -> None:
        self.owner = owner

    def add(self, cents: int) -> int:
        return cents


def load(parts: list[Part], capacity: int) -> set[Size]:
    for part in sorted(parts, key=lambda part: -part.grams):
        if part.grams > capacity:
            raise ValueError(part.name)
    return {part.size for part in parts if part.price >= Decimal(0)}
"""


@needs_sandbox
async def test_objects_are_made_from_their_fields_before_they_are_given(agent_tools: Make, tmp_path: Path) -> None:
    value = await _write(agent_tools("sample_data", {"a.py": SHOP}, "a.py:load"))
    assert value["outcome"] == "success" and "not tried" not in value["summary"], value["summary"]
    made = _cases(tmp_path, "load")
    assert len(made) >= 2 and any(case["parts"] for case in made)
    assert all(0 <= part["grams"] <= case["capacity"] for case in made for part in case["parts"])


@needs_sandbox
async def test_a_method_is_tried_on_an_object_of_its_class(agent_tools: Make, tmp_path: Path) -> None:
    value = await _write(agent_tools("sample_data", {"a.py": SHOP}, "a.py:Part.at"), variant="edge")
    assert "not tried" not in value["summary"]
    assert all(case["factor"] for case in _cases(tmp_path, "part_at"))


@needs_sandbox
async def test_where_no_object_can_be_made_the_cases_are_written_untried_and_that_is_said(
    agent_tools: Make, tmp_path: Path
) -> None:
    value = await _write(agent_tools("sample_data", {"a.py": SHOP}, "a.py:Till.add"))
    assert value["outcome"] == "success"
    assert "; not tried: TypeError" in value["summary"]
    assert _cases(tmp_path, "till_add")


@needs_sandbox
async def test_a_case_that_raises_is_left_out_replaced_and_said(agent_tools: Make, tmp_path: Path) -> None:
    tools = agent_tools("sample_data", {"a.py": TRIED["an index"]}, "a.py:f")
    value = await _write(tools)
    assert "left out: raises IndexError" in value["summary"]
    own = await _write(tools, cases=[{"place": 2}, {"place": 7}])
    assert own["outcome"] == "partial"
    assert own["diagnostics"] == ['{"place": 7} raises IndexError: list index out of range']
    assert _cases(tmp_path)[0] == {"place": 2}
    assert len(_cases(tmp_path)) == 2


@needs_sandbox
@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os\n\n\ndef f(n: int):\n    os._exit(0)\n", "its module cannot be run here"),
        ("import not_there_at_all\n\n\ndef f(n: int):\n    return n\n", "ModuleNotFoundError"),
    ],
    ids=["a program that ends", "a missing package"],
)
async def test_guesses_that_cannot_be_tried_are_not_written(
    agent_tools: Make, tmp_path: Path, code: str, why: str
) -> None:
    value = await _write(agent_tools("sample_data", {"a.py": code}, "a.py:f"))
    assert value["error"].startswith(f"No fixture written: its cases cannot be tried here: {why}")
    assert not _written(tmp_path)


@needs_sandbox
async def test_where_every_case_raises_nothing_is_written(agent_tools: Make, tmp_path: Path) -> None:
    tools = agent_tools("sample_data", {"a.py": "def f(n: int):\n    return {}[f'{n}x']\n"}, "a.py:f")
    value = await _write(tools)
    assert value["error"].startswith("No fixture written: it takes none of ")
    assert "KeyError" in value["error"]
    assert value["knowledge_delta"]["fixture_problems"] == 1
    assert not _written(tmp_path)


@needs_sandbox
@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("def f(path: str):\n    return open(path).read()\n", "FileNotFoundError"),
        ("def outer():\n    def f(n: int):\n        return n\n", "it stands inside a function"),
    ],
    ids=["a missing file", "an inner function"],
)
async def test_what_says_nothing_about_a_case_does_not_count_against_it(
    agent_tools: Make, tmp_path: Path, code: str, why: str
) -> None:
    node = "outer.f" if "outer" in code else "f"
    value = await _write(agent_tools("sample_data", {"a.py": code}, f"a.py:{node}"))
    assert value["outcome"] == "success", value["summary"]
    assert f"; not tried: {why}" in value["summary"]
    assert _cases(tmp_path, node.replace(".", "_"))


async def test_without_a_sandbox_no_code_of_the_project_is_run(agent_tools: Make, tmp_path: Path) -> None:
    mark = tmp_path / "it_ran"
    code = f"open({str(mark)!r}, 'w')\n\n\ndef f(n: int):\n    open({str(mark)!r}, 'w')\n"
    value = await _write(agent_tools("sample_data", {"a.py": code}, "a.py:f", sandbox=False))
    assert value["outcome"] == "success"
    assert value["summary"].endswith(NO_SANDBOX)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        ("Minutes of a time such as `12:30`.", {"text": "12:30"}),
        ("Minutes.\n\n    Args:\n        text: The time, such as `7:45`.\n", {"text": "7:45"}),
        ("Minutes.\n\n    >>> f('01:05')\n    65\n    ", {"text": "01:05"}),
        ("Minutes.\n\n    >>> f(text='0:10', zone=2)\n    10\n    ", {"text": "0:10", "zone": 2}),
    ],
)
async def test_examples_of_the_docstring_are_taken_first(
    agent_tools: Make, tmp_path: Path, doc: str, expected: dict[str, Any]
) -> None:
    code = f'def f(text: str, zone: int = 0) -> int:\n    """{doc}"""\n    return len(text)\n'
    await _write(agent_tools("sample_data", {"a.py": code}, "a.py:f", sandbox=False))
    assert _cases(tmp_path)[0] == expected


async def test_limits_are_read_from_the_module_that_they_are_imported_from(agent_tools: Make, tmp_path: Path) -> None:
    files = {
        "kit/__init__.py": "",
        "kit/limits.py": "LOWEST = 40\nHIGHEST = 60\n",
        "kit/a.py": (
            "from kit.limits import HIGHEST, LOWEST\n\n\ndef f(speed: int) -> int:\n"
            "    if speed > HIGHEST or speed < LOWEST:\n        raise ValueError\n    return speed\n"
        ),
    }
    await _write(agent_tools("sample_data", files, "kit/a.py:f", sandbox=False))
    assert all(40 <= case["speed"] <= 60 for case in _cases(tmp_path))


@needs_sandbox
@pytest.mark.faults
async def test_a_call_that_never_ends_is_stopped_and_left_out(agent_tools: Make, tmp_path: Path) -> None:
    code = "def f(n: int):\n    while n == 3:\n        try:\n            n += 0\n        except Exception: pass\n"
    value = await _write(agent_tools("sample_data", {"a.py": code}, "a.py:f"))
    assert "does not end" in value["summary"]
    assert 3 not in [case["n"] for case in _cases(tmp_path)]


@needs_sandbox
async def test_options_of_the_project_that_need_a_missing_plugin_do_not_keep_a_case_from_being_tried(
    agent_tools: Make,
) -> None:
    files = {"a.py": "def f(x: int) -> int:\n    return x + 1\n", "pytest.ini": "[pytest]\naddopts = --nosuchcov=a\n"}
    assert "not tried" not in (await _write(agent_tools("sample_data", files, "a.py:f")))["summary"]


@needs_sandbox
async def test_a_single_case_that_works_is_no_sample(agent_tools: Make) -> None:
    code = 'def only(s: str) -> int:\n    if s != "N":\n        raise ValueError(s)\n    return 0\n'
    made = (await agent_tools("sample_data", {"a.py": code}, "a.py:only").call("write_fixture_file", {})).value
    assert made["error"].startswith("No fixture written: only one of ")
