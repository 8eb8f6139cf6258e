"""Intervals: how far a figure could be off, at 95%. Tasks are the sample; seeds of one task are not independent."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

Z = 1.959963984540054
DRAWS = 2000
SEED = 20261116


class Interval(NamedTuple):
    """A figure, and where it lies at 95%."""

    value: float
    low: float
    high: float


def wilson(share: float, tasks: int) -> Interval:
    """Wilson's interval of a share. Its size is the number of tasks, however many seeds each was tried with."""
    if tasks == 0:
        return Interval(0.0, 0.0, 1.0)
    square = Z * Z / tasks
    middle = (share + square / 2) / (1 + square)
    half = Z / (1 + square) * math.sqrt(share * (1 - share) / tasks + square / (4 * tasks))
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def by_tasks(values: Mapping[str, Sequence[tuple[float, float]]]) -> Interval:
    """A ratio of sums, such as right turns of all turns, or of values and ones for a mean; tasks are drawn again."""
    groups = [(sum(above for above, _ in pairs), sum(below for _, below in pairs)) for pairs in values.values()]
    drawn = random.Random(SEED)  # noqa: S311 - repeatable on purpose
    made = sorted(_ratio(drawn.choices(groups, k=len(groups))) for _ in range(DRAWS)) if groups else [0.0]
    return Interval(_ratio(groups), made[round(0.025 * (len(made) - 1))], made[round(0.975 * (len(made) - 1))])


def difference(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Interval:
    """The mean difference over the tasks that both have."""
    return by_tasks({task: [(ours[task] - theirs[task], 1.0)] for task in ours if task in theirs})


def mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _ratio(groups: Sequence[tuple[float, float]]) -> float:
    below = sum(each for _, each in groups)
    return sum(each for each, _ in groups) / below if below else 0.0
