"""What lint does not offer, because a maintainer would not want it: real ruff and pytest on real files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]


async def _call(tools: ScriptTools, name: str, **args: Any) -> dict[str, Any]:
    value: dict[str, Any] = (await tools.call(name, args)).value
    return value


def _now(folder: Path) -> bytes:
    upper = folder / ".agentfs/workspaces/AGENT/a.py"
    return (upper if upper.exists() else folder / "a.py").read_bytes()


async def test_a_name_for_the_result_of_a_call_is_no_error_where_nobody_lints(lint_tools: Make, tmp_path: Path) -> None:
    code = b"def f(g):\n    success = g(\n        1)\n    return 2\n"
    assert len((await _call(lint_tools(code), "run_linter"))["result"]["errors"]) == 1
    (tmp_path / "ruff.toml").unlink()
    assert (await _call(lint_tools(code), "run_linter"))["result"]["errors"] == []
    halves = b"def f(g):\n    if g:\n        seen = g()\n    else:\n        seen = 1\n    return 2\n"
    assert (await _call(lint_tools(halves), "run_linter"))["result"]["errors"] == []
    unused = b"def f(g):\n    with g() as it:\n        return 2\n"
    assert len((await _call(lint_tools(unused), "run_linter"))["result"]["errors"]) == 1


async def test_one_of_two_imports_of_a_name_stays(lint_tools: Make, tmp_path: Path) -> None:
    tools = lint_tools(b"import sys\n\n\ndef f():\n    import sys\n    return sys\n")
    await _call(tools, "apply_fix", code="safe")
    assert _now(tmp_path).count(b"import sys") == 1


async def test_a_file_does_not_begin_with_a_blank_line(lint_tools: Make, tmp_path: Path) -> None:
    await _call(lint_tools(b"import os\n\nimport sys\n\nprint = sys\n"), "apply_fix", code="safe")
    assert _now(tmp_path) == b"import sys\n\nprint = sys\n"


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (b"import sys\n\nimport os\n\nx = sys\n", b"import sys\n\nx = sys\n"),
        (b"import sys\nif sys:\n    import os\n\n    x = 1\n", b"import sys\nif sys:\n    x = 1\n"),
        (b"import sys\nimport os\nimport re\n\n\nx = sys\n", b"import sys\n\n\nx = sys\n"),
        (b"import sys\n\nimport os\nimport re\n\n\nx = sys\n", b"import sys\n\n\nx = sys\n"),
    ],
)
async def test_no_blank_lines_are_left_over(lint_tools: Make, tmp_path: Path, code: bytes, after: bytes) -> None:
    await _call(lint_tools(code), "apply_fix", code="safe")
    assert _now(tmp_path) == after


@pytest.mark.parametrize(
    "line",
    [
        "Application = None",
        "seen = weakref.proxy(g, print)",
        "app = Application()",
        "lines = g(1,\n              2)",
        "held = open(g)",
    ],
)
async def test_an_object_that_may_have_to_live_is_not_let_go(lint_tools: Make, tmp_path: Path, line: str) -> None:
    code = f"import weakref\n\n\ndef f(g, Application):\n    {line}\n    return g(weakref)\n".encode()
    tools = lint_tools(code)
    assert (await _call(tools, "run_linter"))["knowledge_delta"]["next_step"] == "edit"
    await _call(tools, "apply_fix", code="unsafe")
    assert _now(tmp_path) == code


async def test_an_import_that_a_test_misses_stays(agent_tools: Make, tmp_path: Path) -> None:
    code = "import os\n\nx = 1\n"
    own = "import importlib\n\n\ndef test_it():\n    assert hasattr(importlib.import_module('a'), 'o' + 's')\n"
    tools = agent_tools("lint", {"a.py": code, "test_a.py": own}, "a.py")
    assert "fails with the project's suite" in (await _call(tools, "apply_fix", code="safe"))["error"]
    assert _now(tmp_path) == code.encode()


async def test_a_suggestion_that_a_test_refutes_is_not_made(agent_tools: Make, tmp_path: Path) -> None:
    code = "import sys\n\n\ndef f(x):\n    seen = [1]\n    return sys._getframe().f_locals['seen']\n"
    own = "from a import f\n\n\ndef test_it():\n    assert f(1) == [1]\n"
    tools = agent_tools("lint", {"a.py": code, "test_a.py": own, "ruff.toml": 'lint.select = ["F"]\n'}, "a.py:f")
    value = await _call(tools, "apply_fix", code="unsafe")
    assert "It fails with the project's suite: test_a.py::test_it" in value["error"]
    assert _now(tmp_path) == code.encode()


async def test_what_a_test_compares_or_holds_is_meant(agent_tools: Make) -> None:
    own = "def test_it(f):\n    held = [1]\n    assert f != None\n    with f() as it:\n        pass\n"
    for files in ({}, {"ruff.toml": 'lint.select = ["F"]\n'}):
        tools = agent_tools("lint", {"tests/test_a.py": own, **files}, "tests/test_a.py:test_it")
        assert (await _call(tools, "run_linter"))["result"]["errors"] == []


@pytest.mark.parametrize(
    "code",
    [
        "from lexer import tokens\nfrom ply import yacc\n\nparser = yacc.yacc()\n",
        "from kit import client\n\n\ndef test_it(client):\n    assert client\n",
        "import sys\n\nif sys.version_info > (3,):\n    from io import BytesIO as B\nelse:\n    from c import S as B\n",
        "import sys\n\nif sys:\n    from io import BytesIO as shared\n",
        "def test_it(g):\n    def load():\n        import kit.old\n\n    g(load)\n",
        "def test_it(g):\n    with g():\n        import kit.old\n",
        "def f(g):\n    a = 'x'\n    b = 'y'\n    c = 'z'\n    return g()\n",
    ],
)
async def test_what_others_find_by_its_name_is_no_error(agent_tools: Make, code: str) -> None:
    found = await _call(
        agent_tools("lint", {"pkg/a.py": code, "pkg/b.py": "from .a import shared\n"}, "pkg/a.py"), "run_linter"
    )
    assert found["result"]["errors"] == []


async def test_a_suggestion_leaves_no_third_blank_line(agent_tools: Make, tmp_path: Path) -> None:
    files = {"pkg/__init__.py": "", "pkg/b.py": "y = 1\n", "pkg/a.py": "import os\n\nfrom .b import y\n\n\nx = os\n"}
    tools = agent_tools("lint", files, "pkg/a.py")
    await _call(tools, "apply_fix", code="unsafe")
    assert (tmp_path / ".agentfs/workspaces/AGENT/pkg/a.py").read_text() == "import os\n\n\nx = os\n"


async def test_an_import_is_not_put_into_one_long_line(lint_tools: Make) -> None:
    long = "a_name_that_is_rather_long_to_read_for_anybody"
    code = f"from kit import short, {long}, b, \\\n    {long}_too\n\nx = short\nx = {long}\nx = {long}_too\n"
    assert (await _call(lint_tools(code.encode()), "run_linter"))["result"]["errors"] == []


async def test_flake8_is_not_asked_about_white_space(agent_tools: Make) -> None:
    files = {"a.py": "x = 1 \ny=2\n", "setup.cfg": "[flake8]\nmax-line-length = 99\n"}
    assert (await _call(agent_tools("lint", files, "a.py"), "run_linter"))["result"]["errors"] == []


@pytest.mark.parametrize("line", ["    return not x in y\n", "    return x;\n", "    assert not x is y\n"])
async def test_ways_to_write_the_same_are_no_errors_where_nobody_lints(agent_tools: Make, line: str) -> None:
    tools = agent_tools("lint", {"a.py": f"def f(x, y):\n{line}"}, "a.py")
    assert (await _call(tools, "run_linter"))["result"]["errors"] == []


async def test_white_space_in_a_text_stays(lint_tools: Make, tmp_path: Path) -> None:
    code = b'TABLE = """\na |  \n"""\n'
    tools = lint_tools(code)
    await _call(tools, "apply_fix", code="unsafe")
    assert _now(tmp_path) == code


async def test_a_line_is_not_taken_away_with_its_comment(lint_tools: Make, tmp_path: Path) -> None:
    code = b"x = {\n    'a': 1,  # FreeBSD\n    'a': 1,  # Windows\n}\n"
    tools = lint_tools(code)
    await _call(tools, "apply_fix", code="unsafe")
    assert _now(tmp_path) == code


async def test_a_variable_for_those_who_read_the_frame_stays(lint_tools: Make) -> None:
    code = b"def f(x):\n    __traceback_hide__ = True\n    return x\n"
    assert (await _call(lint_tools(code), "run_linter"))["result"]["errors"] == []


async def test_names_that_only_commented_code_uses_stay(agent_tools: Make) -> None:
    code = "import os\n\n# sys.path.insert(0, os.path.abspath('.'))\n\n\n"
    code += "def f(g):\n    try:\n        g()\n    except ValueError as e:\n        # print(e)\n        pass\n"
    assert (await _call(agent_tools("lint", {"a.py": code}, "a.py"), "run_linter"))["result"]["errors"] == []


async def test_a_text_that_does_not_fit_its_arguments_is_left_to_a_person(lint_tools: Make, tmp_path: Path) -> None:
    code = b"def f(x):\n    return 'not {{!r}}'.format(x)\n"
    tools = lint_tools(code)
    assert (await _call(tools, "run_linter"))["knowledge_delta"]["lint_codes"] == {"F523": 1}
    await _call(tools, "apply_fix", code="safe")
    assert _now(tmp_path) == code


async def test_flake8_that_nobody_runs_asks_for_nothing(agent_tools: Make) -> None:
    code = "import os\n" + f"x = '{'a' * 99}'\n" * 8 + "l = 1\n" * 8
    files = {"a.py": code, "setup.cfg": "[flake8]\nmax-line-length = 99\n"}
    found = await _call(agent_tools("lint", files, "a.py"), "run_linter")
    assert [error["code"] for error in found["result"]["errors"]] == ["F401"]
    assert found["diagnostics"] == ["17 errors by flake8's settings left alone: the project does not run it here"]


async def test_a_raw_text_of_bytes_is_one_in_python_2_too(lint_tools: Make, tmp_path: Path) -> None:
    await _call(lint_tools(b"x = f(b'\\[a\\]', '\\[', u'\\[')\n"), "apply_fix", code="safe")
    assert _now(tmp_path) == b"x = f(br'\\[a\\]', r'\\[', u'\\[')\n"


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("import setting", "none"),
        ("# Does some sys.path manipulation.\n# noinspection PyUnresolvedReferences\nimport json", "none"),
        ("import json", "safe"),
        ("from setting import a", "unsafe"),
        ("from . import setting", "none"),
        ("from examples import setting", "none"),
    ],
)
async def test_a_module_of_the_project_is_imported_to_run_it(agent_tools: Make, line: str, verdict: str) -> None:
    files = {
        "examples/a.py": f"{line}\n\nprint(1)\n",
        "examples/setting.py": "import sys\n\nsys.path.insert(0, '..')\n",
    }
    tools = agent_tools("lint", {**files, "ruff.toml": 'lint.select = ["F"]\n'}, "examples/a.py")
    errors = (await _call(tools, "run_linter"))["result"]["errors"]
    assert [error["fix"]["applicability"] for error in errors] == ([] if verdict == "none" else [verdict])


async def test_the_order_of_imports_is_nobodys_concern_where_nobody_lints(lint_tools: Make, tmp_path: Path) -> None:
    code = b"import os\n\ndifflib = None\nimport sys\n\nprint(os, sys)\n"
    assert len((await _call(lint_tools(code), "run_linter"))["result"]["errors"]) == 1
    (tmp_path / "ruff.toml").unlink()
    assert (await _call(lint_tools(code), "run_linter"))["result"]["errors"] == []


async def test_no_fix_puts_one_error_in_place_of_another(agent_tools: Make, tmp_path: Path) -> None:
    # With the comma that COM812 asks for, the line is too long.
    long = "print(\n    aaaaaa + aaaaaaa\n)\n"
    files = {"a.py": long, "ruff.toml": 'line-length = 20\nlint.select = ["COM812", "E501", "E711", "F401"]\n'}
    done = await _call(agent_tools("lint", files, "a.py"), "apply_fix", code="safe")
    assert (done["outcome"], done["result"]["fixed"]) == ("error", 0)
    assert _now(tmp_path) == long.encode()
    done = await _call(agent_tools("lint", files | {"a.py": f"import os\n{long}"}, "a.py"), "apply_fix", code="safe")
    assert done["summary"] == "Fixed 1 error by safe fixes, 1 error left: COM812"
    assert _now(tmp_path) == long.encode()


async def test_no_fix_leaves_an_import_that_nothing_uses(agent_tools: Make, tmp_path: Path) -> None:
    code = "from typing import Optional\n\nx: Optional[int] = None\n"
    settings = 'target-version = "py312"\nlint.select = ["UP"{more}]\n'
    for more, has_old in (("", True), (', "F"', False)):
        tools = agent_tools("lint", {"a.py": code, "ruff.toml": settings.replace("{more}", more)}, "a.py")
        await _call(tools, "apply_fix", code="safe")
        assert (b"Optional[int]" in _now(tmp_path)) is has_old


@pytest.mark.parametrize(
    ("line", "code"),
    [("import pdb  # noqa: T100", "T100"), ("x = type(0) == int", "E721"), ("x = ' '.join(['a', 'b'])", "FLY002")],
)
async def test_rules_that_only_some_versions_of_ruff_have_on_are_nobodys_concern(
    agent_tools: Make, line: str, code: str
) -> None:
    settings = '[tool.ruff.lint]\nextend-select = ["RUF100"]\n'
    tools = agent_tools("lint", {"a.py": f"{line}\nprint(pdb, undefined)\n", "pyproject.toml": settings}, "a.py")
    found = {error["code"] for error in (await _call(tools, "run_linter"))["result"]["errors"]}
    assert "F821" in found
    assert not found & {"RUF100", "T100", code}


@pytest.mark.parametrize(("said", "steps"), [("", "suggest"), (": dict | None", "suggest"), (": dict", "edit")])
async def test_no_default_becomes_none_against_its_type(agent_tools: Make, said: str, steps: str) -> None:
    code = f"def f(x{said} = {{}}):\n    x[1] = 2\n    return x\n"
    tools = agent_tools("lint", {"a.py": code, "ruff.toml": 'lint.select = ["B"]\n'}, "a.py:f")
    assert (await _call(tools, "run_linter"))["knowledge_delta"]["next_step"] == steps


async def test_a_noqa_may_be_for_another_version_of_ruff(agent_tools: Make) -> None:
    code = "def f(self, a, b):  # noqa: PLR0913\n    return a\n"
    settings = 'preview = true\nlint.select = ["PL", "RUF10"]\n'  # RUF105 wants comments in a new form
    tools = agent_tools("lint", {"a.py": code, "ruff.toml": settings}, "a.py")
    assert (await _call(tools, "run_linter"))["result"]["errors"] == []


@pytest.mark.parametrize(
    ("code", "is_offered"),
    [
        ("def load(x):\n    print(x)\n    return x\n", True),
        ("def load(x):\n    for y in x:\n        print(y)\n        x.add(y)\n", True),
        ("def load(x):\n    print(x)\n", False),
        ("def show(x):\n    print(x)\n    return x\n", False),
        ("def load(x, verbose):\n    if verbose:\n        print(x)\n    return x\n", False),
        ("def load(x):\n    print(x, file=log)\n    return x\n", False),
        ("def load(x):\n    print('Loading')\n    y = x()\n    print('Done')\n    return y\n", False),
        ("import argparse\n\n\ndef load(x):\n    print(x)\n    return x\n", False),
        ("def load(x):\n    try:\n        return x()\n    except E as e:\n        print(e)\n        return 0\n", False),
    ],
)
async def test_what_a_program_says_is_not_taken_away(agent_tools: Make, code: str, is_offered: bool) -> None:
    node = "a.py:load" if "def load" in code else "a.py:show"
    files = {"a.py": code, "ruff.toml": 'lint.select = ["T20"]\n'}
    known = (await _call(agent_tools("lint", files, node), "run_linter"))["knowledge_delta"]
    assert (known["next_step"] == "suggest") is is_offered


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("from setuptools import setup, find_packages", "from setuptools import setup"),
        ("from setuptools import find_packages, Command", None),
        ("# find_packages() is slow\nfrom setuptools import setup, find_packages", None),
    ],
)
async def test_a_second_name_of_setuptools_goes(agent_tools: Make, tmp_path: Path, line: str, now: str | None) -> None:
    rest = "\n\nsetup = print\nsetup()\n" if now is None and "setup," not in line else "\n\nsetup()\n"
    files = {"setup.py": line + rest}
    await _call(agent_tools("lint", files, "setup.py"), "apply_fix", code="safe")
    after = tmp_path / ".agentfs/workspaces/AGENT/setup.py"
    assert (after.read_text() if after.exists() else None) == (None if now is None else now + rest)
