"""An output is read as what it is, within its bound, and one that says it failed has failed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.context.evidence import read_output
from remora.context.evidence._reading import ERROR_LINE, MAX_BYTES, MAX_LINE, error_lines

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    f()\nValueError: no such key\n'
FAILED_EDIT = (
    "Your proposed edit has introduced new syntax error(s).\n\nERRORS:\n- E999 IndentationError: unexpected indent\n\n"
    "Your changes have NOT been applied. Please fix your edit command and try again.\n"
)


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("records", '{"id": 1}'),
        ("records", '[{"id": 1}, {"id": 2}]'),
        ("records", {"id": 1}),
        ("code", "[File: a.py (3 lines total)]\n1:import os\n2:\n3:print(os.name)\n4:x = 1\n"),
        ("diff", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"),
        ("traceback", TRACEBACK),
        ("log", "2024-05-01 10:00:00 INFO started\n2024-05-01 10:00:01 ERROR lost the line\n"),
        ("listing", "src/a.py\nsrc/b.py\nREADME.md\n"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |\n"),
        ("html", "<html><body><p>Hello</p></body></html>"),
        ("text", "The weather is fine.\nTomorrow, too.\n"),
        ("text", "42"),
    ],
)
def test_an_output_is_read_as_what_it_is(kind: str, output: Any) -> None:
    assert read_output(output).kind == kind


@pytest.mark.parametrize(
    "output",
    [
        "Error: payment amount does not add up, total price is 375, but paid 299",
        "ValueError: not a number",
        TRACEBACK,
        FAILED_EDIT,
        "\nEXECUTION TIMED OUT\n(Open file: n/a)",
        "Error while loading config: no key `name`",
        "Failed to connect to host",
        "bash: foo: command not found",
        "ls: cannot access 'x': No such file or directory",
        {"error": "not found"},
        {"ok": False, "reason": "busy"},
        {"status": "failed"},
        {"stdout": "", "returncode": 2},
    ],
)
def test_what_says_that_it_failed_has_failed(output: Any) -> None:
    assert read_output(output).failed


@pytest.mark.parametrize(
    "output",
    [
        "Errors are handled in errors.py, line 12.",
        "12:    raise ValueError('Error: bad')\n13:\n14:    except Exception as error:\n",
        "src/errors.py\nsrc/exceptions.py\n",
        "3 passed, 0 failed",
        "Error handling\n==============\nThis chapter is about errors.",
        {"error": None, "value": 1},
        {"error": "", "value": 1},
        {"errors": [{"line": 3}], "fixed": 2},
        {"id": 7, "name": "nightly", "started": 1, "branch": "main", "status": "failed"},
        "2024-05-01 10:00:00 INFO started\n2024-05-01 10:00:01 ERROR lost the line\n",
        "Error rate: 5%, error budget: 1%",
        "Failed: 0, passed: 3",
        "Invalid entries: 0",
        "",
        [],
    ],
)
def test_text_that_only_mentions_errors_has_not_failed(output: Any) -> None:
    assert not read_output(output).failed


def test_html_is_read_as_its_text_with_links() -> None:
    page = "<html><head><title>x</title></head><body><h1>Fares</h1><p>See <a href='/f'>list</a></p></body></html>"
    assert read_output(page).lines == ("x", "Fares", "See list (/f)")


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ({"content": [{"type": "text", "text": "one\ntwo"}], "isError": False}, ("one", "two")),
        ([{"type": "text", "text": '{"id": 7}'}], ("id: 7",)),
        ([{"type": "image", "data": "iVBOR" * 99, "mimeType": "image/png"}], ("[image, image/png]",)),
        ('{"id": 1, "a": "x"}\n{"id": 2, "a": "x"}\n', ("(2, a x): id", " 1", " 2")),
        (
            "<users><user>Ann</user><user>Bob</user></users>",
            ("<users>", "<user>Ann</user>", "<user>Bob</user>", "</users>"),
        ),
        (
            {"total": 2, "results": '[{"id": "x1", "n": 5}, {"id": "x2", "n": 6}]'},
            ("total: 2", "results (2): id, n", " x1, 5", " x2, 6"),
        ),
        (b"caf\xc3\xa9", ("café",)),
        (bytes(range(20)), ("binary data, 20 bytes: 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f …",)),
        ({"stdout": "one\ntwo\n", "stderr": ""}, ('stderr: ""', "stdout:", " one", " two")),
    ],
)
def test_results_in_other_forms_are_read_as_what_they_hold(output: Any, lines: tuple[str, ...]) -> None:
    assert read_output(output).lines == lines


def test_a_long_line_is_split_and_loses_nothing() -> None:
    words = [f"word{number}" for number in range(200)]
    reading = read_output("  " + " ".join(words))
    assert len(reading.lines) > 5
    assert all(line.startswith("   … ") for line in reading.lines[1:])
    assert [word for line in reading.lines for word in line.replace("…", "").split()] == words


def test_encoded_data_is_shown_by_its_ends() -> None:
    (line,) = read_output(f"data: {'QUJD' * 500} end").lines
    assert "[2,000 characters]" in line
    assert line.endswith("QUJD end")


def test_colours_and_control_characters_are_gone() -> None:
    assert read_output("\x1b[31mred\x1b[0m\x07 light\r\nnext").lines == ("red light", "next")


def test_of_a_large_output_head_tail_and_what_is_looked_for_are_kept() -> None:
    text = "\n".join(f"line {number} of many, with nothing in it" for number in range(5000))
    text = text.replace("line 2500 of", "needle_2500 of")
    reading = read_output(text, frozenset({"needle_2500"}))
    assert reading.lines[0].startswith("line 0 ")
    assert reading.lines[-1].startswith("line 4999 ")
    assert any("needle_2500" in line for line in reading.lines)
    assert reading.omitted == 5000 - len(reading.lines)


def test_identifiers_are_kept_with_their_keys() -> None:
    found = read_output({"user_id": "mia_1", "cards": {"card_77": {"amount": 5}, "card_78": {"amount": 6}}}).identifiers
    assert found == (("user_id", "mia_1"), ("cards", "card_77"), ("cards", "card_78"))


def test_ids_outlive_lines_that_are_not_kept() -> None:
    blocks = [f"- text: {'plain words ' * 40}\n  id: '{number}'\n" for number in range(60)]
    reading = read_output("".join(blocks))
    assert "id: '30'" not in "\n".join(reading.lines)
    assert ("id", "30") in reading.identifiers


@given(st.one_of(st.text(max_size=3000), st.binary(max_size=500), st.integers(), st.none(), st.lists(st.text())))
def test_any_output_can_be_read_within_the_bound(value: Any) -> None:
    reading = read_output(value)
    assert sum(len(line.encode(errors="replace")) + 1 for line in reading.lines) <= MAX_BYTES
    assert all(len(line) <= MAX_LINE + 3 and "\n" not in line for line in reading.lines)


@given(st.dictionaries(st.text(max_size=9), st.lists(st.integers() | st.text(max_size=40), max_size=60), max_size=30))
def test_an_object_and_its_json_are_read_alike(value: dict[str, Any]) -> None:
    try:
        text = orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, TypeError):
        return
    assert read_output(text) == read_output(value)


REPORT = [{"code": f"E{at}", "row": at, "message": f"line {at} is too long"} for at in range(100, 140)]


@pytest.mark.parametrize("option", [0, orjson.OPT_INDENT_2])
def test_json_with_a_few_lines_around_it_is_read_as_records(option: int) -> None:
    written = orjson.dumps(REPORT, option=option).decode()
    for text in (f"{written}warning: two rules clash", f"HTTP/1.1 200 OK\nX-Request-Id: req_9\n\n{written}\n"):
        reading = read_output(text)
        assert reading.kind == "records"
        assert " E123, 123, line 123 is too long" in reading.lines
        assert ("code", "E101") in reading.identifiers
    assert read_output(f"{written}\nwarning: two rules clash").lines[-1] == "warning: two rules clash"
    assert read_output(f"X-Request-Id: req_9\n\n{written}").lines[0] == "X-Request-Id: req_9"


def test_code_and_prose_with_some_json_in_them_are_read_as_they_are() -> None:
    text = "The answer looks like this:\n[1, 2]\n" + "It has more lines than that.\n" * 5
    assert read_output(text).kind == "text"
    assert "[1, 2]" in read_output(text).lines
    assert read_output("[build-system]\nrequires = []\n").lines == ("[build-system]", "requires = []")


def test_a_commit_stands_beside_its_subject() -> None:
    log = "".join(
        f"commit {sign * 40}\nAuthor: Ann <a@x.io>\nDate:   Mon\n\n    Fix {sign}\n\n    Why: {sign}{sign}\n\n"
        for sign in "ab"
    )
    assert read_output(log).lines[:6] == (
        f"commit {'a' * 40}: Fix a", "Author: Ann <a@x.io>", "Date:   Mon", "", "    Why: aa", "",
    )  # fmt: skip
    patch = f"commit {'a' * 40}\nAuthor: Ann\n\n    Fix a\n\ndiff --git a/x b/x\n@@ -1 +1 @@\n-commit {'b' * 40}\n"
    assert read_output(patch).kind == "diff"


def test_a_url_that_ends_with_a_name_is_no_further_identifier_and_a_number_is_one() -> None:
    rows = [{"number": at, "title": "a b", "url": f"https://example.com/{at}x"} for at in (100, 130)]
    assert read_output({"rows": rows}).identifiers == (
        ("number", "100"), ("url", "https://example.com/100x"), ("number", "130"), ("url", "https://example.com/130x"),
    )  # fmt: skip
    named = [{"name": f"rule-{at}", "url": f"https://example.com/rule-{at}"} for at in range(3)]
    assert [key for key, _ in read_output({"rules": named}).identifiers] == ["name"] * 3


@given(st.lists(st.from_regex(ERROR_LINE) | st.text(), max_size=5))
def test_every_line_that_reports_an_error_is_found(lines: list[str]) -> None:
    assert error_lines(lines) == [at for at, line in enumerate(lines) if ERROR_LINE.search(line)]
