"""JSON reads as short lines, every value under its key."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from remora.context.evidence._records import flow, record_lines

_NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), _NAMES)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4), max_leaves=20
)


def test_records_become_a_table_and_shared_values_stand_in_its_head() -> None:
    flights = [
        {"number": "HAT017", "date": "2024-05-25", "seats": {"economy": 3, "business": 0}},
        {"number": "HAT277", "date": "2024-05-25", "seats": {"economy": 9, "business": 2}},
    ]
    assert record_lines({"id": "OI5L9G", "flights": flights}) == [
        "id: OI5L9G",
        "flights (2, date 2024-05-25): number, seats (economy/business)",
        " HAT017, 3/0",
        " HAT277, 9/2",
    ]


def test_records_by_key_have_their_key_before_them() -> None:
    cards = {"card_1": {"id": "card_1", "amount": 5}, "card_2": {"id": "card_2", "amount": 7}}
    assert record_lines({"cards": cards}) == ["cards (2): amount", " card_1: 5", " card_2: 7"]


def test_rows_that_stand_in_several_groups_are_given_once() -> None:
    first, second, third = ({"n": f"HAT{i}", "from": "A", "to": str(i), "at": i} for i in (1, 2, 3))
    assert record_lines([[first, second], [first, third]]) == [
        "(4, from A): n, to, at",
        " HAT1, 1, 1",
        " HAT2, 2, 2",
        " HAT3, 3, 3",
        " groups: HAT1 + HAT2; HAT1 + HAT3",
    ]


def test_fields_that_repeat_an_argument_of_the_call_are_left_out() -> None:
    assert record_lines({"user_id": "u1", "name": "Mia"}, {"user_id": "u1"}) == ["name: Mia"]
    assert record_lines([{"to": "DEN", "n": 1}, {"to": "DEN", "n": 2}], {"to": "DEN"}) == ["(2): n", " 1", " 2"]


def test_a_field_with_another_value_than_the_argument_stays() -> None:
    assert record_lines({"city": "Rome"}, {"city": "Oslo"}) == ["city: Rome"]


def _scalars(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _scalars(item)]
    if isinstance(value, list):
        return [text for item in value for text in _scalars(item)]
    return [value] if isinstance(value, str) else [str(value)] if type(value) is int else []


@given(_VALUES)
def test_no_text_or_number_is_lost(value: Any) -> None:
    shown = "\n".join(record_lines(value))
    assert all(text in shown for text in _scalars(value))


@given(_VALUES)
def test_a_value_within_a_line_stays_within_it(value: Any) -> None:
    assert "\n" not in flow(value)
