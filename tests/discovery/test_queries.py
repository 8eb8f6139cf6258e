"""What counts as a node is said by queries; a project may add its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora.discovery import TreeSitterDiscovery
from remora.errors import ConfigError


def ids(root: Path, queries: Path | None = None) -> list[str]:
    return [node.node_id for node in TreeSitterDiscovery(root, queries=queries).find([root])]


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    folder = tmp_path / ".queries"
    folder.mkdir()
    return folder


def test_a_query_of_the_project_finds_more_nodes(tmp_path: Path, queries: Path) -> None:
    (tmp_path / "a.py").write_text("double = lambda x: 2 * x\nname = 1\n\n\ndef f():\n    half = lambda x: x / 2\n")
    (queries / "lambdas.scm").write_text("(assignment left: (identifier) @name right: (lambda) @_right) @function\n")
    assert ids(tmp_path) == ["a.py", "a.py:f"]
    assert ids(tmp_path, queries) == ["a.py", "a.py:double", "a.py:f", "a.py:f.half"]


def test_a_definition_that_two_queries_find_is_one_node(tmp_path: Path, queries: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): ...\n")
    (queries / "again.scm").write_text("(function_definition name: (identifier) @name) @function\n")
    assert ids(tmp_path, queries) == ["a.py", "a.py:f"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(no_such_node) @function", "Invalid node type"),
        ("(class_definition", "is not a query"),
        ("(class_definition) @klass", "`@klass` is not known"),
        ("(class_definition) @class", "have no name"),
    ],
)
def test_a_query_that_cannot_work_is_named_with_its_problem(
    tmp_path: Path, queries: Path, text: str, said: str
) -> None:
    (queries / "bad.scm").write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        ids(tmp_path, queries)
    assert "bad.scm" in caught.value.message


def test_a_folder_of_queries_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        ids(tmp_path, tmp_path / "none")


COMMENTS = """\
def f(x):
    if x:
        # what we won't do
        # "half a quote
        return 1
    # it's done
    return 2


# don't
def g():
    text = '''
    # it's
    '''
    return text
"""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quote_in_a_comment_hides_nothing(tmp_path: Path, end: str) -> None:
    (tmp_path / "a.py").write_bytes(COMMENTS.replace("\n", end).encode())
    discovery = TreeSitterDiscovery(tmp_path)
    found = {node.node_id: (node.lines.first, node.lines.last) for node in discovery.find([tmp_path])}
    assert discovery.problems == []
    assert found == {"a.py": (1, 15), "a.py:f": (1, 7), "a.py:g": (11, 15)}


def test_a_query_that_is_a_link_is_refused_and_nothing_of_it_is_quoted(tmp_path: Path, queries: Path) -> None:
    (tmp_path / "private").write_text("(hunter2) @function")
    (queries / "theirs.scm").symlink_to(tmp_path / "private")
    with pytest.raises(ConfigError, match="is a link") as caught:
        ids(tmp_path, queries)
    assert "hunter2" not in str(caught.value)
