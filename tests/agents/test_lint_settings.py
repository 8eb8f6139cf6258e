"""Which linter a project uses, with which settings. The module is plain Python, so it runs here as it is."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "agents" / "lint" / "tools"
CLASSIC = "--select=E4,E7,E9,F"


def module_of(name: str, **host: Any) -> ModuleType:
    """A module of the lint agent, with functions of the host."""
    if name == "exports":
        sys.modules["purpose"] = module_of("purpose")
    spec = importlib.util.spec_from_file_location(f"lint_{name}", TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for key, function in host.items():
        setattr(module, key, function)
    return module


def found(files: Mapping[str, str], path: str = "pkg/a.py") -> tuple[dict[str, Any], ModuleType]:
    async def read_file(name: str) -> str:
        if name not in files:
            raise FileNotFoundError(name)
        return files[name]

    settings = module_of("settings", read_file=read_file)
    return asyncio.run(settings.find_settings(path)), settings


def test_without_settings_only_what_every_linter_reports_is_an_error() -> None:
    settings, _ = found({})
    assert settings["flags"] == [f"{CLASSIC},W605,B006,B015"]


def test_ruffs_own_settings_are_ruffs_to_read() -> None:
    settings, _ = found({"ruff.toml": 'target-version = "py39"\nlint.select = ["E", "UP"]\n'})
    assert settings["flags"] == []


def test_ruff_settings_without_rules_mean_the_rules_of_every_version() -> None:
    settings, module = found({"pyproject.toml": '[tool.ruff]\nlint.extend-select = ["B"]\nlint.ignore = ["E741"]\n'})
    assert settings["flags"] == ["--extend-select=W605"]
    assert module.is_off("E741", "pkg/a.py", settings)
    assert module.is_off("UP031", "pkg/a.py", settings)
    assert not module.is_off("B006", "pkg/a.py", settings)


@pytest.mark.parametrize("name", [".flake8", "setup.cfg", "tox.ini"])
def test_flake8_settings_are_followed(name: str) -> None:
    text = "[flake8]\nmax-line-length = 100\nextend-ignore = E203,  # black\n    E741\nper-file-ignores =\n"
    text += "    __init__.py: F401\n    tests/*: F841,E501\nexclude = docs,\n  build\n"
    settings, module = found({name: text})
    assert settings["flags"] == [f"{CLASSIC},E501,E502,W605,B006,B015", "--line-length=100"]
    off = {
        (code, path)
        for code in ("E741", "F401", "F841", "W503", "F821")
        for path in ("pkg/a.py", "pkg/__init__.py", "tests/test_a.py", "docs/conf.py")
        if module.is_off(code, path, settings)
    }
    assert ("E741", "pkg/a.py") in off
    assert ("F401", "pkg/__init__.py") in off
    assert ("F401", "pkg/a.py") not in off
    assert ("F841", "tests/test_a.py") in off
    assert ("F821", "docs/conf.py") in off
    assert ("F821", "pkg/a.py") not in off
    assert ("W503", "pkg/a.py") in off


def test_a_flake8_select_limits_what_is_reported() -> None:
    settings, module = found({".flake8": "[flake8]\nselect = E9,F63\n"})
    assert module.is_off("F401", "a.py", settings)
    assert not module.is_off("F632", "a.py", settings)


def test_pylints_disabled_messages_are_off_by_their_codes() -> None:
    settings, module = found({".pylintrc": "[MESSAGES CONTROL]\ndisable=unused-import,\n    bare-except\n"})
    assert {code for code in ("F401", "E722", "F841") if module.is_off(code, "a.py", settings)} == {"F401", "E722"}


def test_blacks_line_length_is_told_and_no_line_is_too_long() -> None:
    settings, _ = found({"pyproject.toml": "[tool.black]\nline-length = 100\n"})
    assert "black, line length 100" in settings["words"]
    assert settings["flags"] == [f"{CLASSIC},W605,B006,B015"]


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"setup.py": "setup(python_requires='>=3.8')"}, "py38"),
        ({"setup.cfg": "[options]\npython_requires = >=3.9, <4\n"}, "py39"),
        ({"setup.py": "setup(python_requires='>=2.7, !=3.0.*')"}, "py37"),
        ({"pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.10"\n'}, "py310"),
        ({"pyproject.toml": '[project]\nrequires-python = ">=3.9"\n'}, ""),
    ],
)
def test_the_oldest_python_limits_the_syntax_of_fixes(files: dict[str, str], version: str) -> None:
    settings, _ = found(files)
    assert settings["flags"] == [f"{CLASSIC},W605,B006,B015", *([f"--target-version={version}"] if version else [])]


@pytest.mark.parametrize(
    ("others", "kept"),
    [
        ([], False),
        (["from pkg.a import os"], True),
        (["import a\na.os.getcwd()"], True),
        (["from .a import *"], True),
        (["from b import os"], False),
        (["from .a import (\n    load,\n    os,\n)"], True),
    ],
)
def test_an_import_that_others_may_use_is_no_error(others: list[str], kept: bool) -> None:
    import re

    async def search_content(pattern: str, glob: str = "") -> list[dict[str, Any]]:
        lines = [line for text in others for line in text.split("\n")]
        return [{"path": "other.py", "line": 1, "text": line} for line in lines if re.search(pattern, line)]

    async def list_dir(path: str = ".") -> list[str]:
        return ["pkg/", "setup.py"] if path == "." else []

    exports = module_of("exports", search_content=search_content, list_dir=list_dir)
    error = {
        "code": "F401",
        "message": "`os` imported but unused",
        "location": {"row": 1, "column": 8},
        "fix": {"applicability": "safe", "edits": []},
    }
    assert asyncio.run(exports.guard_imports("pkg/a.py", ["import os\n"], [error])) == ([] if kept else [error])


def test_an_import_of_the_projects_own_code_may_be_there_for_users() -> None:
    async def nothing(*_: str) -> list[dict[str, Any]]:
        return []

    async def list_dir(path: str = ".") -> list[str]:
        return ["pkg/"]

    exports = module_of("exports", search_content=nothing, list_dir=list_dir)
    fix = {"applicability": "safe", "edits": []}
    error = {"code": "F401", "message": "`pkg.b.load` imported but unused", "location": {"row": 1}, "fix": fix}
    (guarded,) = asyncio.run(exports.guard_imports("pkg/a.py", ["from pkg.b import load\n"], [error]))
    assert guarded["fix"]["applicability"] == "unsafe"


@pytest.mark.parametrize(
    ("file", "lines", "meant"),
    [
        ("pkg/a.py", ["import os\n"], False),
        ("pkg/_compat.py", ["import os\n"], True),
        ("pkg/__init__.py", ["import os\n"], True),
        ("pkg/a.py", ["import os  # for plugins\n"], True),
        ("pkg/a.py", ["import os\n", "x = {}  # type: dict[str, os.PathLike]\n"], True),
        ("pkg/a.py", ["if x:\n", "    import os\n"], False),
        ("pkg/a.py", ["except ImportError:\n", "    import os\n"], True),
        ("pkg/a.py", ["import os\n", "x = {}  # type: dict[str, close]\n"], False),
        ("pkg/a.py", ["import os\n", '"""Try it.\n', "    >>> os.getcwd()\n", '"""\n'], True),
        ("pkg/a.py", ["import os\n", '"""See :mod:`os`."""\n', "x = 1\n"], True),
        ("pkg/a.py", ["import os\n", "patch(__name__, 'os')\n"], True),
        ("pkg/a.py", ["# Kept for backward compatibility\n", "import os\n", "x = 1\n"], True),
        ("pkg/a.py", ["# The system\n", "import os\n", "x = 1\n"], False),
        ("tests/conftest.py", ["import os\n", "x = 1\n"], True),
        ("pkg/a.py", ["class A:\n", "    import os\n"], True),
        ("pkg/a.py", ["def f():\n", "    import os\n", "    return 1\n"], False),
    ],
)
def test_an_import_that_is_there_on_purpose_is_no_error(file: str, lines: list[str], meant: bool) -> None:
    async def nothing(*_: str) -> list[dict[str, Any]]:
        return []

    exports = module_of("exports", search_content=nothing, list_dir=nothing)
    fix = {"applicability": "safe", "edits": []}
    row = 1 + ["import os" in line for line in lines].index(True)
    error = {"code": "F401", "message": "`os` imported but unused", "location": {"row": row}, "fix": fix}
    assert asyncio.run(exports.guard_imports(file, lines, [error])) == ([] if meant else [error])


@pytest.mark.parametrize(
    ("file", "line", "source"),
    [
        ("cli.py", "import readline\n", "readline"),
        ("setup.py", "import setuptools\n", "setuptools"),
        ("pkg/apps.py", "    from . import signals\n", ".signals"),
        ("tests/test_all.py", "    import pkg.extra\n", "pkg.extra"),
        ("tests/test_more.py", "from .test_core import TestCore\n", ".test_core.TestCore"),
    ],
)
def test_an_import_that_does_something_stays(file: str, line: str, source: str) -> None:
    purpose = module_of("purpose")
    error = {"code": "F401", "message": "", "location": {"row": 2}, "fix": None}
    lines = ["def ready(self):\n", line, "x = 1\n"]
    assert purpose.is_on_purpose(file, lines, error, source.rpartition(".")[2], source, purpose.facts_of(lines))


def test_a_file_that_only_imports_is_there_to_be_imported_from() -> None:
    purpose = module_of("purpose")
    names = ["from json import loads\n", "from csv import (\n", "    reader,\n", ")\n"]
    assert purpose.is_facade(names)
    assert not purpose.is_facade([*names, "def load():\n"])


def test_a_name_that_stays_keeps_its_statement() -> None:
    """ruff's fix for one name takes away every unused name of the statement."""
    exports = module_of("exports")
    edits = [{"content": "", "location": {"row": 1, "column": 1}, "end_location": {"row": 2, "column": 1}}]
    errors = [
        {"code": "F401", "message": f"`typing.{name}` imported but unused", "location": {"row": 1}}
        | {"fix": {"applicability": "safe", "edits": edits}}
        for name in ("Dict", "List")
    ]
    lines = ["from typing import Dict, List\n", "x = []  # type: List[int]\n"]
    exports.KNOWN |= {("pkg/a.py", "Dict"): "", ("pkg/a.py", "List"): ""}
    assert asyncio.run(exports.guard_imports("pkg/a.py", lines, errors)) == []


