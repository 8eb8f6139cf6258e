"""Lines are analysed all at once, with the same result as one by one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from remora.context.evidence._words import COMMON, Index, index, is_identifier, split, weigh, words_of

WORD = re.compile(r"[a-z0-9_]{3,}|(?<![a-z0-9_])[0-9]{2}(?![a-z0-9_])")
LINES = st.text(st.sampled_from("aB c12_-/.,:é…K\t(the) ") | st.characters(exclude_categories=["Cs"]), max_size=40)


def slow_words(text: str) -> frozenset[str]:
    found = set(WORD.findall(text.lower()))
    parts = {part for word in found if "_" in word for part in word.split("_") if len(part) > 2}
    return frozenset((found | parts) - COMMON)


def indexed(lines: list[str]) -> Index:
    return index(lines, split(lines).words)


@given(LINES)
def test_words_are_those_that_the_pattern_finds(text: str) -> None:
    assert words_of(text) == slow_words(text)


@given(st.lists(LINES, max_size=6))
def test_lines_analysed_together_are_what_they_are_alone(lines: list[str]) -> None:
    together = split(lines)
    assert [slow_words(words) for words in together.words] == [slow_words(line) for line in lines]
    assert together.weights == [weigh(line.replace("\n", " ")) for line in lines]


@given(st.lists(LINES, max_size=6))
def test_a_word_leads_to_all_its_lines(lines: list[str]) -> None:
    words, found = split(lines).words, indexed(lines)
    for word, at in found.first.items():
        assert [at, *found.later.get(word, ())] == [at for at, line in enumerate(words) if word in line.split()]


@given(st.lists(LINES, max_size=6))
def test_a_name_is_fresh_in_its_first_line_alone(lines: list[str]) -> None:
    found = indexed(lines)
    assert found.fresh == [sum(found.first[name] == at for name in found.names) for at in range(len(lines))]


def test_names_are_ids_and_names_in_code() -> None:
    found = indexed(["def loadOrder(HAT017, x) -> gift_card_12: 404 May plain"])
    assert found.names == {"loadorder", "hat017", "gift_card_12"}
    assert is_identifier("gift_card_12")
