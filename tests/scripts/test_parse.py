from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from remora.errors import DefinitionError
from remora.scripts import Script, load

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
    assert loaded.check().problems == ("1:1: no result; end the file with an expression",)