def test_a_variable_that_only_a_type_comment_uses_is_no_error() -> None:
    exports = module_of("exports")
    error = {"code": "F841", "message": "Local variable `Pair` is assigned to but never used", "fix": None}
    error["location"] = {"row": 2}
    lines = ["def f():\n", "    Pair = Tuple[int, int]\n", "    found = []  # type: List[Pair]\n", "    return found\n"]
    assert asyncio.run(exports.guard_imports("pkg/a.py", lines, [error])) == []
    assert asyncio.run(exports.guard_imports("pkg/a.py", lines[:2], [error])) == [error]


def test_brackets_around_several_lines_are_left_to_a_formatter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("unused", "blocks", "mistakes", "prints"):
        monkeypatch.setitem(sys.modules, name, module_of(name))
    repairs = module_of("repairs")
    edits = [
        {"content": mark, "location": {"row": row, "column": 1}, "end_location": {"row": row, "column": 1}}
        for mark, row in (("(", 1), (")", 2))
    ]
    error = {"code": "ISC004", "location": {"row": 1}, "fix": {"applicability": "unsafe", "edits": edits}}
    assert repairs.repair(error, ["'a'\n", "'b'\n"])[0] == []
    one = [{**edit, "location": {"row": 1, "column": 1}, "end_location": {"row": 1, "column": 1}} for edit in edits]
    assert repairs.repair({**error, "fix": {"applicability": "unsafe", "edits": one}}, ["'a' 'b'\n"])[0] == one


