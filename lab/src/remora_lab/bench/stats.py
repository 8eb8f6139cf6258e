"""95% confidence intervals. Tasks are the sample; seeds of one task are not independent."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
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
    above = [sum(each for each, _ in pairs) for pairs in values.values()]
    below = [sum(each for _, each in pairs) for pairs in values.values()]
    made = sorted(_ratio(map(above.__getitem__, drawn), map(below.__getitem__, drawn)) for drawn in _draws(len(above)))
    low, high = (made[round(share * (len(made) - 1))] for share in (0.025, 0.975))
    return Interval(_ratio(above, below), low, high)


@cache
def _draws(tasks: int) -> list[list[int]]:
    """So many tasks drawn again, by their places: the same for every figure, whoever asks."""
    drawn = random.Random(SEED)  # noqa: S311 - repeatable on purpose
    return [drawn.choices(range(tasks), k=tasks) for _ in range(DRAWS)] if tasks else [[]]


def difference(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Interval:
    """The mean difference over the tasks that both have."""
    return by_tasks({task: [(ours[task] - theirs[task], 1.0)] for task in ours if task in theirs})


def mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _ratio(above: Iterable[float], below: Iterable[float]) -> float:
    whole = sum(below)
    return sum(above) / whole if whole else 0.0
