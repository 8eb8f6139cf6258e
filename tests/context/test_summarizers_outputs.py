"""What real tools really printed (`outputs/`), and what a model is told about it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context._summaries import BUILT_IN, FALLBACK
from remora.context._summaries._xml import read_cases
from remora.context.summarizers import distill
from remora.context.summary import Summarized
from remora.context.text import MAX_LINE

OUTPUTS = Path(__file__).parent / "outputs"
SOURCES = Path(__file__).parents[2] / "src" / "remora" / "context" / "_summaries"


def output(name: str) -> str:
    return (OUTPUTS / name).read_text(encoding="utf-8")


def made(name: str, raw: Any) -> Summarized:
    return BUILT_IN[name].read(raw)


LINES = [
    ("ruff", "ruff.json", "5 lint errors in 1 file: F401 ×3, F841 ×1, I001 ×1; 4 fixable"),
    (
        "pytest",
        "pytest.txt",
        "2 of 3 tests failed, 1 error, 1 skipped; first: test_shop.py::test_total_with_a_rate (assert 150.0 == 160)",
    ),
    ("pytest", "pytest-passed.txt", "1 test passed"),
    ("pytest", "pytest-collect.txt", "1 error; first: test_bad.py"),
    (
        "junit",
        "junit.xml",
        "2 of 3 tests failed, 1 error, 1 skipped; first: test_shop::test_total_with_a_rate "
        "(assert 150.0 == 160 + where 150.0 = total([100, 200], 0.5))",
    ),
    ("mypy", "mypy.txt", "3 type errors in 1 file: return-value ×2, arg-type ×1; first at src/shop.py:8"),
    ("diff", "change.diff", "1 file changed, 1 line added, 3 removed: src/shop.py"),
    ("file", "shop.py.txt", "19 lines; defines total, first, Basket"),
    ("listing", "ls.txt", "28 files: .py ×28"),
    ("traceback", "traceback.txt", "IndexError: list index out of range, at /tmp/demo/src/shop.py:12"),
    ("traceback", "traceback-chained.txt", "RuntimeError: settings are damaged, at <stdin>:6"),
    ("json", "ruff.json", "List of 5 objects with cell, code, end_location, filename, fix and 6 more"),
    ("text", "shop.py.txt", '19 lines: """Prices."""'),
]


@pytest.mark.parametrize(("name", "file", "line"), LINES)
def test_a_real_output_becomes_one_good_line(name: str, file: str, line: str) -> None:
    assert made(name, output(file)).summary == line


@pytest.mark.parametrize(("name", "file", "line"), [case for case in LINES if case[0] not in ("file", "json", "text")])
def test_the_detector_knows_every_shape_that_can_be_known(name: str, file: str, line: str) -> None:
    assert made("auto", output(file)) == made(name, output(file))
    assert made("auto", {"stdout": output(file), "returncode": 1}).summary == line


def test_what_is_known_of_a_test_run() -> None:
    known = made("pytest", output("pytest.txt")).knowledge
    assert known == {
        "tests_passed": 1,
        "tests_failed": 2,
        "tests_errors": 1,
        "failing_tests": [
            "test_shop.py::test_total_with_a_rate",
            "test_shop.py::test_first_of_none",
            "test_shop.py::test_needs_disk",
        ],
    }
    counts = {key: known[key] for key in ("tests_passed", "tests_failed", "tests_errors")}
    assert made("junit", output("junit.xml")).knowledge.items() >= counts.items()


def test_what_is_known_of_checkers_and_changes() -> None:
    assert made("ruff", output("ruff.json")).knowledge == {
        "lint_errors_remaining": 5,
        "lint_fixable": 4,
        "lint_rules": {"F401": 3, "F841": 1, "I001": 1},
    }
    assert made("mypy", output("mypy.txt")).knowledge["type_errors"] == 3
    assert made("diff", output("change.diff")).knowledge == {
        "changed_files": ["src/shop.py"],
        "lines_added": 1,
        "lines_removed": 3,
    }
    assert made("traceback", output("traceback.txt")).knowledge == {
        "exception": "IndexError",
        "exception_at": "/tmp/demo/src/shop.py:12",
    }


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("pytest", "pytest.txt"),
        ("pytest", "pytest-collect.txt"),
        ("traceback", "traceback-chained.txt"),
        ("file", "shop.py.txt"),
        ("diff", "change.diff"),
        ("text", "pytest.txt"),
    ],
)
def test_an_excerpt_is_word_for_word_at_the_line_it_names(name: str, file: str) -> None:
    (shown,) = made(name, output(file)).excerpts
    begin = shown["start_line"] - 1
    wanted = shown["text"].split("\n")
    assert output(file).split("\n")[begin : begin + len(wanted)] == wanted
    assert len(wanted) <= 30


def test_the_first_failure_is_shown_with_what_was_expected() -> None:
    (shown,) = made("pytest", output("pytest.txt")).excerpts
    assert shown["label"] == "failure of test_total_with_a_rate"
    assert "E       assert 150.0 == 160" in shown["text"]


@pytest.mark.parametrize(
    ("name", "raw", "line"),
    [
        ("ruff", "[]", "No lint errors"),
        ("ruff", [], "No lint errors"),
        ("auto", "[]", "Empty list"),
        ("mypy", "Success: no issues found in 5 source files\n", "No type errors in 5 files"),
        ("pytest", "\nno tests ran in 0.01s\n", "No tests ran"),
        ("pytest", "== 12 passed, 3 warnings in 75.20s (0:01:15) ==\n", "All 12 tests passed"),
        ("auto", ["src/a.py", "docs/", "src/b.py"], "2 files, 1 folder: .py ×2"),
        ("auto", ["one thing", "another"], "List of 2 strings: one thing, another"),
        ("auto", '{"name": "x", "n": 3}', "JSON object with 2 keys: name, n"),
        ("auto", {"stdout": "", "stderr": "boom\n"}, "boom"),
        ("auto", "", "No output"),
        ("auto", None, "Nothing was returned"),
        ("auto", 3, "Returned 3"),
        ("file", {"path": "a.py", "content": "def f(): ...\n"}, "a.py: 1 line; defines f"),
        ("diff", "nothing like a diff", "nothing like a diff"),
    ],
)
def test_small_results_have_their_line_too(name: str, raw: Any, line: str) -> None:
    assert made(name, raw).summary == line


def test_a_removed_line_that_looks_like_a_header_is_no_file() -> None:
    text = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,1 @@\n--- a comment\n keep\n"
    assert made("diff", text).summary == "1 file changed, 0 lines added, 1 removed: x.sql"


def test_a_report_with_entities_is_never_expanded() -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "aaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
    )
    text = bomb + "]><testsuites><testsuite><testcase name='&j;'/></testsuite></testsuites>"
    assert read_cases(text) is None
    assert len(made("junit", text).summary) <= MAX_LINE
    secret = '<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&x;"/></testsuite>'
    assert read_cases(secret) is None


def test_a_document_type_inside_a_tests_output_is_only_text() -> None:
    failure = "<failure message='m'><![CDATA[<!DOCTYPE html>]]></failure>"
    text = f"<testsuite><testcase name='t'>{failure}</testcase></testsuite>"
    assert made("junit", text).summary == "1 of 1 tests failed; first: t (m)"


def test_a_gigantic_output_is_read_at_both_ends_and_not_excerpted() -> None:
    text = "noise\n" * 1_000_000 + output("pytest.txt")
    found = made("auto", text)
    assert found.summary.startswith("2 of 3 tests failed")
    assert found.excerpts == ()


def test_numbers_are_never_those_of_a_part() -> None:
    assert made("text", "noise\n" * 1_000_000).summary == "1000000 lines: noise"
    assert made("diff", output("change.diff") * 4000).summary.startswith("56000 lines: ")
    assert made("mypy", output("mypy.txt") * 4000).summary.startswith("3 type errors")


def test_the_fallback_shows_no_raw_text_but_its_line() -> None:
    assert FALLBACK.read(output("pytest.txt")).excerpts == ()
    assert FALLBACK.read(output("pytest.txt")).summary == made("pytest", output("pytest.txt")).summary


PIECES = [line for path in sorted(OUTPUTS.iterdir()) for line in path.read_text(encoding="utf-8").split("\n")]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=30), max_size=30).map("\n".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | st.integers(), inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(["stdout", "stderr", "content", "path", "result", "code", "location", "filename", "message"])


@given(st.sampled_from(sorted(BUILT_IN)), values | st.dictionaries(keys, values))
def test_no_result_makes_a_built_in_summarizer_fail_or_say_more_than_a_line(name: str, raw: Any) -> None:
    found = made(name, raw)
    assert found.summary.strip()
    assert len(found.summary) <= MAX_LINE
    assert found.summary.splitlines() == [found.summary]
    assert len(found.knowledge) <= 5
    for shown in found.excerpts:
        assert len(shown["text"].split("\n")) <= 30
        assert shown["start_line"] >= 1
    assert made(name, raw) == found or "nan" in repr(raw)
    delta = distill("tool", raw, found).delta
    assert not [line for line in delta.diagnostics if "excerpts" in line]


def test_a_value_that_holds_itself_is_summed_up_too() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert made("auto", endless).summary == "List of 1 value: a value of type list"
    assert made("auto", {10**5000: 10**5000}).summary == "JSON object with 1 key: a value of type int"
    assert distill("t", {"knowledge_delta": {"n": 10**5000}}).delta.knowledge["n"].value == "a value of type int"


def test_no_pattern_can_repeat_a_repetition() -> None:
    """Every repetition has a bound or stands alone: what a pattern costs grows with the text and not faster."""
    for path in SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "compile":
                pattern = ast.literal_eval(node.args[0])
                assert not re.search(r"[^\\][*+](?![^\[]*\])", pattern), f"{path.name}: {pattern}"


def test_the_built_in_summarizers_touch_nothing_outside() -> None:
    for path in SOURCES.glob("*.py"):
        imported = {
            (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else node.names[0].name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
        assert not imported & {"os", "time", "random", "pathlib", "socket", "subprocess", "asyncio", "datetime"}, path
