"""Code is called dead only if nothing in the whole project can reach it."""

from __future__ import annotations

import ast

import pytest

from remora.discovery import PythonCode
from remora.discovery._imports import removed_with
from remora.discovery._proofs import Sources

HELPER = "def _old(x):\n    return x\n\n\ndef load(x):\n    return x\n"


def proven(files: dict[str, str], path: str = "pkg/a.py", without: tuple[str, ...] = ()) -> tuple[list[str], str]:
    """What is dead in a file, and its text afterwards."""
    sources = {name: text.encode() for name, text in files.items()}
    answer = PythonCode().proven("unused", sources, path, without)
    return [one["what"] for one in answer["findings"]], answer["files"].get(path, files[path])


def test_a_private_function_that_nothing_mentions_is_removed_with_its_blank_lines() -> None:
    found, text = proven({"pkg/a.py": HELPER})
    assert found == ["function `_old` is never used"]
    assert text == "def load(x):\n    return x\n"


@pytest.mark.parametrize(
    "other",
    [
        {"pkg/b.py": "from pkg.a import _old\n"},
        {"tests/test_a.py": "import pkg.a\npkg.a._old(1)\n"},
        {"docs/guide.md": "Call `_old` first.\n"},
        {"pyproject.toml": '[project.scripts]\nold = "pkg.a:_old"\n'},
        {"pkg/b.py": 'def call(self, kind):\n    return getattr(self, "_" + kind)()\n'},
        {"pkg/b.py": 'PREFIX = "_ol"\ngetattr(object, f"_ol{1}")\n'},
    ],
)
def test_a_name_that_any_file_mentions_or_may_compose_is_used(other: dict[str, str]) -> None:
    assert proven({"pkg/a.py": HELPER, **other}) == ([], HELPER)


@pytest.mark.parametrize(
    "code",
    [
        "@app.route('/')\ndef _old():\n    pass\n\n\nx = 1\n",
        "# kept for backwards compatibility\ndef _old():\n    pass\n\n\nx = 1\n",
        "def _old():  # plugins call it\n    pass\n\n\nx = 1\n",
        "_old = load()\nx = 1\n",
        "_old = x\ny = 1\n",
        "def _old():\n    pass\n\n\nprint(globals())\n",
        "class A(Base):\n    def _old(self):\n        pass\n\n    x = 1\n",
        "class _Old(Base):\n    pass\n\n\nx = 1\n",
        "def _missing_(cls):\n    pass\n\n\nx = 1\n",
        "def _test_old():\n    pass\n\n\nx = 1\n",
        "def old():\n    pass\n\n\nx = 1\n",
        "__all = ()\n\n\nx = 1\n",
        "_A = 1\n_B = 2\n_C = 3\nx = _A, _C\n",
    ],
)
def test_what_others_may_hold_or_a_person_kept_is_left(code: str) -> None:
    assert proven({"pkg/a.py": code}) == ([], code)


def test_an_import_that_only_dead_code_uses_goes_with_it() -> None:
    code = "import os\nimport re\nfrom typing import Any, Dict\n\n_OLD = re.compile('x')\n\n\n"
    code += "def _old(x: Dict) -> Any:\n    return os.path\n\n\ndef load(x: Any) -> Any:\n    return x\n"
    found, text = proven({"pkg/a.py": code})
    assert len(found) == 2
    assert text == "from typing import Any\n\n\ndef load(x: Any) -> Any:\n    return x\n"


def test_dead_code_that_holds_an_import_for_others_stays() -> None:
    code = "import os\n\n\ndef _old():\n    return os.name\n\n\ndef load():\n    return 1\n"
    assert proven({"pkg/a.py": code, "pkg/b.py": "from pkg.a import os\n"})[0] == []
    assert proven({"pkg/a.py": code, "pkg/b.py": "import sys\n"})[0] == ["function `_old` is never used"]


def test_what_only_dead_code_uses_is_dead_too() -> None:
    code = "def _inner():\n    return 1\n\n\ndef _outer():\n    return _inner()\n\n\nx = 1\n"
    found, text = proven({"pkg/a.py": code})
    assert found == ["function `_outer` is never used", "function `_inner` is never used"]
    assert text == "x = 1\n"


