"""Scripts that take in code from files beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora.errors import DefinitionError, ToolFailed
from remora.scripts import check_files, load

HEAD = '"""Counts."""\nfrom remora.scripts import Input, external\n'
COUNTING = '''"""Counting."""
from remora.scripts import external

import re


@external
async def read_file(path: str) -> str: ...


SPACE = r"\\s+"


def words(text):
    return len(re.split(SPACE, text))


async def words_of(path):
    return words(await read_file(path))
'''


def write(folder: Path, script: str, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    path = folder / "count.pym"
    path.write_text(HEAD + script)
    return path


async def read_file(path: str) -> str:
    return f"a b {path}"


async def test_functions_constants_and_host_functions_come_from_beside(tmp_path: Path) -> None:
    path = write(
        tmp_path, 'from counting import words_of\npath: str = Input("path")\nawait words_of(path)\n', counting=COUNTING
    )
    script = load(path)
    assert [item.name for item in script.inputs] == ["path"]
    assert [item.name for item in script.externals] == ["read_file"]
    assert await script.run({"path": "c"}, {"read_file": read_file}) == 3
    assert check_files([path])[0].ok


async def test_what_is_taken_in_may_take_in_more_and_stands_there_once(tmp_path: Path) -> None:
    more = "from counting import words\n\n\ndef twice(text):\n    return 2 * words(text)\n"
    path = write(
        tmp_path, 'from counting import words\nfrom more import twice\n[words("a b"), twice("a b")]\n',
        counting=COUNTING, more=more,
    )  # fmt: skip
    script = load(path)
    assert [part.file for part in script.shared] == ["counting.py", "more.py"]
    assert await script.run({}, {"read_file": read_file}) == [2, 4]


def test_two_files_that_take_in_each_other_are_refused(tmp_path: Path) -> None:
    left = "from right import b\n\n\ndef a(n):\n    return b(n - 1) if n else 0\n"
    right = "from left import a\n\n\ndef b(n):\n    return a(n)\n"
    with pytest.raises(DefinitionError, match=r"`left\.py` takes in itself, by way of others"):
        load(write(tmp_path, "from left import a\na(3)\n", left=left, right=right))


async def test_an_error_is_told_with_the_file_and_line_it_stands_in(tmp_path: Path) -> None:
    shared = "def half(n):\n    return n / 0\n"
    inside = load(write(tmp_path, "from halves import half\n\nhalf(1)\n", halves=shared))
    with pytest.raises(ToolFailed, match=r"^halves\.py:2: ZeroDivisionError"):
        await inside.run()
    outside = load(write(tmp_path, "from halves import half\n\n1 / 0\n", halves=shared))
    with pytest.raises(ToolFailed, match=r"^count\.pym:5: ZeroDivisionError"):
        await outside.run()


def test_types_are_checked_in_what_is_taken_in(tmp_path: Path) -> None:
    path = write(tmp_path, "from halves import half\nhalf(1)\n", halves="def half(n):\n    return m / 2\n")
    (problem,) = check_files([path])[0].problems
    assert problem.what.startswith("halves.py:2:12: Name `m` used when not defined")


@pytest.mark.parametrize(
    ("shared", "told"),
    [
        ("def half(n:\n", "halves.py:1:9: not Python"),
        ("def half(n):\n    yield n\n", "halves.py:2:5: `yield` does not work in scripts"),
        ('from grail import Input\nhalf: int = Input("half")\n', "an input in shared code"),
        ("def other(n):\n    return n\n", "`half` cannot be imported"),
        ("import subprocess\n\n\ndef half(n):\n    return n\n", "module `subprocess` does not exist in scripts"),
    ],
)
def test_code_from_beside_is_held_to_the_same_rules(tmp_path: Path, shared: str, told: str) -> None:
    with pytest.raises(DefinitionError) as error:
        load(write(tmp_path, "from halves import half\nhalf\n", halves=shared))
    assert any(told in problem for problem in error.value.problems)


def test_code_that_is_broken_is_told_once_and_not_as_missing(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError) as error:
        load(write(tmp_path, "from halves import half\nhalf\n", halves="def half(n:\n"))
    assert len(error.value.problems) == 1


@pytest.mark.parametrize("module", ["missing", "folder.halves", "linked"])
def test_nothing_is_taken_in_from_elsewhere(tmp_path: Path, module: str) -> None:
    (tmp_path / "outside.py").write_text("half = 1\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "linked.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(DefinitionError, match=f"module `{module}` does not exist"):
        load(write(tmp_path / "tools", f"from {module} import half\nhalf\n"))


def test_a_module_of_the_interpreter_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    script = load(write(tmp_path, "from json import dumps\ndumps({})\n", json="def dumps(value):\n    return 1\n"))
    assert script.shared == ()
