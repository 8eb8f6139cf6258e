from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic_monty
import pytest

from remora.errors import DefinitionError
from remora.scripts import Script, check_files, load
from remora.scripts._check import CHECK_S

WHOLE = '''"""Counts words."""
from grail import Input, external

path: str = Input("path", description="Where")
limit: int | None = Input("limit", default=None)
kind: Literal["a", "b"] = Input(
    "kind", default="a",
)
names: list[str] = Input("names", default=[])
table: dict[str, Any] = Input("table", default={})


@external
async def read_file(path: str) -> str: ...


text = await read_file(path)
len(text.split())
'''


def test_a_script_tells_its_inputs_as_json_schema(script: Callable[..., Script]) -> None:
    loaded = script(WHOLE)
    assert loaded.description == "Counts words."
    assert loaded.parameters == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where"},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "kind": {"enum": ["a", "b"], "default": "a"},
            "names": {"type": "array", "items": {"type": "string"}, "default": []},
            "table": {"type": "object", "additionalProperties": {}, "default": {}},
        },
        "required": ["path"],
    }
    assert [(spec.name, spec.parameters) for spec in loaded.externals] == [("read_file", ("path",))]
    assert loaded.check().ok


def test_blanking_the_declarations_moves_no_line(script: Callable[..., Script]) -> None:
    before, after = WHOLE.split("\n"), script(WHOLE).source.split("\n")
    assert len(before) == len(after)
    kept = [(number, line) for number, line in enumerate(after) if line.strip()]
    assert all(before[number] == line for number, line in kept)
    assert not any("Input(" in line or "external" in line for line in after)


def test_both_headers_mean_the_same(script: Callable[..., Script]) -> None:
    other = script(WHOLE.replace("from grail", "from remora.scripts"), "other")
    assert other.parameters == script(WHOLE).parameters


def test_every_problem_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.pym"
    path.write_text(
        "from grail import Input, external, run\n"
        'a = Input("a")\n'
        'b: set[int] = Input("b")\n'
        'c: int = Input("other", default="x", colour=1)\n'
        "@external\n"
        "def fetch(url: str, *rest) -> str:\n"
        "    return url\n"
        "def f():\n"
        "    yield 1\n"
        'd: str = Input("d"); e = 1\n'
        "del e\n"
    )
    with pytest.raises(DefinitionError) as caught:
        load(path)
    told = "\n".join(caught.value.problems)
    places = {problem.split(" ")[0] for problem in caught.value.problems}
    assert {"1:36:", "2:1:", "3:4:", "4:10:", "6:1:", "9:5:", "10:1:", "11:1:"} <= places
    for word in ("run", "without a type", "set[int]", "colour", "not async", "has a body", "plain parameters", "yield"):
        assert word in told
    assert all(";" in problem for problem in caught.value.problems)


@pytest.mark.parametrize(
    "text",
    [
        "x = (",
        "\0",
        "",
        '"""Only words."""\nx = 1\n',
        "import grail\n1",
        "x: str = Input('x')\nx",
        "(" * 5000 + ")" * 5000,
    ],
)
def test_what_is_no_script_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.pym"
    path.write_text(text)
    with pytest.raises(DefinitionError, match=r"bad\.pym"):
        load(path)


def test_a_missing_or_undecodable_file_is_a_definition_error(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="cannot be read"):
        load(tmp_path / "none.pym")
    (tmp_path / "latin.pym").write_bytes(b"'\xe9'")
    with pytest.raises(DefinitionError, match="UTF-8"):
        load(tmp_path / "latin.pym")


def test_check_sees_what_the_file_says_now(script: Callable[..., Script]) -> None:
    loaded = script("1")
    loaded.path.write_text("x = 1")
    assert not loaded.check().ok
    assert [str(problem) for problem in loaded.check().problems] == [
        "1:1: no result; end the file with an expression, or define `main()`"
    ]


def test_types_are_checked_at_the_places_of_the_script(script: Callable[..., Script]) -> None:
    loaded = script(WHOLE)
    loaded.path.write_text(WHOLE + 'len(text) + "a"\nwrong\nawait read_file(3)\n')
    found = [(problem.line, problem.column, problem.what) for problem in loaded.check().problems]
    assert [(line, column) for line, column, _ in found] == [(19, 1), (20, 1), (21, 17)]
    assert "`wrong`" in found[1][2]
    assert "`str`" in found[2][2]


