"""Ids sort as they were given, whatever the clock and whatever lies beside them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora.events import ids_behind, is_id, new_id, next_id, order_of, short_id

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
moments = st.datetimes(datetime(1970, 1, 2), datetime(9998, 1, 1), timezones=st.just(UTC))
HOSTILE = [
    "",
    "zzz",
    "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
    "Z" * 26,
    "z" * 26,
    "01M7FH87G1STJRK040SZ8C2R2\n",
    "é" * 26,
    "\x00" * 26,
]


@given(st.lists(moments, min_size=1, max_size=20))
def test_each_id_is_behind_the_one_before_wherever_the_clock_jumps(clock: list[datetime]) -> None:
    ids = [""]
    for now in clock:
        ids.append(next_id(now, ids[-1]))
    assert ids == sorted(set(ids))
    assert all(map(is_id, ids[1:]))


@given(moments)
def test_what_is_counted_on_from_an_id_is_behind_it_and_before_the_next(now: datetime) -> None:
    run = new_id(now)
    agents = list(islice(ids_behind(run), 500))
    assert [run, *agents] == sorted({run, *agents})
    assert next_id(now - timedelta(hours=1), run) > agents[-1]
    assert next_id(now - timedelta(hours=1), agents[-1]) > agents[-1]
    assert len(set(map(short_id, agents))) == len(agents)


def test_two_that_follow_the_same_id_at_the_same_moment_are_different() -> None:
    after = new_id(NOW)
    assert len({next_id(NOW, after) for _ in range(1000)}) == 1000


@pytest.mark.parametrize("planted", HOSTILE)
def test_what_no_clock_of_ours_gives_is_not_followed(planted: str) -> None:
    assert not is_id(planted)
    assert next_id(NOW, planted)[:10] == new_id(NOW)[:10]
    assert order_of(planted) == ""


def test_at_the_end_of_all_time_an_id_is_still_an_id() -> None:
    last = new_id(datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC))
    assert is_id(last)
    assert is_id(next_id(NOW, last))
    assert is_id(new_id(datetime(1960, 1, 1, tzinfo=UTC)))


def test_a_name_that_is_no_id_stands_where_its_time_puts_it() -> None:
    before, after = new_id(NOW - timedelta(seconds=1)), new_id(NOW + timedelta(seconds=1))
    assert before < order_of("my-agent", "2026-11-15T12:00:00.000000Z") < after
    assert order_of("my-agent", "not a time") == order_of("my-agent", "9" * 1000) == ""
    assert order_of(before, "2030-01-01T00:00:00.000000Z") == before
