"""Facts about definitions, and edits that change what they should and nothing else."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.discovery import PythonCode
from remora.discovery._syntax import parse

CODE = PythonCode()
TEXT = "Sum up.\n\nArgs:\n    a: One.\n"
MARK = b"\xef\xbb\xbf"

HARD: dict[str, bytes] = {
    "one line": b"def f(): return 1\n",
    "one line with a comment": b"def f(): return 1  # why\n",
    "one line with semicolons": b"def f(): a = 1; return a\n",
    "one line with a docstring and code": b"def f(): 'doc'; return 1\n",
    "one line that is only a docstring": b"def f(): 'doc'  # c\n",
    "a stub": b"def f(): ...\n",
    "a stub below": b"def f():\n    ...\n",
    "a continued line": b"def f(): \\\n    return 1\n",
    "a backslash in the comment": b"def f():  # noqa \\\n    # about x\n    x = 1\n    return x\n",
    "an odd continuation": b"def f():\n    \\\n    return 1\n",
    "single quotes": b"def f():\n    'old'\n    return 1\n",
    "double quotes and a semicolon": b'def f():\n    "old"; x = 1\n',
    "three single quotes": b"def f():\n    '''old\n    more\n    '''\n",
    "raw": b'def f():\n    r"""old \\d"""\n    return 1\n',
    "a unicode prefix": b"def f():\n    u'old'\n",
    "concatenated in brackets": b"def f():\n    ('a'  # c\n     'b')\n    return 1\n",
    "concatenated": b"def f():\n    'a' \"b\"\n    return 1\n",
    "a comment after the docstring": b'def f():\n    """old"""  # noqa: D100\n    return 1\n',
    "an f-string is code": b"def f():\n    f'x'\n    return 1\n",
    "bytes are code": b"def f():\n    b'x'\n    return 1\n",
    "an expression of strings is code": b"def f():\n    'a' % 1\n    return 1\n",
    "tabs": b"class A:\n\tdef f(self):\n\t\treturn 1\n\tdef g(self): return 2\n",
    "crlf": b"@a\r\n@b(\r\n  1)\r\nasync def f(\r\n    a,  # x\r\n    b\r\n):\r\n    return 1\r\n",
    "cr": b"def f():\r    return 1\r",
    "beyond ascii": "é = 1\n\n\ndef größe(ñ='😀'):\n    return '😀'\n".encode(),
    "no newline at the end": b"def f():\n    return 1",
    "one line without a newline": b"def f(): pass",
    "a byte order mark": MARK + b"def f():\n    pass\n",
    "a class": b"class A:\n    x = 1\n",
    "a class on one line": b"class A(B): pass\n",
    "a class that begins with a decorator": b"class A:\n    @p\n    def f(self): ...\n",
    "a form feed": b"x = 1\n\x0cdef f():\n    pass\n",
    "two spaces": b"if x:\n  def f(): return 1\n",
    "a comment line inside the docstring": b"def f():\n    '''\n# hash \" it's\n    '''\n    return 1\n",
    "nested": b"def f():\n    def g():\n        return 1\n    return g\n",
    "a comment that is not indented": b"def f():\n# odd\n    return 1\n",
    "a blank line after the header": b"def f():\n\n    return 1\n",
    "colons in the header": b"def f(a=lambda: 1, b={'x': 1}) -> {'a': 1}: return a\n",
    "decorators over lines": b"@a\n@b(\n    1,\n)\ndef f(\n    x,\n):  # c\n    return x\n",
    "an async method": b"class A:\n    async def f(self) -> None:\n        await x\n",
    "twins": b"@o\ndef f(): ...\n@o\ndef f(x): ...\ndef f(x=1):\n    return x\n",
    "apostrophes in comments": b"def f():\n    # it's\n    return 1\n\n\n# don't\ndef g():\n    # won't\n    pass\n",
    "strings that look like code": b"x = '''\ndef f():\n'''\ndef f():\n    return 'def g():'\n",
}
TEXTS = [
    "Short.",
    TEXT,
    'Quotes " and """ and \'\'\' here"',
    "A backslash \\d and \\",
    "\\N{DASH} \x00 \x0c \x7f",
    "é😀 \u2028 \x85",
    "First\r\n\r\nsecond\rthird",
    "Ends with a quote '",
]


def names(source: bytes) -> list[str]:
    return [item.qualified for item in parse(source.removeprefix(MARK)).definitions]


def without_docstrings(source: bytes) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                node.body = node.body[1:]
    return ast.dump(tree)


def docstring_of(source: bytes, name: str) -> str | None:
    """As Python itself reads it."""
    tree = ast.parse(source)
    order = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    line = CODE.facts(source, name)["body_line"]
    found = [node for node in order if node.body[0].lineno == line]
    return ast.get_docstring(found[0], clean=False)


