"""The short look at a value and the walk through it say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.scripts._values import MAX_DEPTH, MAX_OUT, NotPlain, _is_plain, _Walk, plain

odd = st.sampled_from(
    [b"x", 2**63, -(2**63) - 1, 1j, "\ud800", float("nan"), float("inf"), {1: 2}, {"\ud800": 1}, (1,)]
)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | odd
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=20
)


def walked(value: Any, limit: int = MAX_OUT) -> Any:
    try:
        return _Walk(limit).plain(value, 0)
    except NotPlain:
        return NotPlain


@given(values, st.sampled_from([MAX_OUT, 200, 1000]))
def test_what_the_short_look_lets_through_is_what_the_walk_gives(value: Any, limit: int) -> None:
    if _is_plain(value, limit):
        assert json.dumps(walked(value, limit)) == json.dumps(value)
        assert plain(value, limit) is value


@given(st.recursive(st.none() | st.integers(0, 9) | st.text("aé", max_size=9), st.lists, max_leaves=30))
def test_the_short_look_lets_plain_values_through(value: Any) -> None:
    assert _is_plain(value, MAX_OUT)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def repeated(times: int) -> Any:
    value: Any = []
    for _ in range(times):
        value = [value] * 10
    return value


@pytest.mark.parametrize(
    ("value", "is_plain"),
    [
        (deep(MAX_DEPTH), True),
        (deep(MAX_DEPTH + 1), False),
        ("x" * (MAX_OUT - 16), True),
        ("x" * (MAX_OUT - 15), False),
        ({"x" * (MAX_OUT - 128): 1}, True),
        ({"x" * (MAX_OUT - 127): 1}, False),
        (repeated(3), True),
        (repeated(50), False),
    ],
)
def test_the_bounds_are_met_exactly(value: Any, is_plain: bool) -> None:
    assert (walked(value) is not NotPlain) == is_plain
    if is_plain:
        assert plain(value) == value
    else:
        with pytest.raises(NotPlain):
            plain(value)
