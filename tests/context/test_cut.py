"""Replies that were cut: one that repeats itself is recognized, and only others may be longer the next time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remora.context.cut import describe_cut, may_be_longer, repeated_part

PART = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=3, max_size=40).filter(str.strip)


@given(st.text(max_size=30), PART, st.integers(8, 60), st.integers(0, 39))
def test_a_text_that_ends_by_repeating_a_part_is_recognized_wherever_it_is_cut(
    before: str, part: str, times: int, cut: int
) -> None:
    text = before + part * times + part[:cut]
    found = repeated_part(text)
    assert found
    assert found * 4 in text
    assert not may_be_longer("length", text)
    assert "write it once" in describe_cut(text, 256, 512)


@given(st.integers(0, 200))
def test_a_list_of_different_things_does_not_repeat_itself(count: int) -> None:
    text = ", ".join(f"item {n} of {n * n}" for n in range(count))
    assert repeated_part(text) == ""
    assert may_be_longer("length", text)
    assert not may_be_longer("stop", text)
    assert describe_cut(text, 256, 512).endswith("the next may have 512")
    assert describe_cut(text, 512, 512).endswith("write a shorter call")


def test_white_space_alone_is_no_repeated_part() -> None:
    assert repeated_part("x = 1" + " " * 300) == ""
