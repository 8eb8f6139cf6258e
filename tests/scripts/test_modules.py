"""Modules of scripts: explicit imports, one namespace that cannot surprise, and errors at the author's own lines."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.errors import DefinitionError, ToolFailed
from remora.scripts import check_files, load
from remora.scripts._modules import ScriptFiles
from remora.scripts._scopes import free_names, top_level_names

ROOT = Path(__file__).parents[2]
SHARED = sorted((ROOT / "src" / "remora" / "scripts" / "shared").glob("[!_]*.py"))
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


def problems(folder: Path, script: str, **modules: str) -> tuple[str, ...]:
    """What loading says of the script, without the file."""
    with pytest.raises(DefinitionError) as error:
        load(write(folder, script, **modules))
    return tuple(error.value.problems)


async def read_file(path: str) -> str:
    return f"a b {path}"


async def test_a_module_gives_functions_constants_and_host_functions(tmp_path: Path) -> None:
    path = write(
        tmp_path, 'from counting import words_of\npath: str = Input("path")\nawait words_of(path)\n', counting=COUNTING
    )
    script = load(path)
    assert [item.name for item in script.inputs] == ["path"]
    assert [item.name for item in script.externals] == ["read_file"]
    assert await script.run({"path": "c"}, {"read_file": read_file}) == 3
    assert check_files([path])[0].ok


async def test_a_module_may_import_others_and_runs_once(tmp_path: Path) -> None:
    more = "from counting import words\n\n\ndef twice(text):\n    return 2 * words(text)\n"
    path = write(
        tmp_path, 'from counting import words\nfrom more import twice\n[words("a b"), twice("a b")]\n',
        counting=COUNTING, more=more,
    )  # fmt: skip
    script = load(path)
    assert [part.file for part in script.modules] == ["counting.py", "more.py"]
    assert await script.run({}, {"read_file": read_file}) == [2, 4]


def test_two_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    left = "from right import b\n\n\ndef a(n):\n    return b(n - 1) if n else 0\n"
    right = "from left import a\n\n\ndef b(n):\n    return a(n)\n"
    found = problems(tmp_path, "from left import a\na(3)\n", left=left, right=right)
    assert any("`left.py` imports itself, through other modules" in problem for problem in found)


async def test_an_error_names_the_file_and_line_of_its_author(tmp_path: Path) -> None:
    module = "def half(n):\n    return n / 0\n"
    inside = load(write(tmp_path, "from halves import half\n\nhalf(1)\n", halves=module))
    with pytest.raises(ToolFailed, match=r"^halves\.py:2: ZeroDivisionError"):
        await inside.run()
    outside = load(write(tmp_path, "from halves import half\n\n1 / 0\n", halves=module))
    with pytest.raises(ToolFailed, match=r"^count\.pym:5: ZeroDivisionError"):
        await outside.run()


def test_types_are_checked_in_modules(tmp_path: Path) -> None:
    path = write(tmp_path, "from halves import half\nhalf(1)\n", halves='def half(n):\n    return len(n) + "a"\n')
    (problem,) = check_files([path])[0].problems
    assert problem.what.startswith("halves.py:2:12: Operator `+` is not supported")


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("def half(n:\n", "halves.py:1:9: not Python"),
        ("def half(n):\n    yield n\n", "halves.py:2:5: `yield` does not work in scripts"),
        ('from grail import Input\nhalf: int = Input("half")\n', "an input in a module"),
        ("def other(n):\n    return n\n", "`half` cannot be imported"),
        ("import subprocess\n\n\ndef half(n):\n    return n\n", "module `subprocess` does not exist in scripts"),
    ],
)
def test_modules_follow_the_rules_of_scripts(tmp_path: Path, module: str, expected: str) -> None:
    found = problems(tmp_path, "from halves import half\nhalf\n", halves=module)
    assert any(expected in problem for problem in found)


def test_a_broken_module_is_reported_once_and_not_as_missing(tmp_path: Path) -> None:
    assert len(problems(tmp_path, "from halves import half\nhalf\n", halves="def half(n:\n")) == 1


@pytest.mark.parametrize("module", ["missing", "folder.halves", "linked", "remora.scripts.shared.missing"])
def test_nothing_else_can_be_imported(tmp_path: Path, module: str) -> None:
    (tmp_path / "outside.py").write_text("half = 1\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "linked.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(DefinitionError, match=f"module `{module}` does not exist"):
        load(write(tmp_path / "tools", f"from {module} import half\nhalf\n"))


def test_a_module_of_the_interpreter_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    script = load(write(tmp_path, "from json import dumps\ndumps({})\n", json="def dumps(value):\n    return 1\n"))
    assert script.modules == ()


# Each file defines or imports what it uses.


def test_a_module_cannot_use_a_name_of_the_script(tmp_path: Path) -> None:
    script = 'from halves import half\npath: str = Input("path")\nhalf()\n'
    (problem,) = problems(tmp_path, script, halves="def half():\n    return path[:2]\n")
    assert "halves.py:2:12: `path` is not defined in this file; define or import it here" in problem


def test_a_script_cannot_use_a_name_of_a_module_that_it_does_not_import(tmp_path: Path) -> None:
    found = problems(tmp_path, "from counting import words\n[words('a'), SPACE, re]\n", counting=COUNTING)
    assert [problem.split(";")[0] for problem in found] == [
        "4:14: `SPACE` is not defined in this file",
        "4:21: `re` is not defined in this file",
    ]


def test_an_undefined_name_is_found_when_the_script_is_loaded(tmp_path: Path) -> None:
    assert "3:9: `lenght` is not defined" in problems(tmp_path, "[1 + 1, lenght([])]\n")[0]


@pytest.mark.parametrize(
    "code",
    [
        "def f(a, /, b=1, *c, d, **e):\n    return a, b, c, d, e\nf(1, d=2)",
        "[x + y for x in range(3) if (y := x)] + [y]",
        "def f():\n    global made\n    made = 1\nf()\nmade",
        "match [1, 2]:\n    case [first, *rest]:\n        pass\n    case {'a': value, **more}:\n        pass\n1",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    said = str(error)\nsaid",
        "class A:\n    size = 1\n    double = size * 2\n    def get(self):\n        return self.size\nA().get()",
        "import os.path as p, json\n[p, json]",
        "f = lambda a, b=len: b(a)\nf([])",
        "def f(x: Unknown) -> Other:\n    y: Third = x\n    return y\nf(1)",
        "for i, (j, *k) in []:\n    pass\nelse:\n    j = 0\n[j]",
    ],
)
def test_names_that_python_finds_are_no_problem(tmp_path: Path, code: str) -> None:
    tree = ast.parse(code)
    undefined = [node.id for node in free_names(tree, names_of(tree)) if not hasattr(builtins, node.id)]
    assert undefined == []


def names_of(tree: ast.Module) -> set[str]:
    return set(top_level_names(tree, ast.walk(tree)))


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(bound=st.sets(NAMES), used=st.lists(NAMES, max_size=6), inner=st.sets(NAMES))
def test_what_is_free_is_what_is_used_and_bound_nowhere(bound: set[str], used: list[str], inner: set[str]) -> None:
    lines = [f"{name} = 1" for name in sorted(bound)]
    lines += [f"def f({', '.join(sorted(inner))}):", f"    return [{', '.join(used)}]"]
    tree = ast.parse("\n".join(lines))
    assert names_of(tree) == {*bound, "f"}
    assert {node.id for node in free_names(tree, names_of(tree))} == set(used) - bound - inner


# A name means the same in all files that run together.


@pytest.mark.parametrize(
    ("script", "modules", "expected"),
    [
        ("from m import a\nb = 2\na() + b\n", {"m": "def a():\n    return b()\ndef b():\n    return 1\n"}, "`b`"),
        ("from m import a\na = a() + 1\na\n", {"m": "def a():\n    return 1\n"}, "`a`"),
        ("from m import a\nfor b in range(2):\n    a()\n1\n", {"m": "b = 5\ndef a():\n    return b\n"}, "`b`"),
        ('from m import a\nb: int = Input("b")\na() + b\n', {"m": "b = 5\ndef a():\n    return b\n"}, "`b`"),
        (
            "from m import a\nfrom n import c\n[a(), c()]\n",
            {
                "m": "def a():\n    return b()\ndef b():\n    return 1\n",
                "n": "def c():\n    return b()\ndef b():\n    return 2\n",
            },
            "`b` of `m.py` is another one in `n.py`",
        ),
        (
            "from m import a\nfrom datetime import time\n[a(), time]\n",
            {"m": "import time\ndef a():\n    return time\n"},
            "`time`",
        ),
        (
            "from m import a\n[a([1]), max([2])]\n",
            {"m": "def a(n):\n    return max(n)\ndef max(n):\n    return 0\n"},
            "`max` is another one in `m.py`",
        ),
    ],
)
def test_a_name_with_two_meanings_is_refused(
    tmp_path: Path, script: str, modules: dict[str, str], expected: str
) -> None:
    (problem,) = problems(tmp_path, script, **modules)
    assert expected in problem
    assert "rename one" in problem


async def test_files_may_import_the_same_things(tmp_path: Path) -> None:
    module = HEAD + "import re\nfrom json import dumps\n\n\ndef a():\n    return dumps(re.findall('a', 'aa'))\n"
    script = "import re\nfrom json import dumps\nfrom m import a\n[a(), dumps(re.findall('b', 'b'))]\n"
    assert await load(write(tmp_path, script, m=module)).run() == ['["a", "a"]', '["b"]']


# Modules that ship with Remora.


async def test_every_script_may_import_shared_modules(tmp_path: Path) -> None:
    call = 'kind_of({"name": "n", "annotation": None, "default": "3"})'
    path = write(tmp_path, f"from remora.scripts.shared.samples import kind_of\n{call}\n")
    assert check_files([path])[0].ok
    assert await load(path).run() == "int"
    assert [part.file for part in load(path).modules] == ["remora/scripts/shared/samples.py"]


def test_a_shared_module_never_imports_a_file_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "places.py").write_text("def digest(text):\n    return 'mine'\n")
    files = ScriptFiles(tmp_path)
    assert files.module("places") == ("places.py", "def digest(text):\n    return 'mine'\n")
    assert files.module("places", importer="remora.scripts.shared.samples") is None
    found = files.module("remora.scripts.shared.places", importer="places")
    assert found is not None
    assert found[0] == "remora/scripts/shared/places.py"


@pytest.mark.parametrize("file", SHARED, ids=lambda path: path.stem)
def test_a_shared_module_loads_alone_and_is_typed(tmp_path: Path, file: Path) -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    name = next(node.name for node in ast.parse(file.read_text()).body if isinstance(node, functions))
    path = write(tmp_path, f"from remora.scripts.shared.{file.stem} import {name}\n1\n")
    assert check_files([path], our_host=True)[0].ok


def test_ruff_finds_no_undefined_name_in_any_file_of_an_agent() -> None:
    files = [path for path in (ROOT / "agents").rglob("*") if path.suffix in (".py", ".pym")]
    argv = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--select=F821",
        "--extension=pym:python",
        *map(str, files),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert len(files) > 30
    assert done.returncode == 0, done.stdout