def check_edit(source: bytes, name: str, text: str) -> bytes:
    facts = CODE.facts(source, name)
    made = CODE.edit(source, name, "docstring", text)
    assert without_docstrings(made) == without_docstrings(source)
    written = docstring_of(made, name)
    assert written is not None
    assert [line.strip() for line in written.strip().split("\n")] == [
        line.strip() for line in text.strip().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ]
    before, after = source.splitlines(keepends=True), made.splitlines(keepends=True)
    rest = len(before) - facts["last"]
    assert after[: facts["first"] - 1] == before[: facts["first"] - 1]
    assert after[len(after) - rest :] == before[len(before) - rest :]
    assert names(made) == names(source)
    assert CODE.edit(made, name, "docstring", text) == made
    return made


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("source", HARD.values(), ids=HARD.keys())
def test_a_docstring_is_written_and_nothing_else_changes(source: bytes, text: str) -> None:
    for name in names(source):
        check_edit(source, name, text)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(): return 1\n", 'def f():\n    """Sum."""\n    return 1\n'),
        ("def f(): 'old'; return 1\n", 'def f():\n    """Sum."""\n    return 1\n'),
        ("def f(): 'old'  # c\n", 'def f():\n    """Sum."""  # c\n'),
        ("def f():  # c\n    # d\n    x\n", 'def f():  # c\n    """Sum."""\n    # d\n    x\n'),
        ("class A:\n    x = 1\n", 'class A:\n    """Sum."""\n\n    x = 1\n'),
        ("class A:\n\n    x = 1\n", 'class A:\n    """Sum."""\n\n    x = 1\n'),
        ("def f():\n    '''old'''\n", "def f():\n    '''Sum.'''\n"),
        ("def f[T](a: T) -> T:\n    return a\n", 'def f[T](a: T) -> T:\n    """Sum."""\n    return a\n'),
        ("if x:\n  def f(): return 1\n", 'if x:\n  def f():\n    """Sum."""\n    return 1\n'),
    ],
)
def test_a_docstring_stands_where_people_put_it(source: str, expected: str) -> None:
    name = names(source.encode())[0]
    assert CODE.edit(source.encode(), name, "docstring", "Sum.").decode() == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", '"""Sum."""\n'),
        ("import os\n", '"""Sum."""\n\nimport os\n'),
        (
            "#!/usr/bin/python\n# coding: utf-8\nimport os\n",
            '#!/usr/bin/python\n# coding: utf-8\n"""Sum."""\n\nimport os\n',
        ),
        ("# c", '# c\n"""Sum."""\n'),
        ("'''old'''\nx = 1\n", "'''Sum.'''\nx = 1\n"),
    ],
)
def test_a_file_has_a_docstring_too(source: str, expected: str) -> None:
    assert CODE.edit(source.encode(), "", "docstring", "Sum.").decode() == expected


headers = st.sampled_from(["def f(a, b=':'):", "async def f(\n    a,  # it's\n):", "class f:", "@d(\n  1)\ndef f():"])
bodies = st.sampled_from(
    [
        " return 1",
        " pass  # c",
        "\n    x = 1",
        "  # c\n    # d\n    x = '#'",
        "\n\n    'old'\n    x = 1",
        " 'old'; x = 1",
        "\n    r'''old\n  # \"\n'''; x = 1",
        "\n    ('a'\n 'b')  # c",
    ]
)
ends = st.sampled_from(["\n", "\r\n", "\r"])
words = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=40).filter(
    lambda text: bool(text.strip()) and not set(text) & set("\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029")
)


@given(headers, bodies, ends, words, st.booleans())
def test_whatever_the_text_it_is_read_back_and_the_code_is_the_same(
    header: str, body: str, end: str, text: str, marked: bool
) -> None:
    body = " x = 1" if header == "class f:" and "return" in body else body
    source = f"{header}{body}\ny = 2\n".replace("\n", end).encode()
    made = CODE.edit((MARK if marked else b"") + source, "f", "docstring", text)
    assert made.startswith(MARK) == marked
    assert without_docstrings(made) == without_docstrings(source)
    assert CODE.edit(made, "f", "docstring", text) == made
    assert made.endswith(f"{end}y = 2{end}".encode())


def test_facts_say_what_the_header_and_the_body_say() -> None:
    source = (
        b"@a.b( 1,\n  2)\nasync def f[T: int](a, /, b: int = 1, *c: str, d, e: 'x y' = (1,  # c\n 2), **k)"
        b" -> dict[str,\n int]:\n    '''Doc.\n\n    More.'''\n    raise A.B(1) from e\n    raise x\n    yield 1\n"
        b"    def g(): raise No\n    return foo.bar(g())\n"
    )
    facts = CODE.facts(source, "f")
    assert facts["signature"] == (
        "async def f[T: int](a, /, b: int = 1, *c: str, d, e: 'x y' = (1, 2), **k) -> dict[str, int]"
    )
    assert [(item["name"], item["kind"]) for item in facts["parameters"]] == [
        ("a", "positional_only"), ("b", "positional_or_keyword"), ("c", "var_positional"),
        ("d", "keyword_only"), ("e", "keyword_only"), ("k", "var_keyword"),
    ]  # fmt: skip
    assert facts["parameters"][4] == {
        "name": "e", "annotation": "'x y'", "default": "(1, 2)", "kind": "keyword_only",
    }  # fmt: skip
    assert (facts["docstring"], facts["docstring_lines"]) == ("Doc.\n\nMore.", [6, 8])
    assert (facts["raises"], facts["yields"], facts["returns_value"]) == (["A.B"], True, True)
    assert (facts["decorators"], facts["is_async"], facts["indent"]) == (["a.b(1, 2)"], True, "    ")
    assert "No" not in facts["raises"]


def test_facts_of_a_class_are_its_bases_fields_and_methods() -> None:
    source = b"@dataclass\nclass A(B, metaclass=C):\n    x: int = 1\n    y: str\n    @p\n    def m(self): ...\n"
    facts = CODE.facts(source, "A")
    assert (facts["kind"], facts["bases"], facts["methods"]) == ("class", "B, metaclass=C", ["m"])
    assert facts["fields"] == [
        {"name": "x", "annotation": "int", "default": "1"},
        {"name": "y", "annotation": "str", "default": None},
    ]
    method = CODE.facts(source, "A.m")
    assert (method["kind"], method["is_stub"], method["decorators"]) == ("method", True, ["p"])


@pytest.mark.parametrize("text", ["x = '''\nkeep\n  '''\nreturn x", "    x = '''\nkeep\n  '''\n    return x\n"])
def test_a_body_is_indented_but_not_inside_its_strings(text: str) -> None:
    source = b"class A:\n    def f(self):\n        'doc'\n        a = 1\n        return a  # c\n    z = 1\n"
    expected = b"class A:\n    def f(self):\n        'doc'\n        x = '''\nkeep\n  '''\n        return x\n    z = 1\n"
    assert CODE.edit(source, "A.f", "body", text) == expected


def test_a_whole_definition_is_replaced_with_its_decorators() -> None:
    source = b"class A:\r\n    @d\r\n    def f(self): return 1\r\n    z = 1\r\n"
    made = CODE.edit(source, "A.f", "whole", "def g(self):\n    return 2\n")
    assert made == b"class A:\r\n    def g(self):\r\n        return 2\r\n    z = 1\r\n"


def test_lines_are_replaced_inserted_and_removed() -> None:
    source = b"a = 1\r\nb = 2\r\n"
    assert CODE.replace_lines(source, 2, 2, "c = 3") == b"a = 1\r\nc = 3\r\n"
    assert CODE.replace_lines(source, 2, 1, "c = 3\nd = 4\n") == b"a = 1\r\nc = 3\r\nd = 4\r\nb = 2\r\n"
    assert CODE.replace_lines(source, 1, 1, "") == b"b = 2\r\n"
    assert CODE.replace_lines(b"a = 1", 2, 1, "b = 2") == b"a = 1\nb = 2\n"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: CODE.facts(b"def f(): ...\n", "g"), "no `g` in this file: it has `f`"),
        (lambda: CODE.edit(b"def f(): ...\n", "f", "docstring", "  \n"), "is empty"),
        (lambda: CODE.edit(b"def f(): ...\n", "f", "body", ""), "is empty"),
        (lambda: CODE.edit(b"def f(): ...\n", "f", "name", "g"), "expected one of docstring, body, whole"),
        (lambda: CODE.edit(b"def f(): ...\n", "f", "body", "return ("), "no longer be valid Python"),
        (lambda: CODE.edit(b"def f(): ...\n", "f", "whole", "def f(:\n  pass"), "no longer be valid Python"),
        (lambda: CODE.edit(b"def f(): ...\n", "f", "body", "print 'x'"), "no longer be valid Python"),
        (lambda: CODE.edit(b"def f(): ...\n", "", "whole", "x"), "A file has no whole"),
        (lambda: CODE.edit(b"def f():\n", "f", "docstring", "x"), "has no body"),
        (lambda: CODE.edit(b"def f(): ...\n", "f", "docstring", "\ud800"), "surrogates"),
        (lambda: CODE.facts(b"x = '\xe9'\n", ""), "utf-8"),
        (lambda: CODE.replace_lines(b"a = 1\n", 3, 3, "b"), "expected lines within 1-1"),
        (lambda: CODE.replace_lines(b"a = 1\n", 1, 1, "if a:"), "no longer be valid Python"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_a_file_with_an_error_elsewhere_can_still_be_documented() -> None:
    source = b"x = = 3\n\ndef f():\n    return 1\n"
    assert CODE.edit(source, "f", "docstring", "Sum.") == b'x = = 3\n\ndef f():\n    """Sum."""\n    return 1\n'