def test_a_finding_can_be_left_out() -> None:
    code = "def _a1():\n    return 1\n\n\ndef _a2():\n    return 2\n\n\nx = 1\n"
    found, text = proven({"pkg/a.py": code}, without=("function _a1",))
    assert found == ["function `_a2` is never used"]
    assert "_a1" in text


def test_what_follows_a_skip_is_to_run_again() -> None:
    code = "def test_it(x):\n    raise SkipTest('not yet')\n    x.close()\n"
    assert proven({"pkg/a.py": code}) == ([], code)


@pytest.mark.parametrize("word", ["return x", "raise ValueError(x)"])
def test_statements_after_an_exit_are_removed(word: str) -> None:
    code = f"def load(x):\n    if x:\n        {word}\n        x.close()\n        print(x)\n    return x\n"
    found, text = proven({"pkg/a.py": code})
    assert found == ["2 lines of `load` cannot run"]
    assert text == f"def load(x):\n    if x:\n        {word}\n    return x\n"


@pytest.mark.parametrize(
    "body",
    [
        "raise NotImplementedError\n    yield x",
        "return x\n    x = 1",
        "return x  # switched off for now\n    print(x)",
        "return x\n    # unreachable, for the type checker\n    print(x)",
        "return x\n    assert False",
        "return x\n    import os",
    ],
)
def test_statements_that_matter_or_are_meant_stay(body: str) -> None:
    code = f"def load(x):\n    {body}\n"
    assert proven({"pkg/a.py": code}) == ([], code)


PINNED = {"pyproject.toml": '[project]\nrequires-python = ">=3.9"\n'}


def test_a_branch_for_an_old_python_is_replaced_by_what_is_left() -> None:
    code = "import sys\n\nif sys.version_info >= (3, 8):\n    from a import b\nelse:\n    from c import b\n\nprint(b)\n"
    found, text = proven({"pkg/a.py": code, **PINNED})
    assert found == ["`if sys.version_info >= (3, 8)` is always true"]
    assert text == "from a import b\n\nprint(b)\n"


def test_blank_lines_below_a_group_of_lines_stay() -> None:
    code = "import re\n_OLD = re.compile('a')\n\n\ndef load(x):\n    return x\n"
    assert proven({"pkg/a.py": code}) == (["name `_OLD` is never used"], "def load(x):\n    return x\n")
    code = "x = 1\n_OLD = 2\n\n\ndef load():\n    return x\n"
    assert proven({"pkg/a.py": code})[1] == "x = 1\n\n\ndef load():\n    return x\n"


def test_a_branch_without_another_leaves_no_blank_lines_behind() -> None:
    code = "import sys\n\n\ndef f(x):\n    g(x)\n\n    if sys.version_info < (3,):\n        x = 1\n\n    return x\n"
    settings = {"setup.cfg": "[options]\npython_requires = >=3.8\n"}
    _, text = proven({"pkg/a.py": code, **settings})
    assert text == "def f(x):\n    g(x)\n\n    return x\n"


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nif sys.version_info >= (3, 10):\n    x = 1\n",
        "import sys\nif sys.version_info < (3, 8):\n    raise RuntimeError('too old')\n",
        "import sys\nif sys.version_info[0] > 3:\n    x = 1\n",
        "import sys\nif sys.version_info >= (3, 9, 2):\n    x = 1\n",
        "import sys\nif sys.version_info >= (3, 8):  # noqa: UP036\n    x = 1\n",
        "import sys\nif sys.version_info >= (3, 8):\n    x = '''\n    a'''\n",
        "import sys\nif sys.version_info >= (3,):\n    long = long\nelse:\n    long = int\n",
    ],
)
def test_a_branch_that_some_python_needs_or_that_tells_users_something_stays(code: str) -> None:
    assert proven({"pkg/a.py": code, **PINNED}) == ([], code)


def test_a_comment_about_versions_goes_with_its_branch_and_a_long_one_keeps_both() -> None:
    code = "import sys\n\n# Since Python 3.2.\nif sys.version_info >= (3, 2):\n    x = 1\n"
    assert proven({"pkg/a.py": code, **PINNED})[1] == "x = 1\n"
    plain = code.replace("Since Python 3.2.", "How many.")
    assert proven({"pkg/a.py": plain, **PINNED})[1] == "# How many.\nx = 1\n"
    long = code.replace("# Since", "# Quotes are escaped.\n# Since")
    assert proven({"pkg/a.py": long, **PINNED}) == ([], long)