def test_what_scripts_have_is_known_to_the_type_checker(script: Callable[..., Script]) -> None:
    body = "try:\n    r = list(map(str, [1]))\nexcept (FileNotFoundError, PermissionError) as e:\n    r = [str(e)]\n"
    assert script(body + "[r, getattr(r, 'x', None)]").check().ok


def test_all_problems_of_all_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "one.pym").write_text("class A(dict): pass\nx = 1\ndel x\n")
    (tmp_path / "two.pym").write_text("1 +")
    (tmp_path / "good.pym").write_text("1")
    found = check_files([tmp_path / name for name in ("one.pym", "two.pym", "good.pym", "none.pym")])
    assert [len(result.problems) for result in found] == [3, 1, 0, 1]
    assert found[0].problems[0].what == "class `A` has a base class"
    assert "not Python" in found[1].problems[0].what


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("Optional[int]", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("typing.Union[str, int, None]", {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
        ("list[dict[str, list[int | None]]]", None),
        ("Literal['a', 1, None]", {"enum": ["a", 1, None]}),
        ("'float'", {"type": "number"}),
    ],
)
def test_types_become_json_schema(script: Callable[..., Script], annotation: str, schema: object) -> None:
    found = script(f'from grail import Input\nx: {annotation} = Input("x")\n1').parameters["properties"]["x"]
    items = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    nested = {"type": "object", "additionalProperties": {"type": "array", "items": items}}
    assert found == (schema or {"type": "array", "items": nested})


def test_a_column_counts_characters(tmp_path: Path) -> None:
    path = tmp_path / "bad.pym"
    path.write_text("x = 1\n'é' if x else (yield)\n1")
    with pytest.raises(DefinitionError, match=r"2:16: `yield`"):
        load(path)


def test_a_grail_dir_holds_what_was_made_of_the_script(script: Callable[..., Script], tmp_path: Path) -> None:
    loaded = load(script(WHOLE).path, grail_dir=tmp_path / ".grail")
    folder = tmp_path / ".grail" / "tool"
    assert (folder / "code.py").read_text() == loaded.source
    assert (folder / "stubs.pyi").read_text() == loaded.stubs
    assert json.loads((folder / "tool.json").read_text())["parameters"] == loaded.parameters
    assert "async def read_file(path: str) -> str: ..." in loaded.stubs
    assert "kind: Literal['a', 'b']" in loaded.stubs


@pytest.mark.parametrize("header", ["grail", pytest.param("remora.scripts", marks=pytest.mark.faults)])
def test_mypy_accepts_a_script_and_finds_its_mistakes(tmp_path: Path, header: str) -> None:
    text = WHOLE.replace("from grail import", f"from typing import Any, Literal\nfrom {header} import")
    (tmp_path / "good.pym").write_text(text)
    (tmp_path / "bad.pym").write_text(
        text.replace('"limit", default=None', '"limit", default="x"') + "len(text) + 'a'\n"
    )
    load(tmp_path / "good.pym", grail_dir=tmp_path / ".grail")
    told = _mypy(tmp_path, "good.pym", "bad.pym").splitlines()
    assert [line.split(" ")[0] for line in told] == ["bad.pym:6:", "bad.pym:20:"]


def _mypy(folder: Path, *files: str) -> str:
    """What mypy says about the scripts, run as the reference tells authors to."""
    allowed = ["--disable-error-code=top-level-await", "--disable-error-code=empty-body", "--scripts-are-modules"]
    cache = f"--cache-dir={folder / 'mypy'}"
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", cache, *allowed, *files]
    environment = os.environ | {"MYPYPATH": str(folder / ".grail")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_the_type_checker_has_all_the_time_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had the second of grace after a script's steps, which have no time: too little on a busy machine."""
    given: list[dict[str, Any]] = []
    opened = pydantic_monty.Monty

    def open_noted(**settings: Any) -> pydantic_monty.Monty:
        given.append(settings)
        return opened(**settings)

    monkeypatch.setattr(pydantic_monty, "Monty", open_noted)
    assert check_files([]) == []
    assert given == [{"max_processes": 1, "request_timeout": CHECK_S, "feed_duration_limit_grace": None}]


def test_a_script_without_an_end_is_checked_and_not_run(tmp_path: Path) -> None:
    path = tmp_path / "endless.pym"
    path.write_text('"""Endless."""\n\nx = 0\nwhile x < 10:\n    x = x + 0\nx\n')
    assert check_files([path])[0].ok