def test_a_try_that_asks_whether_a_module_is_there_is_no_error() -> None:
    async def nothing(*_: str) -> list[dict[str, Any]]:
        return []

    exports = module_of("exports", search_content=nothing, list_dir=nothing)
    said = "`ujson` imported but unused; consider using `importlib.util.find_spec` to test for availability"
    error = {"code": "F401", "message": said, "location": {"row": 2}, "fix": None}
    assert asyncio.run(exports.guard_imports("pkg/a.py", ["try:\n", "    import ujson\n"], [error])) == []


@pytest.mark.parametrize(("settings", "taste"), [({}, True), ({".flake8": "[flake8]\n"}, False)])
def test_without_a_linter_nobody_asked_for_rules_of_taste(settings: dict[str, str], taste: bool) -> None:
    assert ("E741" in found(settings)[0]["off"]) == taste


def test_imports_stay_if_the_search_for_their_uses_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async def search_content(pattern: str) -> list[dict[str, str]]:
        raise OSError("The search took longer than 5 s")

    monkeypatch.setitem(sys.modules, "purpose", module_of("purpose"))
    exports = module_of("exports")
    monkeypatch.setattr(exports, "search_content", search_content)
    asyncio.run(exports.look_up("a.py", [("path", "os.path")]))
    assert exports.KNOWN == {("a.py", "path"): "used"}


@pytest.mark.parametrize(
    ("code", "group", "is_one"),
    [
        ("F401", "F", True),
        ("FLY002", "F", False),
        ("FURB167", "F", False),
        ("E711", "E7", True),
        ("ERA001", "E", False),
        ("PLC0414", "PL", True),
        ("PLC0414", "PLC", True),
        ("PT009", "P", False),
    ],
)
def test_a_group_of_rules_is_not_all_that_begins_with_its_letters(code: str, group: str, is_one: bool) -> None:
    assert module_of("settings").is_among(code, [group]) == is_one
