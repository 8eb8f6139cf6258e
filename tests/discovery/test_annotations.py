"""A signature is completed only with types that the code proves, in projects that have types."""

from __future__ import annotations

import pytest

from remora.discovery import PythonCode

TYPED = "".join(f"def f{n}(x: int) -> int:\n    return x\n\n\n" for n in range(6))
MODERN = {"pyproject.toml": '[project]\nrequires-python = ">=3.10"\n', "pkg/typed.py": TYPED}


def completed(code: str, more: dict[str, str] | None = None) -> str:
    files = {"pkg/a.py": code, **(MODERN if more is None else more)}
    answer = PythonCode().proven("types", {name: text.encode() for name, text in files.items()}, "pkg/a.py", ())
    text = answer["files"].get("pkg/a.py", code)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("code", "header"),
    [
        ("def save(x: int):\n    print(x)\n", "def save(x: int) -> None:"),
        ("def name(x: int):\n    return f'{x}'\n", "def name(x: int) -> str:"),
        ("def has(x: dict, y: str):\n    return y in x\n", "def has(x: dict, y: str) -> bool:"),
        ("def size(x: list):\n    return len(x) + 1\n", "def size(x: list) -> int:"),
        ("def half(x: int):\n    return x / 2\n", "def half(x: int) -> float:"),
        ("def low(x: str):\n    return x.strip().lower()\n", "def low(x: str) -> str:"),
        ("def f(x: str):\n    if x:\n        return 'a'\n    return None\n", "def f(x: str) -> str | None:"),
        ("def f(x: str, *, loud=False) -> str:\n    return x\n", "def f(x: str, *, loud: bool = False) -> str:"),
        ("def f(x: str, end='.') -> str:\n    return x\n", "def f(x: str, end: str = '.') -> str:"),
        ("async def f(x: int):\n    return not x\n", "async def f(x: int) -> bool:"),
        ("def f(\n    x: int,\n):\n    print(x)\n", "def f(\n    x: int,\n) -> None:"),
        ("class A:\n    def __repr__(self):\n        return x()\n", "    def __repr__(self) -> str:"),
        ("class A:\n    def __eq__(self, other):\n        return 1 == other.x\n", "(self, other: object) -> bool:"),
        ("class A:\n    pass\n\n\ndef make():\n    return A()\n", "def make() -> A:"),
        ("class A:\n    def copy(self):\n        return A()\n", '    def copy(self) -> "A":'),
    ],
)
def test_what_every_return_and_default_proves_is_written(code: str, header: str) -> None:
    assert header in completed(code)


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    print(x)\n",
        "def f(x: int):\n    return g(x)\n",
        "def f(x: int):\n    yield x\n",
        "def f(x: int):\n    return 'a' if x else 1\n",
        "def f(x: int, *args):\n    print(x)\n",
        "def f(x: int, n=10) -> None:\n    print(n)\n",
        "def f(x: int, name='') -> None:\n    if name is None:\n        return\n",
        "def str(x: object):\n    return str(x)\n\n\ndef f(x: int):\n    return str(x)\n",
        "def f(x: int):\n    raise NotImplementedError\n",
        "class A:\n    def hook(self):\n        pass\n",
        "class A:\n    def run(self):\n        self.x = 1\n\n\nclass B(A):\n    def run(self):\n        return 1\n",
        "@overload\ndef f(x: int):\n    return 1\n",
        "def f(x: int):  # type: ignore\n    return 1\n",
        "def f(x: str):\n    x = g(x)\n    return x\n",
    ],
)
def test_what_is_not_certain_is_left(code: str) -> None:
    assert completed(code) == code


def test_a_project_without_types_is_left_alone() -> None:
    code = "def save(x: int):\n    print(x)\n"
    assert completed(code, {"pkg/b.py": "".join(f"def f{n}(x):\n    return x\n\n\n" for n in range(6))}) == code


def test_an_older_python_gets_no_newer_syntax() -> None:
    code = "def f(x: str):\n    if x:\n        return 'a'\n"
    old = {"setup.cfg": "[options]\npython_requires = >=3.8\n", "pkg/typed.py": TYPED}
    assert completed(code, old) == code
    assert "-> Optional[str]:" in completed(f"from typing import Optional\n\n\n{code}", old)
    assert "-> str | None:" in completed(f"from __future__ import annotations\n\n\n{code}", old)


@pytest.mark.parametrize(("known", "written"), [(" -> None", True), ("", False)])
def test_none_at_init_follows_the_projects_habit(known: str, written: bool) -> None:
    others = "".join(f"class C{n}:\n    def __init__(self, x: int){known}:\n        self.x = x\n\n\n" for n in range(3))
    code = "class A:\n    def __init__(self, x: int):\n        self.x = x\n"
    assert ("-> None" in completed(code, {**MODERN, "pkg/b.py": others})) == written


def test_a_line_does_not_become_longer_than_all_others() -> None:
    code = f"def f(x: int, {'y' * 60}: int):\n    print(x)\n"
    assert completed(code) == code


def test_what_answers_for_every_attribute_gets_no_type() -> None:
    code = "class A:\n    def __getattr__(self, name: str):\n        return 1\n"
    assert completed(code) == code


HALF = "def g{n}(x: int){result}:\n    return h(x)\n\n\n"


@pytest.mark.parametrize(("stated", "written"), [(2, True), (1, False)])
def test_a_result_is_stated_where_half_of_the_file_states_it(stated: int, written: bool) -> None:
    others = "".join(HALF.format(n=n, result=" -> int" if n < stated else "") for n in range(3))
    code = f"{others}def save(x: int):\n    print(x)\n"
    assert ("def save(x: int) -> None:" in completed(code)) is written


def test_a_parameter_is_typed_beside_a_stated_result_whatever_the_file_does() -> None:
    others = "".join(HALF.format(n=n, result="") for n in range(4))
    assert "(x: str, *, loud: bool = False)" in completed(
        f"{others}def f(x: str, *, loud=False) -> str:\n    return x\n"
    )


@pytest.mark.parametrize("path", ["example_shop.py", "src/namer_example.py", "demo/run.py", "pkg/tests.py", "make.py"])
def test_an_example_gets_no_types(path: str) -> None:
    code = {path: "def show(x: int):\n    print(x)\n", **MODERN}
    answer = PythonCode().proven("types", {name: text.encode() for name, text in code.items()}, path, ())
    assert answer["findings"] == []


@pytest.mark.parametrize("mark", ["@overload\n", "@typing.overload\n", ""])
def test_an_overloaded_function_is_left_as_its_overloads_are(mark: str) -> None:
    code = f"{mark}def get(x: int, deep=True) -> int: ...\n\n\ndef get(x, deep=True):\n    print(x)\n"
    code = code.replace("def get(x, deep=True)", "def get(x: int, deep=True) -> int | None")
    assert ("deep: bool" in completed(code)) == (not mark)
