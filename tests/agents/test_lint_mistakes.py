"""Mistakes that count in every project, because the code or its tests prove them: real ruff and real pytest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.scripts import ScriptTools

Make = Callable[..., ScriptTools]
CHECK = "def test_it():\n    assert [1]\n    {}\n"


async def _call(tools: ScriptTools, name: str, **args: Any) -> dict[str, Any]:
    value: dict[str, Any] = (await tools.call(name, args)).value
    return value


def _codes(value: dict[str, Any]) -> list[str]:
    return [error["code"] for error in value["result"]["errors"]]


async def test_an_escape_that_python_will_refuse_is_fixed_where_no_rules_are_selected(
    agent_tools: Make, tmp_path: Path
) -> None:
    tools = agent_tools("lint", {"a.py": 'import re\n\nx = re.compile("\\d+")\n'}, "a.py")
    await _call(tools, "apply_fix", code="safe")
    assert (tmp_path / ".agentfs/workspaces/AGENT/a.py").read_text() == 'import re\n\nx = re.compile(r"\\d+")\n'


async def test_a_comparison_in_a_test_gets_its_assert_if_it_holds(agent_tools: Make, tmp_path: Path) -> None:
    tools = agent_tools("lint", {"tests/test_a.py": CHECK.format("[2] == [2]")}, "tests/test_a.py:test_it")
    value = await _call(tools, "apply_fix", code="unsafe")
    assert value["knowledge_delta"]["unsafe_fixes"] == 1
    after = (tmp_path / ".agentfs/workspaces/AGENT/tests/test_a.py").read_text()
    assert after == CHECK.format("assert [2] == [2]")


async def test_a_comparison_that_does_not_hold_is_left_to_a_person(agent_tools: Make, tmp_path: Path) -> None:
    tools = agent_tools("lint", {"tests/test_a.py": CHECK.format("[2] == [3]")}, "tests/test_a.py:test_it")
    value = await _call(tools, "apply_fix", code="unsafe")
    assert "test_it" in value["error"]
    assert not (tmp_path / ".agentfs/workspaces/AGENT/tests/test_a.py").exists()


async def test_a_comparison_in_a_test_that_is_not_run_gets_no_assert(agent_tools: Make, tmp_path: Path) -> None:
    code = "import pytest\n\n\n@pytest.mark.skip\n" + CHECK.format("[2] == [2]")
    tools = agent_tools("lint", {"tests/test_a.py": code}, "tests/test_a.py:test_it")
    assert "is not run" in (await _call(tools, "apply_fix", code="unsafe"))["error"]
    assert not (tmp_path / ".agentfs/workspaces/AGENT/tests/test_a.py").exists()


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (
            "tests/test_a.py",
            "import pytest\n\n\ndef test_it():\n    assert 1\n    with pytest.raises(E):\n        E == 1\n",
        ),
        ("tests/test_a.py", "def test_it(x):\n    x.expect(1)\n    x == 1\n"),
        ("a.py", CHECK.format("[2] == [2]")),
    ],
)
async def test_a_comparison_elsewhere_is_nobodys_mistake(agent_tools: Make, file: str, code: str) -> None:
    assert "B015" not in _codes(await _call(agent_tools("lint", {file: code}, file), "run_linter"))


async def test_a_default_that_its_function_changes_is_a_mistake(agent_tools: Make, tmp_path: Path) -> None:
    code = "def f(x, items=[]):\n    items.append(x)\n    return items\n"
    tools = agent_tools("lint", {"a.py": code}, "a.py:f")
    assert _codes(await _call(tools, "run_linter")) == ["B006"]
    assert (await _call(tools, "apply_fix", code="unsafe"))["knowledge_delta"]["unsafe_fixes"] == 1
    after = (tmp_path / ".agentfs/workspaces/AGENT/a.py").read_text()
    assert "items=None" in after and "if items is None:" in after


@pytest.mark.parametrize(
    "code",
    [
        "def f(x, items=[]):\n    return [x, *items]\n",
        "def f(x, items=[]):\n    items = list(items)\n    items.append(x)\n    return items\n",
        "def f(x, cache={}):\n    cache[x] = 1\n    return cache\n",
        "def f(x, items=[]):\n    return x.items.append(1)\n",
        "def f(x, items=[]):\n    return items\n\n\ndef g(items):\n    items.append(1)\n",
        "def f(x, items=[]):  # kept from call to call\n    items.append(x)\n",
    ],
)
async def test_a_default_that_stays_as_it_is_or_is_meant_to_last_is_no_mistake(agent_tools: Make, code: str) -> None:
    assert _codes(await _call(agent_tools("lint", {"a.py": code}, "a.py"), "run_linter")) == []


async def test_a_module_that_a_packages_all_does_not_name_is_a_leftover(agent_tools: Make, tmp_path: Path) -> None:
    code = 'import re\nimport string\n\n__all__ = ["f"]\n\n\ndef f(x):\n    return re.escape(x)\n'
    tools = agent_tools("lint", {"pkg/__init__.py": code}, "pkg/__init__.py")
    await _call(tools, "apply_fix", code="unsafe")
    after = (tmp_path / ".agentfs/workspaces/AGENT/pkg/__init__.py").read_text()
    assert after == code.replace("import string\n", "")


@pytest.mark.parametrize(
    "code",
    [
        'import string\n\n__all__ = ["f", "string"]\n\n\ndef f(x):\n    return x\n',
        'import string\n\n__all__ = ["f"]\n\nf = 1\n',
        "import string\n\n\ndef f(x):\n    return x\n",
    ],
)
async def test_other_imports_of_a_package_are_for_others(agent_tools: Make, code: str) -> None:
    tools = agent_tools("lint", {"pkg/__init__.py": code}, "pkg/__init__.py")
    assert _codes(await _call(tools, "run_linter")) == []


async def test_nobody_takes_a_type_by_a_star(agent_tools: Make) -> None:
    files = {"pkg/__init__.py": "from .a import *\n", "pkg/a.py": "import os\nfrom typing import Any\n\nx = 1\n"}
    errors = (await _call(agent_tools("lint", files, "pkg/a.py"), "run_linter"))["result"]["errors"]
    assert [error["message"] for error in errors] == ["`typing.Any` imported but unused"]


@pytest.mark.parametrize(
    ("code", "errors"),
    [
        ("import kit.b\nimport kit.a\n\nx = kit\n", ["I001"]),
        ("from pkg import x\nfrom sibling import y\n\nz = x, y\n", []),
        ("import pkg\n\nimport sibling\n\nz = pkg, sibling\n", []),
        ("import os\nimport kit\n\nz = os, kit\n", ["I001"]),
    ],
)
async def test_imports_are_sorted_within_the_groups_that_the_author_made(
    agent_tools: Make, code: str, errors: list[str]
) -> None:
    files = {"ruff.toml": 'lint.select = ["I"]\n', "pkg/__init__.py": "", "pkg/a.py": code}
    assert _codes(await _call(agent_tools("lint", files, "pkg/a.py"), "run_linter")) == errors


async def test_an_import_is_not_moved_over_a_statement_that_it_needs(agent_tools: Make, tmp_path: Path) -> None:
    code = "from __future__ import annotations\n\nimport sys\n\nsys.stdout.write(__name__)\n"
    code += "\nimport bat\nimport kit\n\nx = bat, kit\n"
    files = {"a.py": code, "ruff.toml": 'lint.select = ["E402"]\nlint.preview = true\n'}
    tools = agent_tools("lint", files, "a.py")
    await _call(tools, "apply_fix", code="unsafe")
    assert not (tmp_path / ".agentfs/workspaces/AGENT/a.py").exists()


@pytest.mark.parametrize(("file", "errors"), [("docs/conf.py", 0), ("setup.py", 0), ("pkg/a.py", 13)])
async def test_documents_on_which_nobody_runs_the_linter_are_left_alone(
    agent_tools: Make, file: str, errors: int
) -> None:
    code = "".join(f"x{number} = 'a'\n" for number in range(7))
    code += "".join(f"class C{number}(object): ...\n" for number in range(6))
    tools = agent_tools("lint", {file: code, "ruff.toml": 'lint.select = ["Q", "UP"]\n'}, file)
    assert len(_codes(await _call(tools, "run_linter"))) == errors


@pytest.mark.parametrize(("said", "moves"), [('File "demo.py", line 3, in f', False), ("See demo.py.", True)])
async def test_lines_that_a_document_names_do_not_move(
    agent_tools: Make, tmp_path: Path, said: str, moves: bool
) -> None:
    files = {"docs/demo.py": "import os\n\nx = 1\n", "docs/tutorial.rst": f"It prints::\n\n    {said}\n"}
    await _call(agent_tools("lint", files, "docs/demo.py"), "apply_fix", code="safe")
    assert (tmp_path / ".agentfs/workspaces/AGENT/docs/demo.py").exists() == moves
