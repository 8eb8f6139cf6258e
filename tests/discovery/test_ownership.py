"""Each line has one owner among files, functions and methods, whatever the file holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from remora.discovery._discovery import nodes_of
from remora.nodes import CodeNode, NodeType

WORDS = ["x", "y", "run", "größe"]
HEADS = ["def {}():", "async def {}(a, b=1):", "class {}:", "class {}(x):", "if {}:", "@{}\ndef y():", "with {} as x:"]
STATEMENTS = ["{} = 1", "# {}", "", "return {}", "'''{}\n'''", "{}(\n1,\n)", "lambda: {}", "pass; {}", "def {}(): pass"]
NOISE = [
    "(",
    ")",
    "def",
    "class",
    ":",
    '"""',
    "@",
    "\\",
    "\t",
    "x",
    "\n",
    "\r\n",
    "\r",
    "    ",
    "\f",
    "é",
    "async",
    "0",
]

words = st.sampled_from(WORDS)
statements = st.builds(lambda form, word: form.format(word), st.sampled_from(STATEMENTS), words)


def block(bodies: st.SearchStrategy[list[str]]) -> st.SearchStrategy[str]:
    def build(head: str, word: str, body: list[str], indent: str) -> str:
        inner = "\n".join(indent + line for part in body for line in part.split("\n"))
        return f"{head.format(word)}\n{inner}"

    return st.builds(build, st.sampled_from(HEADS), words, bodies, st.sampled_from(["    ", "\t", " "]))


parts = st.recursive(statements, lambda inner: block(st.lists(inner, min_size=1, max_size=4)), max_leaves=12)
python_like = st.lists(parts, max_size=5).map("\n".join)
noise = st.lists(st.sampled_from(NOISE), max_size=60).map("".join)
sources = st.one_of(python_like, noise, st.builds("".join, st.tuples(python_like, noise, python_like)), st.text())
ends = st.sampled_from(["\n", "\r\n", "\r"])


def nodes(source: str) -> list[CodeNode]:
    return list(nodes_of(Path("a.py"), source.encode()))


def owned(node: CodeNode) -> list[int]:
    return [line for run in node.owned for line in range(run.first, run.last + 1)]


def is_utf_8(source: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in source)


@given(sources.filter(is_utf_8), ends)
def test_every_line_is_owned_by_exactly_one_file_function_or_method(source: str, end: str) -> None:
    found = nodes(source.replace("\n", end))
    if not found:
        return
    owners = Counter(line for node in found if node.node_type is not NodeType.CLASS for line in owned(node))
    assert owners == Counter(range(1, found[0].lines.last + 1))


@given(sources.filter(is_utf_8))
def test_no_line_is_owned_by_two_classes_and_no_node_owns_lines_outside_itself(source: str) -> None:
    found = nodes(source)
    owners = Counter(line for node in found if node.node_type is NodeType.CLASS for line in owned(node))
    assert all(count == 1 for count in owners.values())
    for node in found:
        assert all(node.lines.first <= line <= node.lines.last for line in owned(node))


@given(sources.filter(is_utf_8))
def test_ids_are_unique_and_the_text_of_a_node_is_its_lines(source: str) -> None:
    found = nodes(source)
    assert len({node.node_id for node in found}) == len(found)
    for node in found:
        assert node.text in source
        assert node.text.count("\n") <= node.lines.last - node.lines.first + 1
