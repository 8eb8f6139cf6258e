"""A line of one version of a file is found in another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remora.workspaces import LineMap

texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=12)


@given(texts, texts)
def test_a_kept_line_has_the_same_text_and_no_two_lines_are_kept_as_one(old: list[bytes], new: list[bytes]) -> None:
    lines = LineMap(b"".join(old), b"".join(new))
    kept = [(line, now) for line in range(1, len(old) + 1) if (now := lines.kept(line)) is not None]
    assert all(old[line - 1] == new[now - 1] for line, now in kept)
    assert [now for _, now in kept] == sorted({now for _, now in kept})
    assert all(lines.before(now) == line for line, now in kept)


@given(texts, texts)
def test_every_line_came_from_a_line_of_the_old_version_or_from_its_end(old: list[bytes], new: list[bytes]) -> None:
    lines = LineMap(b"".join(old), b"".join(new))
    assert all(1 <= lines.before(line) <= len(old) + 1 for line in range(1, len(new) + 1))


def test_of_replaced_lines_the_first_is_the_first_and_an_added_line_is_where_it_was_added() -> None:
    old, new = b"1\na\nb\nc\nd\n", b"1\na\nnew\nnew\nb\nC\nd\n"
    lines = LineMap(old, new)
    assert [lines.before(line) for line in range(1, 8)] == [1, 2, 3, 3, 3, 4, 5]
    assert [lines.kept(line) for line in range(1, 6)] == [1, 2, 5, None, 7]


def test_a_line_that_never_was_is_not_kept() -> None:
    assert LineMap(b"1\n2\n", b"1\n2\n").kept(3) == 3  # linters name the line behind the end
    assert LineMap(b"1\n2\n", b"1\n2\n").kept(4) is None
    assert LineMap(b"", b"1\n2\n").kept(2) is None