def test_without_an_oldest_python_no_branch_is_dead() -> None:
    assert proven({"pkg/a.py": "import sys\nif sys.version_info >= (3, 8):\n    x = 1\n"})[0] == []


def test_what_is_left_parses_and_keeps_line_ends() -> None:
    code = "def _old():\r\n    pass\r\n\r\n\r\nclass _Box:\r\n    def _mend(self):\r\n        pass\r\n\r\n    x = 1\r\n"
    used = {"pkg/b.py": "from pkg.a import _Box\n"}
    found, text = proven({"pkg/a.py": code, **used})
    assert len(found) == 2
    ast.parse(text)
    assert text == "class _Box:\r\n    x = 1\r\n"


def test_an_empty_file_has_no_dead_code() -> None:
    assert proven({"pkg/a.py": ""}) == ([], "")


def test_a_file_that_does_not_parse_has_no_dead_code() -> None:
    assert proven({"pkg/a.py": "def _old(:\n"})[0] == []


def test_an_unknown_proof_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of unused, types, statements"):
        PythonCode().proven("magic", {"a.py": b""}, "a.py", ())


def test_what_a_test_does_not_reach_after_an_error_stays() -> None:
    code = "def load():\n    raise ValueError\n    commit()\n"
    assert proven({"tests/test_a.py": code}, "tests/test_a.py") == ([], code)
    assert proven({"pkg/a.py": code})[1] == "def load():\n    raise ValueError\n"
    code = "def load():\n    raise ValueError\n    pass\n"
    assert proven({"pkg/a.py": code}) == ([], code)


ONCE = "    def f(self):\n        return 1\n"
TWICE = f"class A:\n{ONCE}\n    def g(self):\n        return 2\n\n{ONCE}"


def test_a_function_that_is_written_twice_is_there_once() -> None:
    found, text = proven({"pkg/a.py": TWICE})
    assert found == ["`f` is written twice"]
    assert text == TWICE[: TWICE.rindex("\n    def f")]


@pytest.mark.parametrize(
    "code",
    [
        TWICE[:-2] + "3\n",
        TWICE.replace("    def f", "    @mark\n    def f"),
        TWICE.replace("    def g(self):\n        return 2\n", "    g = f\n"),
        "if x:\n    def f():\n        return 1\nelse:\n    def f():\n        return 1\n",
    ],
)
def test_a_second_function_of_a_name_that_is_another_one_is_left(code: str) -> None:
    assert proven({"pkg/a.py": code}) == ([], code)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("class A:\n    def _show(self):\n        pass\n\n    x = 1\n", []),
        ("class A:\n    def __show(self):\n        pass\n\n    x = 1\n", ["method `__show` is never used"]),
        (
            "class _Box:\n    def _show(self):\n        pass\n\n    x = 1\n\n\ny = _Box()\n",
            ["method `_show` is never used"],
        ),
    ],
)
def test_a_method_of_a_public_class_may_be_for_another_package(code: str, found: list[str]) -> None:
    assert proven({"pkg/a.py": code})[0] == found


def test_many_findings_are_removed_together_in_a_few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[str] = []

    def attempt(sources: Sources, path: str, after: str) -> str | None:
        attempts.append(after)
        return removed_with(sources, path, after)

    monkeypatch.setattr("remora.discovery._unused.removed_with", attempt)
    dead = "".join(f"\n\ndef _old_{number}(x):\n    return x + {number}\n" for number in range(100))
    found, text = proven({"pkg/a.py": f"def load(x):\n    return x\n{dead}"})
    assert (len(found), text) == (100, "def load(x):\n    return x\n")
    assert len(attempts) < 20


def test_one_finding_that_must_stay_keeps_no_other() -> None:
    dead = "".join(f"def _old_{number}(x):\n    return x + {number}\n\n\n" for number in range(9))
    code = f"import os\n\n\ndef _here():\n    return os.sep\n\n\n{dead}def load(x):\n    return x\n"
    found, text = proven({"pkg/a.py": code, "pkg/b.py": "from pkg.a import os\n"})
    assert len(found) == 9
    assert text == "import os\n\n\ndef _here():\n    return os.sep\n\n\ndef load(x):\n    return x\n"
