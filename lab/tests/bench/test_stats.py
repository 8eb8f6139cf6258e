"""Intervals, against values known from elsewhere."""

from __future__ import annotations

import pytest

from remora_lab.bench.stats import by_tasks, difference, wilson


@pytest.mark.parametrize(
    ("share", "tasks", "low", "high"),
    [
        (81 / 263, 263, 0.2553, 0.3662),
        (15 / 148, 148, 0.0624, 0.1605),
        (0 / 20, 20, 0.0, 0.1611),
        (1 / 29, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_is_the_published_one(share: float, tasks: int, low: float, high: float) -> None:
    found = wilson(share, tasks)
    assert (found.value, round(found.low, 4), round(found.high, 4)) == (share, low, high)


def test_nothing_measured_says_nothing() -> None:
    assert wilson(0.0, 0) == (0.0, 0.0, 1.0)
    assert by_tasks({}).value == 0.0


def test_the_interval_of_a_mean_is_near_that_of_the_normal_distribution_and_always_the_same() -> None:
    values = {f"t{number}": [(float(number % 10), 1.0)] for number in range(100)}
    found = by_tasks(values)
    # The standard error of 0…9, evenly, over 100 tasks is 0.287.
    assert found.value == 4.5
    assert found.low == pytest.approx(4.5 - 1.96 * 0.287, abs=0.08)
    assert found.high == pytest.approx(4.5 + 1.96 * 0.287, abs=0.08)
    assert by_tasks(values) == found


def test_more_seeds_of_the_same_tasks_do_not_make_an_interval_narrower() -> None:
    once = by_tasks({f"t{number}": [(float(number), 1.0)] for number in range(20)})
    thrice = by_tasks({f"t{number}": [(float(number), 1.0)] * 3 for number in range(20)})
    assert thrice == once


def test_a_difference_is_taken_task_by_task() -> None:
    ours = {"a": 1.0, "b": 0.0, "c": 1.0, "only ours": 1.0}
    assert difference(ours, {"a": 0.0, "b": 0.0, "c": 1.0}).value == pytest.approx(1 / 3)
