"""What the index takes from a file is what Python itself sees in it, by a query and a folder for each language."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from remora.discovery import extract, language_of, load_language
from remora.discovery._languages import languages
from remora.discovery._syntax import parse
from remora.errors import ConfigError

ROOT = Path(__file__).parents[2]
PYTHON = languages()[".py"]
STDLIB = Path(sysconfig.get_paths()["stdlib"])
SAMPLE = ["argparse.py", "typing.py", "json/encoder.py", "asyncio/tasks.py", "dataclasses.py", "unittest/case.py"]
FIELDS = ("kind", "line", "docstring", "calls", "raises", "line_count", "complexity", "hint_coverage")


def by_ast(path: Path) -> dict[str, tuple[object, ...]]:
    """The same fields by the pass that the benchmark compares with."""
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.hub_ast import Pass
    finally:
        sys.path.pop(0)
    return {node.qualified: tuple(getattr(node, field) for field in FIELDS) for node in Pass(path.read_bytes()).run()}


@pytest.mark.parametrize("name", SAMPLE)
def test_its_fields_are_those_that_ast_gives(name: str) -> None:
    found = extract(name, (STDLIB / name).read_bytes(), PYTHON)
    ours = {node.qualified: tuple(getattr(node, field) for field in FIELDS) for node in found.nodes}
    theirs = by_ast(STDLIB / name)
    assert ours.keys() - {name for name in ours if "#" in name} <= theirs.keys()
    different = {
        (name, field): (mine, other)
        for name in ours.keys() & theirs.keys()
        if f"{name}#2" not in ours
        for field, mine, other in zip(FIELDS, ours[name], theirs[name], strict=True)
        if (set(mine) if field == "calls" else mine) != (set(other) if field == "calls" else other)  # type: ignore[call-overload]
    }
    assert different == {}


def test_signatures_are_python_again() -> None:
    found = extract("argparse.py", (STDLIB / "argparse.py").read_bytes(), PYTHON)
    shown = [node.signature for node in found.nodes if node.kind in ("function", "method")]
    assert len(shown) > 100
    for signature in shown:
        if len(signature) < 200:
            ast.parse(f"{signature}: ...")


@pytest.mark.parametrize("bracket", [b"(", b"[", b"{", b"x = (\n"])
def test_a_megabyte_of_brackets_without_an_end_is_a_file_and_nothing_else(bracket: bytes) -> None:
    source = b"def one(): ...\n" + bracket * (1_000_000 // len(bracket))
    assert [node.kind for node in extract("a.py", source, PYTHON).nodes] == ["file"]
    assert parse(source).definitions == ()


def test_a_syntax_error_hides_only_what_it_touches() -> None:
    found = extract("a.py", b"def one(): ...\n\ndef two(:\n    x\n\ndef three(): ...\n", PYTHON)
    assert {"one", "three"} <= {node.qualified for node in found.nodes}


def test_twins_are_numbered_and_decorators_belong_to_what_follows() -> None:
    source = b"@a\n@b.c(1)\ndef f(): ...\n\n\nclass A:\n    @property\n    def f(self): ...\n\n\ndef f(): ...\n"
    found = {node.qualified: node for node in extract("a.py", source, PYTHON).nodes}
    assert list(found) == ["", "f", "A", "A.f", "f#2"]
    assert (found["f"].decorators, found["f"].line, found["f#2"].decorators) == (("a", "b.c(1)"), 1, ())
    assert found["A.f"].decorators == ("property",)


def test_imports_are_known_by_the_names_they_have() -> None:
    source = b"import a.b\nimport c.d as e\nfrom . import f\nfrom ..g import (h as i,\n    j)\nfrom k import *\n"
    assert extract("p/q/r.py", source, PYTHON).imports == {
        "a": "a", "e": "c.d", "f": ".f", "i": "..g.h", "j": "..g.j",
    }  # fmt: skip


def test_bytes_of_any_kind_are_read_without_an_error() -> None:
    for source in (
        b"",
        b"\xef\xbb\xbfx = 1\n",
        b"def \xc3\xa9(): ...",
        b"\x00",
        b"class A:\r  def f(self):\r    g()\r",
    ):
        assert extract("a.py", source, PYTHON).nodes[0].kind == "file"


def test_a_second_language_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mini"
    folder.mkdir()
    (folder / "language.toml").write_text(
        'name = "mini"\nsuffixes = [".mini"]\ngrammar = "tree_sitter_python"\n'
        'test_files = ["*.spec.mini"]\n[fields]\nname = "name"\nbody = "body"\nreturns = "return_type"\n'
    )
    (folder / "index.scm").write_text("(function_definition) @function\n(call function: (identifier) @call)\n")
    mini = load_language(folder)
    found = extract("a.mini", b"def f(a): g(a)\n", mini)
    assert [(node.qualified, node.signature, node.calls) for node in found.nodes] == [
        ("", "", ()),
        ("f", "def f(a)", ("g",)),
    ]
    assert mini.is_test_file("x/a.spec.mini")
    assert not mini.is_test_file("x/a.mini")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("language.toml", "name = 7"),
        ("language.toml", "not toml"),
        ("index.scm", "(nonsense) @function"),
        ("index.scm", "(call) @surprise"),
    ],
)
def test_a_folder_that_is_no_language_is_refused_with_its_name(tmp_path: Path, file: str, text: str) -> None:
    for name in ("language.toml", "index.scm"):
        place = ROOT / "src/remora/discovery/languages/python" / name
        (tmp_path / name).write_text(text if name == file else place.read_text())
    with pytest.raises(ConfigError, match=tmp_path.name):
        load_language(tmp_path)


def test_the_folder_of_a_language_is_in_the_package() -> None:
    assert language_of("a/b.py") is PYTHON
    assert language_of("a/b.unknown") is None
    code = "from remora.discovery import language_of; assert language_of('a.py')"
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")
