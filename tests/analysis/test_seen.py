from __future__ import annotations

import pytest

from remora.analysis import PromptItem, PromptPart, Shown, is_telling, words_of

PROMPT = [
    PromptPart("system", (PromptItem("ERR-4711 in the system text"),)),
    PromptPart("excerpts", (PromptItem("def load(path):\n    return open(path)", label="a.py"),)),
    PromptPart("knowledge", (PromptItem("ORD-1007, 3 days"),)),
]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("    return x  # y", "return x # y"),
        ('      "code": "B008",', "B008"),
        ('  "message": "a \\"b\\" c",', 'a "b" c'),
        ("  {", ""),
        ('  "n": 12345', "12345"),
        ("], [", ""),
    ],
)
def test_a_line_of_json_is_looked_for_by_its_value(line: str, words: str) -> None:
    assert words_of(line) == words


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("    return open(path)", "excerpts"),
        ('  "order": "ORD-1007",', "knowledge"),
        ("ORD-100", ""),  # only as a part of a longer word
        ("ERR-4711", ""),  # the system text is no memory
        ("day", ""),
        ("return", ""),
        ("nothing of the kind", ""),
    ],
)
def test_a_line_is_found_in_the_part_that_shows_it(line: str, part: str) -> None:
    assert Shown(PROMPT).part_with(words_of(line)) == part


@pytest.mark.parametrize(
    ("words", "telling"), [("", False), ("B08", False), ("B008", True), ("safe", False), ("x" * 8, True)]
)
def test_words_that_may_be_there_for_another_reason_are_not_looked_for(words: str, telling: bool) -> None:
    assert is_telling(words) is telling
