"""What the syntax of a function proves about it, in words."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.discovery import PythonCode
from remora.discovery._wording import in_words


def behaviour(body: str, signature: str = "a, b=None, flag=False") -> dict[str, Any]:
    source = f"def f({signature}):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    return PythonCode().behaviour(source.encode(), "f")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("a is None", "`a` is None"),
        ("not a", "`a` is falsy"),
        ("not flag", "`flag` is false"),
        ("self.closed", "`self.closed` is true"),
        ("a < 0", "`a` is negative"),
        ("not a < 0", "`a` is not negative"),
        ("a != 1", "`a` is not 1"),
        ("len(a) == 0", "`a` is empty"),
        ("len(a) > 3", "`len(a)` is greater than 3"),
        ("a not in ('x', 'y')", '`a` is not `"x"` or `"y"`'),
        ("a in known", "`a` is in `known`"),
        ("not isinstance(a, (int, str))", "`a` is not an `int` or `str`"),
        ("not callable(a)", "`a` is not callable"),
        ("a is None or a < 0", "`a` is None or negative"),
        ("not (a is None or b is None)", "`a` is not None and `b` is not None"),
        ("0 <= a <= 9", "`a` is between 0 and 9"),
        ("a.startswith('x')", '`a` starts with `"x"`'),
        ("a and b and c", ""),
        ("re.match(p, a)", ""),
        ("a < b < c < d", ""),
    ],
)
def test_a_condition_in_words(code: str, words: str) -> None:
    assert in_words(ast.parse(code, mode="eval").body, flags=frozenset({"flag"})) == words


@given(st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "in", "not in", "is", "is not"]), st.integers(-3, 3))
def test_a_condition_and_its_opposite_are_never_worded_alike(operator: str, number: int) -> None:
    test = ast.parse(f"a {operator} {number}", mode="eval").body
    assert in_words(test) != in_words(test, holds=False)


@pytest.mark.parametrize(
    ("body", "raised"),
    [
        ("if a < 0:\n    raise ValueError('low')", ("ValueError", "`a` is negative")),
        ("if a:\n    return 1\nraise KeyError(a)", ("KeyError", "`a` is falsy")),
        ("if flag:\n    return 1\nif a is None:\n    raise KeyError", ("KeyError", "`a` is None and `flag` is false")),
        ("if a is None:\n    raise TypeError\nif a < 0:\n    raise ValueError", ("ValueError", "`a` is negative")),
        ("for one in a:\n    if one:\n        raise KeyError", ("KeyError", "")),
        ("c = a.size()\nif c < 0:\n    raise ValueError", ("ValueError", "")),
        ("a = a or []\nif a is None:\n    raise ValueError", ("ValueError", "")),
        ("if a._secret:\n    raise ValueError", ("ValueError", "")),
        ("try:\n    a()\nexcept OSError:\n    raise ValueError", ("ValueError", "")),
        ("for one in a:\n    if one:\n        return one\nraise LookupError", ("LookupError", "")),
        ("if m is None:\n    raise ValueError", ("ValueError", "")),
        ("if LIMIT < a:\n    raise ValueError", ("ValueError", "`LIMIT` is less than `a`")),
        ("raise error", ("", "")),
    ],
)
def test_an_error_is_told_with_its_condition_only_where_a_caller_knows_every_name(
    body: str, raised: tuple[str, str]
) -> None:
    found = behaviour(body)["raises"][-1]
    assert (found["name"], found["when"]) == raised


def test_results_changed_arguments_and_defaults_are_found() -> None:
    found = behaviour("if b is None:\n    b = 3\nif flag:\n    return None\na.append(b)\nreturn a")
    assert [(one["kind"], one["when"]) for one in found["returns"]] == [
        ("none", "`flag` is true"),
        ("other", "`flag` is false"),
    ]
    first, last = (one["line"] for one in found["returns"])
    assert last == first + 2
    assert not found["falls_through"]
    assert found["changes"] == [{"name": "a", "how": "append()"}]
    assert found["defaults"] == [{"name": "b", "value": "3"}]


@pytest.mark.parametrize("body", ["a = list(a)\na.append(1)", "c = a\nc.b = 1", "def g():\n    a.append(1)\ng()"])
def test_an_argument_that_may_be_a_copy_is_not_called_changed(body: str) -> None:
    assert behaviour(body)["changes"] == []


def test_collected_arguments_are_the_calls_own_objects() -> None:
    found = behaviour("a.clear()\nkwargs.pop('x', None)\nkwargs['y'] = 1", "a, *args, **kwargs")
    assert [one["name"] for one in found["changes"]] == ["a"]


def test_functions_inside_a_function_say_nothing_about_it() -> None:
    found = behaviour("def g():\n    raise ValueError\nreturn g")
    assert found["raises"] == []


@pytest.mark.parametrize(
    ("text", "style"),
    [("Do it.\n\n    :param a: x", "sphinx"), ("Do it.\n\n    Args:\n        a: x", "google"), ("Do it.", "plain")],
)
def test_the_style_of_a_project_is_that_of_most_docstrings_with_sections(text: str, style: str) -> None:
    file = f'def one(a):\n    """{text}\n    """\n'
    habits = PythonCode().habits({"a.py": file.encode(), "b.py": b"def two():\n    pass\n"}, "b.py", "two")
    assert habits["style"] == style


def test_tests_and_examples_do_not_count_for_the_habits_of_a_project() -> None:
    bare = b"".join(b"def f%d():\n    pass\n" % number for number in range(9))
    files = {
        "a.py": b'def one():\n    """Do it."""\n' * 4,
        "tests/test_a.py": bare,
        "examples/b.py": bare,
        "bad.py": b"def (",
    }
    habits = PythonCode().habits(files, "a.py", "one")
    assert (habits["functions"], habits["documented"], habits["wanted"]) == (4, 4, True)
