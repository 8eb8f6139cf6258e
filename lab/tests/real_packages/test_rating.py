"""The rules that rate a change are the same for everybody, so each has an example that it must get right."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from remora_lab.real_packages.inputs import Subject, find_subject
from remora_lab.real_packages.rating import Change, rate

LINT = Change("lint", "a.py", "import os\nx = 1\n", "x = 1\n", lint_before=1, lint_after=0)


def test_a_fix_that_the_projects_linter_asks_for_is_merged() -> None:
    assert rate(LINT) == ("merge", "1 errors of the project's linter fixed in 1 changed lines, tests pass")


@pytest.mark.parametrize(
    ("change", "rating", "why"),
    [
        (replace(LINT, broken=("tests/test_a.py::test_x",)), "wrong", "fails with the package's tests"),
        (replace(LINT, after="x = (\n"), "wrong", "does not parse"),
        (replace(LINT, lint_new=("E501",)), "wrong", "reports something new: E501"),
        (replace(LINT, imported=("os",)), "wrong", "a name that other files import is gone: os"),
        (replace(LINT, after="x = 1  # type: os.PathLike\n"), "wrong", "a comment for type checkers uses `os`"),
        (replace(LINT, after="try:\n    x = 1\nexcept ImportError:\n    pass\n"), "wrong", "stood in for another"),
        (replace(LINT, path="tests/test_a.py", lint_before=40), "useless", "does not run its linter on its tests"),
        (replace(LINT, lint_before=0), "useless", "does not ask for it"),
        (replace(LINT, after="".join(f"y{n} = {n}\n" for n in range(60))), "useless", "changed lines for 1 fixed"),
    ],
)
def test_what_breaks_something_is_wrong_and_what_nobody_asked_for_is_useless(
    change: Change, rating: str, why: str
) -> None:
    got, reason = rate(change)
    assert got == rating
    assert why in reason


def docstring(code: str, doc: str) -> tuple[str, str]:
    head, _, body = code.partition("\n")
    return rate(Change("docstring", "a.py", code, f'{head}\n    """{doc}"""\n{body}'))


GET = "def get_user(name, timeout):\n    if not name:\n        raise KeyError(name)\n    return cache[name]\n"


@pytest.mark.parametrize(
    ("doc", "rating"),
    [
        ("Return the user of `name`.", "useless"),
        ("Get the user.\n\n    Args:\n        name: The name.\n        timeout: The timeout.\n    ", "useless"),
        ("Look up a cached user; raises if the name is empty.", "merge"),
        ("Look up a user.\n\n    Args:\n        color: Its color.\n    ", "wrong"),
        ("Look it up in the cache.\n\n    :param nobody: not there\n    ", "wrong"),
    ],
)
def test_a_docstring_must_be_true_and_say_more_than_the_signature(doc: str, rating: str) -> None:
    assert docstring(GET, doc)[0] == rating


def test_a_docstring_that_promises_a_result_where_there_is_none_is_wrong() -> None:
    doc = "Halt it.\n\n    Returns:\n        The state.\n    "
    assert docstring("def stop(self):\n    self.on = False\n", doc)[0] == "wrong"


@pytest.mark.parametrize(
    ("text", "noticed", "rating"),
    [
        ("def test_a():\n    assert f(1) == 2\n", (3, 4), "merge"),
        ("def test_a():\n    assert type(f(1)).__name__ == 'int'\n", (3, 4), "useless"),
        ("def test_a():\n    f(1)\n", (0, 0), "useless"),
        ("class A(TestCase):\n    def test_a(self):\n        self.assertEqual(f(1), 2)\n", (3, 4), "merge"),
        ("def test_a():\n    assert f(1) == 2\n", (0, 4), "useless"),
    ],
)
def test_a_test_must_notice_a_change_of_the_code(text: str, noticed: tuple[int, int], rating: str) -> None:
    assert rate(Change("test", "tests/test_a.py", "", text, noticed=noticed))[0] == rating


PARSE = find_subject(
    "parse", "def parse(text: str, strict=False):\n    pass\n", ["assert parse('1 day')", "parse('2 weeks', True)"]
)


def _fixture(*cases: object, **types: str) -> str:
    return json.dumps({"function": "a.parse", "parameters": types, "cases": cases})


@pytest.mark.parametrize(
    ("text", "subject", "rating"),
    [
        (_fixture({"text": "1 day"}, {"text": "2 weeks", "strict": True}, text="str"), PARSE, "merge"),
        (_fixture({"text": "1 day"}), PARSE, "useless"),
        (_fixture({"text": "1 day"}, {}), PARSE, "useless"),
        (_fixture({"text": "1 day"}, {"text": "Hello, World"}), PARSE, "useless"),
        (_fixture({"text": "1 day"}, {"text": "2 weeks"}, strict="bool"), PARSE, "useless"),
        (_fixture({"text": "1 day"}, {"text": "2 weeks"}), replace(PARSE, name="_parse"), "useless"),
        (_fixture({"part": {"name": "bolt"}}, {"part": {"name": "nut"}}), Subject("f"), "merge"),
        (_fixture({"part": {"name": "bolt"}}, {"part": {"name": "xyz"}}), Subject("f"), "useless"),
    ],
)
def test_values_of_a_fixture_must_be_written_somewhere_and_fit_the_signature(
    text: str, subject: Subject, rating: str
) -> None:
    words = frozenset({"name", "bolt", "nut", "part"})
    assert rate(Change("sample_data", "a.json", "", text, subject=subject, elsewhere=words))[0] == rating


@pytest.mark.parametrize(
    ("line", "subject", "rating"),
    [
        ("assert parse('day') == 1", PARSE, "merge"),
        ("assert parse('dxy') == 1", PARSE, "useless"),
        ("assert get(3, {}) == {}", find_subject("get", "def get(key, default=None): ...\n", []), "useless"),
        ("assert get(3) == {}", find_subject("get", "def get(key): ...\n", ["get('day')", "get(13)"]), "useless"),
        ("assert get('day') == {}", find_subject("get", "def get(key): ...\n", ["get('day')"]), "merge"),
        (f"assert parse('day') == {[1] * 40}", PARSE, "useless"),
        ("assert g(f(value)) == value", Subject("f", untyped=("value",)), "merge"),
    ],
)
def test_inputs_of_a_test_must_be_such_as_people_write(line: str, subject: Subject, rating: str) -> None:
    text = f"def test_a():\n    {line}\n"
    change = Change("test", "test_a.py", "", text, noticed=(1, 2), subject=subject, elsewhere=frozenset({"day"}))
    assert rate(change)[0] == rating


@pytest.mark.parametrize(("text", "rating"), [('{"a": [1]}', "merge"), ('{"a": ""}', "useless"), ("{", "wrong")])
def test_sample_data_must_be_readable_and_have_values(text: str, rating: str) -> None:
    assert rate(Change("sample_data", "a.json", "", text))[0] == rating


DEAD = Change("dead_code", "a.py", "def _old():\n    return 1\n\n\nx = 1\n", "x = 1\n")


@pytest.mark.parametrize(
    ("change", "rating"),
    [
        (DEAD, "merge"),
        (replace(DEAD, elsewhere=frozenset({"_old"})), "wrong"),
        (replace(DEAD, broken=("test_a",)), "wrong"),
        (replace(DEAD, after=DEAD.before.replace("\n\n\n", "\n")), "useless"),
    ],
)
def test_dead_code_must_be_code_that_no_other_file_names(change: Change, rating: str) -> None:
    assert rate(change)[0] == rating


TYPES = Change("annotations", "a.py", "def f(x: int):\n    return 1\n", "def f(x: int) -> int:\n    return 1\n")


@pytest.mark.parametrize(
    ("change", "rating"),
    [
        (TYPES, "merge"),
        (replace(TYPES, type_errors=("a.py: no",)), "wrong"),
        (replace(TYPES, after="def f(x: int) -> int:\n    return 2\n"), "wrong"),
        (replace(TYPES, before="def f(x):\n    return 1\n", after="def f(x) -> int:\n    return 1\n"), "useless"),
    ],
)
def test_types_must_complete_a_signature_and_change_nothing_else(change: Change, rating: str) -> None:
    assert rate(change)[0] == rating


README = Change("documents", "README.md", "Python 3.8+\n", "Python 3.10+\n", elsewhere=frozenset({"3.10"}))


@pytest.mark.parametrize(
    ("change", "rating"),
    [
        (README, "merge"),
        (replace(README, elsewhere=frozenset()), "wrong"),
        (replace(README, path="a.py", before="x = 1\n", after="x = 2\n"), "wrong"),
        (replace(README, after="Python  3.8+\n"), "useless"),
    ],
)
def test_a_document_may_only_say_what_the_project_says_elsewhere(change: Change, rating: str) -> None:
    assert rate(change)[0] == rating
