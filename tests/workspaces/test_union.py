"""Two new files at one path become one, if that is clear."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.workspaces import Batch, Change
from remora.workspaces._union import union

HEAD = '"""Edge cases of `shop`."""\n\nimport pytest\n\nfrom shop import {name}\n\n\n'
TEST = "def test_{name}():\n    # Fails if `<` becomes `<=`.\n    assert {name}() == 1\n"


def test_of(name: str) -> bytes:
    return (HEAD + TEST).format(name=name).encode()


test_of.__test__ = False  # type: ignore[attr-defined]


def test_agents_that_create_the_same_file_are_both_accepted(tmp_path: Path) -> None:
    batch = Batch(tmp_path)
    for name in ("total", "add"):
        batch.add([Change("tests/test_shop.py", None, test_of(name), 0o644)], name)
    (change,) = batch.changes()
    assert change.after is not None
    text = change.after.decode()
    assert text.startswith(
        '"""Edge cases of `shop`."""\n\nimport pytest\n\nfrom shop import add, total\n\n\ndef test_total'
    )
    assert text.index("def test_total") < text.index("def test_add")
    assert text.count("# Fails if") == 2


@given(st.permutations(["a", "b", "c", "d"]))
def test_every_definition_is_there_once_in_any_order(names: list[str]) -> None:
    text = test_of(names[0])
    for name in [*names[1:], names[1]]:
        joined = union(text, test_of(name))
        assert joined is not None
        text = joined
    found = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert found == [f"test_{name}" for name in names]


@pytest.mark.parametrize(
    "other",
    [
        test_of("total").replace(b"== 1", b"== 2"),
        b'"""Others."""\n' + test_of("add").partition(b"\n")[2],
        test_of("add") + b"\n\nsetup()\n",
        b"# A licence.\n" + test_of("add"),
        b"def broken(",
        b"\xff\xfe",
    ],
)
def test_what_is_not_clear_stays_a_conflict(other: bytes) -> None:
    assert union(test_of("total"), other) is None


def test_the_standard_library_is_imported_before_pytest() -> None:
    other = test_of("add").replace(b"import pytest\n\n", b"from datetime import date\n\n")
    joined = union(test_of("total"), other)
    assert joined is not None
    assert b"from datetime import date\n\nimport pytest\n\nfrom shop import add, total\n" in joined
