"""Which nodes a file has, and which lines are theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora.discovery import TreeSitterDiscovery
from remora.nodes import CodeNode, NodeType


def find(
    tmp_path: Path, source: str | bytes, name: str = "a.py", problems: tuple[str, ...] = ()
) -> dict[str, CodeNode]:
    tmp_path.joinpath(name).write_bytes(source.encode() if isinstance(source, str) else source)
    discovery = TreeSitterDiscovery(tmp_path)
    nodes = discovery.find([tmp_path])
    assert discovery.problems == list(problems)
    assert len({node.node_id for node in nodes}) == len(nodes)
    return {node.node_id: node for node in nodes}


def lines(node: CodeNode) -> tuple[int, int]:
    return node.lines.first, node.lines.last


def owned(node: CodeNode) -> list[tuple[int, int]]:
    return [(run.first, run.last) for run in node.owned]


SHOP = """\
import os


class Cart:
    size = 3

    def add(self, item):
        def log():
            print(item)

        log()

    class Line:
        def total(self):
            return 1


def load(path):
    return os.fspath(path)
"""


def test_every_definition_is_a_node_named_by_its_path_and_qualified_name(tmp_path: Path) -> None:
    nodes = find(tmp_path, SHOP)
    assert {node_id: node.node_type.value for node_id, node in nodes.items()} == {
        "a.py": "file",
        "a.py:Cart": "class",
        "a.py:Cart.add": "method",
        "a.py:Cart.add.log": "function",
        "a.py:Cart.Line": "class",
        "a.py:Cart.Line.total": "method",
        "a.py:load": "function",
    }
    assert [node.name for node in nodes.values()] == ["a.py", "Cart", "add", "log", "Line", "total", "load"]
    assert {node.file_path for node in nodes.values()} == {Path("a.py")}


def test_a_line_belongs_to_the_innermost_function_and_all_others_to_the_file(tmp_path: Path) -> None:
    nodes = find(tmp_path, SHOP)
    assert owned(nodes["a.py"]) == [(1, 6), (12, 13), (16, 17)]
    assert owned(nodes["a.py:Cart.add"]) == [(7, 7), (10, 11)]
    assert owned(nodes["a.py:Cart.add.log"]) == [(8, 9)]
    assert owned(nodes["a.py:load"]) == [(18, 19)]


def test_a_class_owns_its_lines_outside_methods_and_inner_classes(tmp_path: Path) -> None:
    nodes = find(tmp_path, SHOP)
    assert lines(nodes["a.py:Cart"]) == (4, 15)
    assert owned(nodes["a.py:Cart"]) == [(4, 6), (12, 12)]
    assert owned(nodes["a.py:Cart.Line"]) == [(13, 13)]


def test_a_node_begins_at_its_first_decorator(tmp_path: Path) -> None:
    nodes = find(
        tmp_path,
        "import f\n\n@f.a\n@f.b(\n    1,\n)\ndef g():\n    pass\n\n@f.c\nclass D:\n    @f.d\n    def e(self): ...\n",
    )
    assert lines(nodes["a.py:g"]) == (3, 8)
    assert nodes["a.py:g"].text.startswith("@f.a\n@f.b(\n")
    assert lines(nodes["a.py:D"]) == (10, 13)
    assert lines(nodes["a.py:D.e"]) == (12, 13)
    assert nodes["a.py:D.e"].node_type is NodeType.METHOD


def test_an_async_function_is_a_function(tmp_path: Path) -> None:
    nodes = find(tmp_path, "async def go():\n    async def inner():\n        pass\n    await inner()\n")
    assert lines(nodes["a.py:go"]) == (1, 4)
    assert lines(nodes["a.py:go.inner"]) == (2, 3)


def test_twins_are_numbered_from_the_second_on(tmp_path: Path) -> None:
    source = (
        "from typing import overload\n"
        "@overload\ndef f(x: int) -> int: ...\n"
        "@overload\ndef f(x: str) -> str: ...\n"
        "def f(x):\n    return x\n"
        "if f:\n    def g(): return 1\nelse:\n    def g(): return 2\n"
    )
    nodes = find(tmp_path, source)
    assert [node_id for node_id in nodes if ":" in node_id] == [
        "a.py:f", "a.py:f#2", "a.py:f#3", "a.py:g", "a.py:g#2",
    ]  # fmt: skip
    assert lines(nodes["a.py:f#3"]) == (6, 7)
    assert nodes["a.py:g#2"].name == "g"


def test_a_conditional_method_is_a_method_of_its_class(tmp_path: Path) -> None:
    nodes = find(tmp_path, "class A:\n    if True:\n        def f(self): ...\n")
    assert nodes["a.py:A.f"].node_type is NodeType.METHOD


def test_a_class_in_a_function_leaves_its_lines_to_the_function(tmp_path: Path) -> None:
    nodes = find(tmp_path, "def f():\n    class A:\n        x = 1\n        def m(self): ...\n    return A\n")
    assert owned(nodes["a.py:f"]) == [(1, 3), (5, 5)]
    assert owned(nodes["a.py:f.A"]) == [(2, 3)]
    assert owned(nodes["a.py:f.A.m"]) == [(4, 4)]


def test_a_function_that_is_all_one_inner_function_keeps_its_own_line(tmp_path: Path) -> None:
    nodes = find(tmp_path, "def f():\n    def g(): return 1")
    assert owned(nodes["a.py:f"]) == [(1, 1)]
    assert owned(nodes["a.py:f.g"]) == [(2, 2)]
    assert owned(nodes["a.py"]) == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_numbers_are_the_same_whatever_ends_a_line(tmp_path: Path, end: str) -> None:
    nodes = find(tmp_path, SHOP.replace("\n", end))
    assert owned(nodes["a.py"])[0] == (1, 6)
    assert lines(nodes["a.py:load"]) == (18, 19)
    assert nodes["a.py:load"].text == f"def load(path):{end}    return os.fspath(path){end}"


def test_tabs_indent(tmp_path: Path) -> None:
    nodes = find(tmp_path, "class A:\n\tdef f(self):\n\t\tif self:\n\t\t\treturn 1\n\tdef g(self):\n\t\treturn 2\n")
    assert lines(nodes["a.py:A.f"]) == (2, 4)
    assert nodes["a.py:A.g"].text == "\tdef g(self):\n\t\treturn 2\n"


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    nodes = find(tmp_path, b"\xef\xbb\xbfdef f():\n    pass\n")
    assert nodes["a.py"].text == "def f():\n    pass\n"
    assert lines(nodes["a.py:f"]) == (1, 2)


def test_names_and_text_beyond_ascii_are_kept(tmp_path: Path) -> None:
    nodes = find(tmp_path, 'x = "😀"; y = 1\ndef größe():\n    return "é😀"\n', name="straße.py")
    assert nodes["straße.py:größe"].text == 'def größe():\n    return "é😀"\n'


def test_a_syntax_error_does_not_hide_the_functions_around_it(tmp_path: Path) -> None:
    told = "`a.py` is not valid Python at line 4: it is skipped"
    source = "def before():\n    return 1\n\nx = = 3 )\n\ndef after():\n    return 2\n"
    nodes = find(tmp_path, source, problems=(told,))
    assert lines(nodes["a.py:before"]) == (1, 2)
    assert lines(nodes["a.py:after"]) == (6, 7)


def test_only_what_python_itself_cannot_parse_is_called_broken(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    (tmp_path / "good.py").write_text("def g():\n    return 1\n")
    discovery = TreeSitterDiscovery(tmp_path)
    discovery.find([tmp_path])
    assert discovery.broken == {Path("bad.py")}
    discovery.find([tmp_path / "good.py"])
    assert discovery.broken == set()


def test_a_function_without_a_name_is_no_node(tmp_path: Path) -> None:
    told = "`a.py` is not valid Python at line 1: it is skipped"
    found = find(tmp_path, "def ():\n    pass\n", problems=(told,))
    assert all(node_id == "a.py" or node_id.rpartition(":")[2] for node_id in found)


@pytest.mark.parametrize("source", ["", "\n\n", "# only a comment\n", b"\xef\xbb\xbf", "  \n\t\n"])
def test_a_file_without_code_has_no_nodes(tmp_path: Path, source: str | bytes) -> None:
    assert find(tmp_path, source) == {}


def test_a_file_that_is_only_a_docstring_is_code(tmp_path: Path) -> None:
    assert list(find(tmp_path, '"""Shop."""')) == ["a.py"]


def test_a_file_without_a_last_newline_ends_with_its_last_line(tmp_path: Path) -> None:
    nodes = find(tmp_path, "x = 1\ndef f():\n    return 1")
    assert lines(nodes["a.py"]) == (1, 3)
    assert nodes["a.py:f"].text == "def f():\n    return 1"


def test_blank_lines_after_a_function_belong_to_the_file(tmp_path: Path) -> None:
    nodes = find(tmp_path, "def f():\n    return 1\n\n\n\nx = 1\n")
    assert owned(nodes["a.py"]) == [(3, 6)]


def test_functions_nested_hundreds_deep_are_read(tmp_path: Path) -> None:
    source = "".join("    " * depth + f"def f{depth}():\n" for depth in range(300)) + "    " * 300 + "pass\n"
    nodes = find(tmp_path, source)
    assert lines(nodes["a.py:" + ".".join(f"f{depth}" for depth in range(200))])[0] == 200
