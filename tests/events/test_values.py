"""Raw values come back exactly, whatever they are."""

from __future__ import annotations

import math
import sys
from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.errors import TraceError
from remora.events import Inline, Packed, pack, unpack

texts = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["\ud800", "\udfff x", "\u2028", "\ufeff", "\0", "$int"]
)
numbers = st.integers() | st.floats() | st.integers(min_value=2**63, max_value=2**80) | st.sampled_from([-0.0, 1.0, 1])
hashables = st.recursive(
    st.none() | st.booleans() | numbers | texts | st.binary(max_size=20),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
others = st.decimals(allow_nan=False) | st.dates() | st.times() | st.timedeltas() | st.complex_numbers(allow_nan=False)
values = st.recursive(
    hashables | others | st.datetimes(timezones=st.none() | st.just(UTC)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(hashables, inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$int", "$dict", "$", "a"]), inner, max_size=2)
        | st.sets(hashables, max_size=3)
    ),
    max_leaves=20,
)


def shape(value: Any) -> str:
    """The value with its types: tells 1 from 1.0 and True, 0.0 from -0.0, and NaN is like NaN."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{shape(key)}:{shape(item)}" for key, item in value.items()) + "}"
    if isinstance(value, set | frozenset):
        return type(value).__name__ + str(sorted(shape(item) for item in value))
    if isinstance(value, list | tuple):
        return type(value).__name__ + str([shape(item) for item in value])
    if isinstance(value, datetime | time):
        value = value.replace(fold=0)  # no part of a value: it takes part in no comparison
    return f"{type(value).__name__} {value!r}"


def there_and_back(value: Any) -> Any:
    packed = pack(value)
    if isinstance(packed, Packed):
        return unpack(packed.data, packed.encoding)
    return orjson.loads(orjson.dumps(packed.value))


@given(values)
def test_every_value_comes_back_exactly(value: Any) -> None:
    assert shape(there_and_back(value)) == shape(value)


@given(values)
def test_what_stands_in_the_record_is_plain_json_within_the_limit(value: Any) -> None:
    packed = pack(value, limit=64)
    if isinstance(packed, Inline):
        assert len(orjson.dumps(packed.value)) <= 64


@pytest.mark.parametrize(
    ("value", "encoding"),
    [
        ("x" * 20_000, "utf-8"),
        ("\ud800", "exact-json"),
        (b"x", "bytes"),
        (["x" * 20_000], "json"),
        (math.nan, "exact-json"),
        ([math.inf, -math.inf], "exact-json"),
        (2**64, "exact-json"),
        (-(2**63) - 1, "exact-json"),
        ({1: "a"}, "exact-json"),
        ({"\ud800": 1}, "exact-json"),
        ((1, 2), "exact-json"),
        ([datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2)))], "exact-json"),
        ([date(2026, 1, 1), time(1, 2, 3, 4), timedelta(days=-1, microseconds=1), Decimal("1.50")], "exact-json"),
        (10**5000, "exact-json"),
    ],
    ids=range(14),
)
def test_what_json_cannot_hold_or_is_large_is_packed(value: Any, encoding: str) -> None:
    packed = pack(value)
    assert isinstance(packed, Packed)
    assert packed.encoding == encoding
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert shape(unpack(packed.data, packed.encoding)) == shape(value)
    finally:
        sys.set_int_max_str_digits(limit)


@pytest.mark.parametrize(
    "value", [None, True, 0, 1.0, -0.0, 1e308, 5e-324, 2**64 - 1, -(2**63), "\u2028\ufeff\0", {"$int": "0x1"}, [[], {}]]
)
def test_what_json_holds_stands_in_the_record(value: Any) -> None:
    packed = pack(value)
    assert isinstance(packed, Inline)
    assert shape(there_and_back(value)) == shape(value)


def test_what_stands_in_the_record_is_a_copy() -> None:
    value = {"a": [1]}
    packed = pack(value)
    value["a"].append(2)
    assert packed == Inline({"a": [1]})


def test_a_dict_that_looks_like_a_tag_is_not_taken_for_one() -> None:
    value = {"$int": "0x1", "": math.nan}, {"$int": "0x1"}, {"$dict": []}
    assert shape(there_and_back(value)) == shape(value)


def test_a_named_tuple_comes_back_as_a_tuple() -> None:
    point = namedtuple("point", "x y")(1, math.inf)
    assert there_and_back(point) == (1, math.inf)


@pytest.mark.parametrize("depth", [100, 245, 252, 260, 400])
def test_nested_values_come_back(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    packed = pack(value)
    if isinstance(packed, Inline):
        orjson.dumps({"data": {"raw": packed.value}})
    back = there_and_back(value)
    for _ in range(depth):
        (back,) = back
    assert back == 1


def test_too_deep_nesting_and_circles_are_typed_errors() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(TraceError, match="deep"):
        pack(value)
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(TraceError, match="deep"):
        pack(circle)


def test_a_type_without_an_exact_form_is_named() -> None:
    with pytest.raises(TraceError, match="`object`"):
        pack([object()])


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"\xff", "utf-8"),
        (b"{", "json"),
        (b"{", "exact-json"),
        (b'{"$new": 1}', "exact-json"),
        (b'{"$int": 5}', "exact-json"),
        (b'{"$bytes": "?"}', "exact-json"),
        (b'{"$set": [[]]}', "exact-json"),
        (b'{"$dict": [[1]]}', "exact-json"),
        (b'{"$dict": 5}', "exact-json"),
        (b'{"$decimal": "x"}', "exact-json"),
        (b'{"$datetime": "x"}', "exact-json"),
        (b'{"$timedelta": [1e300]}', "exact-json"),
        (b"[" * 100_000, "exact-json"),
        (b"1" * 5000, "exact-json"),
    ],
)
def test_bytes_that_are_not_what_they_should_be_are_a_typed_error(data: bytes, encoding: Any) -> None:
    with pytest.raises(TraceError):
        unpack(data, encoding)
