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


def test_long_texts_and_nested_fields_of_wide_rows_follow_the_table() -> None:
    issues = [
        {"url": f"https://api.example.com/repos/o/r/issues/{number}", "number": number, "title": title, "state": "open",
         "user": {"login": "ann", "url": "https://example.com/users/ann"}, "body": f"Steps:\n\n1. run {number}\n" * 19}
        for number, title in ((412, "Crash on empty config"), (419, "Memory leak"))
    ]  # fmt: skip
    lines = record_lines(issues)
    assert lines[:8] == [
        "(2, state open): number, title",
        " 412, Crash on empty config",
        " 419, Memory leak",
        " all:",
        "  user: login: ann, url: https://example.com/users/ann",
        " number 412:",
        "  url: https://api.example.com/repos/o/r/issues/412",
        "  body:",
    ]
    assert lines[8:10] == ["   Steps:", "   1. run 412"]
    assert " number 419:" in lines


def test_the_leaves_of_deep_records_are_shown_under_the_name_of_their_record() -> None:
    pods = [
        {"metadata": {"name": f"web-{at}", "labels": {"app": "web", "tier": "front"}},
         "spec": {"node": f"node-{at}", "containers": [{"name": "web", "ports": [{"port": 8443}], "env": []}]},
         "status": {"phase": "Pending", "containers": [
             {"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "x" * 60}}}]}}
        for at in (1, 2)
    ]  # fmt: skip
    lines = record_lines({"items": pods})
    assert lines[:2] == ["items (2):", " all:"]
    assert " 1 web-1:" in lines
    assert any("reason: CrashLoopBackOff" in line for line in lines)
    assert not any("fields}" in line or "items]" in line for line in lines)


def test_a_row_that_the_focus_names_is_shown_wherever_it_stands() -> None:
    rows = [{"id": f"itm_{at}", "stock": at} for at in range(1000)]
    lines = record_lines({"data": rows}, None, frozenset({"itm_777"}))
    assert " itm_777, 777" in lines
    assert lines[-1] == " … 799 more"


def test_rows_that_are_all_the_same_are_told_once() -> None:
    assert record_lines({"a": [{"id": 7, "n": 1}] * 2}) == ["a (2, id 7, n 1):"]
    assert flow({"a": [{"id": 7, "n": 1}] * 2}) == "a: [id: 7, n: 1; id: 7, n: 1]"


def test_a_value_of_hundreds_of_levels_is_read() -> None:
    value: Any = "the bottom"
    for level in range(400):
        value = {"a": [value], "level": level}
    assert record_lines(value)[0] == "level: 399"
