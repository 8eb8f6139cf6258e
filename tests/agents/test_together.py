"""A test is kept only if it passes on another day, and together with the project's own tests, in both orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from remora.sandbox import probe
from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
pytestmark = pytest.mark.skipif(probe().applies == "none", reason="row 22: no sandbox works here for project code")

SHOP = """
import time

STATE = {"language": "en", "calls": 0}


def greet(name: str) -> str:
    return f"Hello {name}!" if STATE["language"] == "en" else f"Hallo {name}!"


def ticket(count: int) -> int:
    STATE["calls"] += 1
    return count * 2 if count < 5 else 10


def years() -> int:
    return int(time.time() // (365.25 * 86400)) - 30


def age(born: int) -> str:
    return f"{years() - born} years" if years() > born else "new"
"""
GREET = "def test_it():\n    assert greet('Ann') == 'Hello Ann!'\n"
TICKET = "def test_it():\n    assert ticket(1) == 2\n    assert ticket(5) == 10\n    assert ticket(9) == 10\n"
LEAVES_STATE = "import shop\n\n\ndef test_german():\n    shop.STATE['language'] = 'de'\n    assert shop.greet('A')\n"
COUNTS = "import shop\n\n\ndef test_nobody_called_yet():\n    assert shop.STATE['calls'] == 0\n"
RED = "def test_red():\n    assert False\n"
NOT_IMPORTABLE = "import not_there\n\n\ndef test_never():\n    pass\n"


async def _judged(make: Make, name: str, body: str, files: Mapping[str, str]) -> dict[str, Any]:
    tools = make("test", {"shop.py": SHOP, **files}, f"shop.py:{name}")
    await tools.call("write_test_file", {"body": body})
    value: dict[str, Any] = (await tools.call("run_tests", {})).value
    return value


async def test_a_test_that_fails_after_the_projects_own_tests_is_discarded(agent_tools: Make) -> None:
    value = await _judged(agent_tools, "greet", GREET, {"tests/test_a.py": LEAVES_STATE})
    assert value["knowledge_delta"]["test_problems"] == 1
    assert "fails after the project's own tests: test_it: AssertionError" in value["error"]


@pytest.mark.faults
async def test_a_test_that_makes_one_of_the_projects_own_fail_is_discarded_and_names_it(agent_tools: Make) -> None:
    value = await _judged(agent_tools, "ticket", TICKET, {"tests/test_z.py": COUNTS})
    assert value["knowledge_delta"]["test_problems"] == 1
    assert "`tests/test_z.py::test_nobody_called_yet` of the project fails" in value["error"]


@pytest.mark.faults
async def test_what_failed_before_is_not_held_against_a_test(agent_tools: Make) -> None:
    files = {
        "tests/test_red.py": RED,
        "tests/test_broken.py": NOT_IMPORTABLE,
        "other/test_far.py": "def test_f(): pass\n",
    }
    value = await _judged(agent_tools, "ticket", TICKET, files)
    assert value["knowledge_delta"]["test_problems"] == 0, value["error"]
    assert value["knowledge_delta"]["own_tests_run"] == 2
    assert value["summary"].startswith("Tests pass, with 2 own tests, and notice ")


@pytest.mark.faults
async def test_without_own_tests_a_test_still_has_to_pass_twice(agent_tools: Make) -> None:
    once = "SEEN = []\n\n\ndef test_it():\n    SEEN.append(1)\n    assert len(SEEN) == 1 and ticket(1) == 2\n"
    value = await _judged(agent_tools, "ticket", once + TICKET.replace("test_it", "test_more"), {})
    assert "fails before and after the project's own tests: test_it" in value["error"]
    value = await _judged(agent_tools, "ticket", TICKET, {})
    assert value["summary"].startswith("Tests pass, the project has no other tests, and notice ")


@pytest.mark.faults
async def test_own_tests_that_take_too_long_are_left_out_unless_they_name_the_code(agent_tools: Make) -> None:
    slow = "def test_slow():\n    while True:\n        pass\n"
    files = {"tests/test_slow.py": slow, "tests/test_ticket.py": "import shop\n\n\ndef test_t():\n    shop.ticket(1)\n"}
    value = await _judged(agent_tools, "ticket", TICKET, files)
    assert value["knowledge_delta"]["test_problems"] == 0, value["error"]
    assert "with 1 of 2 own test files, those that name it" in value["summary"]
    value = await _judged(agent_tools, "ticket", TICKET, {"tests/test_slow.py": f"import shop\n\n\n{slow}"})
    assert "was not seen with the project's own tests for it" in value["error"]


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("clock", "datetime.datetime.now().year == THIS_YEAR"),
        pytest.param("clock", "time.localtime().tm_year == THIS_YEAR", marks=pytest.mark.faults),
        pytest.param("clock", "datetime.date.today().year == THIS_YEAR", marks=pytest.mark.faults),
        pytest.param("clock", "time.strftime('%Y') == str(THIS_YEAR)", marks=pytest.mark.faults),
        pytest.param("clock", "time.time_ns() > YESTERDAY * 10**9", marks=pytest.mark.faults),
        pytest.param("time zone", "time.localtime(0).tm_hour == 0", marks=pytest.mark.faults),
        pytest.param("hash seed", "os.environ.get('PYTHONHASHSEED') is None", marks=pytest.mark.faults),
        pytest.param("language", "locale.setlocale(locale.LC_ALL, '') != 'C'", marks=pytest.mark.faults),
    ],
)
async def test_a_test_that_depends_on_the_machine_is_discarded_and_says_on_what(
    agent_tools: Make, kind: str, check: str
) -> None:
    import time

    check = check.replace("THIS_YEAR", str(time.gmtime().tm_year)).replace("YESTERDAY", str(int(time.time()) - 86400))
    body = f"import datetime, locale, os, time\n\n\n{TICKET}    assert {check}\n"
    value = await _judged(agent_tools, "ticket", body, {})
    assert f"it depends on the {kind} of the machine" in value["error"]


@pytest.mark.faults
async def test_what_the_clock_says_through_a_helper_is_not_pinned(agent_tools: Make) -> None:
    tools = agent_tools("test", {"shop.py": SHOP}, "shop.py:age")
    text = (await tools.call("write_test_file", {})).value["result"]["text"]
    assert " years" not in text


MACHINE = """
import os
import time


def hour(moment: int) -> int:
    return time.localtime(moment).tm_hour + moment * 0


def speaks(word: str) -> str:
    return os.environ.get("LANGUAGE", "en") + word


def first(words: str) -> str:
    return list({f"{words}{number}" for number in range(50)})[0]
"""


@pytest.mark.faults
@pytest.mark.parametrize("name", ["hour", "speaks", "first"])
async def test_what_the_time_zone_the_language_or_the_hash_seed_decides_is_not_pinned(
    agent_tools: Make, name: str
) -> None:
    tools = agent_tools("test", {"shop.py": MACHINE}, f"shop.py:{name}")
    text = (await tools.call("write_test_file", {})).value["result"]["text"]
    assert text == ""


@pytest.mark.parametrize(
    ("settings", "plugin"),
    [
        ('[tool.pytest.ini_options]\naddopts = "--nosuchcov=shop"\n', "--nosuchcov=shop needs a plugin that"),
        ('[tool.pytest.ini_options]\nrequired_plugins = "pytest-not-there"\n', "pytest-not-there is required and"),
    ],
)
@pytest.mark.faults
async def test_options_that_need_a_missing_plugin_are_left_out_and_named(
    agent_tools: Make, settings: str, plugin: str
) -> None:
    value = await _judged(agent_tools, "ticket", TICKET, {"pyproject.toml": settings})
    assert value["knowledge_delta"]["test_problems"] == 0, value["error"]
    (note,) = value["diagnostics"]
    assert note == f"Run without the project's pytest options: {plugin} is not installed; install it in `.venv`"


@pytest.mark.faults
async def test_a_path_of_this_machine_is_not_pinned(agent_tools: Make, tmp_path: Path) -> None:
    code = "from pathlib import Path\n\n\ndef place(name: str) -> Path:\n    return Path(__file__).parent / name\n"
    tools = agent_tools("test", {"shop.py": code}, "shop.py:place")
    text = (await tools.call("write_test_file", {})).value["result"]["text"]
    assert str(tmp_path) not in text
    body = f"def test_it():\n    assert str(place('a')) == {str(tmp_path / 'a')!r}\n"
    await tools.call("write_test_file", {"body": body})
    assert "names the folder of the project" in (await tools.call("run_tests", {})).value["error"]


OUTWARD = """
import os
import platform
import socket

CURRENT = None


class Failed(Exception):
    pass


class Part:
    def __init__(self, size: int = 3):
        self.size = size

    def width(self):
        return self.size


def host(word: str) -> str:
    "The machine and a word."
    return platform.node() + word


def ask(word: str) -> int:
    try:
        socket.create_connection((word, 1), 0.01)
    except OSError as error:
        raise Failed(word) from error
    return len(word) + 1


def load(word: str) -> int:
    try:
        import nowhere
    except ImportError:
        raise Failed(word)
    return nowhere.load(word) + 1


def fail(word: str) -> int:
    if word:
        raise Exception("no")
    return 1 / 0


def start(word: str) -> None:
    global CURRENT
    CURRENT = word


def current(word: str) -> str:
    return word if CURRENT is None else CURRENT + word
"""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("host", "cannot be written down"),
        ("ask", "leaves its process: socket.getaddrinfo"),
        ("load", "raises Failed because of this machine: ModuleNotFoundError"),
        ("fail", "raises Exception, as any mistake may"),
        ("current", "depends on `CURRENT`, which other functions set"),
        ("Part.width", "nothing in the code or its documents proves a result"),
    ],
)
async def test_what_only_this_machine_or_moment_does_is_no_test(agent_tools: Make, name: str, why: str) -> None:
    tools = agent_tools("test", {"shop.py": OUTWARD}, f"shop.py:{name}")
    value = (await tools.call("write_test_file", {})).value
    assert why in value["error"], value["result"]["text"]


async def test_an_error_that_is_its_own_cause_is_tested(agent_tools: Make) -> None:
    code = (
        "def check(kind: str = 'a') -> int:\n    try:\n        if kind not in ('a', 'b'):\n"
        "            raise KeyError(kind)\n    except KeyError as error:\n        raise error from error\n"
        "    return len(kind) + 3\n"
    )
    value = (await agent_tools("test", {"shop.py": code}, "shop.py:check").call("write_test_file", {})).value
    assert "pytest.raises(KeyError)" in value["result"]["text"], value


async def test_words_of_a_docstring_are_no_variables_that_others_set(agent_tools: Make) -> None:
    code = (
        '"""Rates.\n\n    global configuration for rates is elsewhere\n"""\n\n\n'
        "def rate(kind: str = 'a') -> int:\n    for one in ('a', 'b'):\n        if one == kind:\n            return 3\n"
        "    return 4\n"
    )
    value = (await agent_tools("test", {"shop.py": code}, "shop.py:rate").call("write_test_file", {})).value
    assert "which other functions set" not in str(value)
    assert "assert rate(" in value["result"]["text"], value


async def test_one_error_of_one_line_gets_one_test(agent_tools: Make) -> None:
    code = (
        "def check(word: str, kind: str = 'a') -> int:\n    'Check a word.'\n"
        "    if kind not in ('a', 'b', 'c') or word < 'k':\n"
        "        raise KeyError(word)\n    return 1\n"
    )
    text = (await agent_tools("test", {"shop.py": code}, "shop.py:check").call("write_test_file", {})).value["result"][
        "text"
    ]
    assert text.count("pytest.raises(KeyError)") == 1
    assert "becomes another text." in text or "'a', 'b'" not in text
