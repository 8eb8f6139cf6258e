"""Estimates the remaining time from what each row has taken so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from remora_lab.bench.results import Result
from remora_lab.bench.rows import ROWS
from remora_lab.bench.stats import mean
from remora_lab.bench.trial import Trial


class Estimate:
    """Counts what is left, row by row."""

    def __init__(self, todo: Sequence[Trial], jobs: int) -> None:
        self._left = Counter(trial.row.name for trial in todo)
        self._jobs = jobs
        self._took: dict[str, list[float]] = defaultdict(list)

    def note(self, result: Result) -> None:
        """One trial has ended."""
        self._left[result.row] -= 1
        self._took[result.row].append(result.wall_s)

    def seconds(self) -> float | None:
        """Seconds that are left; None while rows are left of which nothing like them has ended."""
        means = {row: self._mean(row) for row, left in self._left.items() if left > 0}
        if any(each is None for each in means.values()):
            return None
        return sum((each or 0.0) * self._left[row] for row, each in means.items()) / self._jobs

    def _mean(self, row: str) -> float | None:
        """Of the row itself, else of rows that are decided alike."""
        if self._took[row]:
            return mean(self._took[row])
        alike = [took for name, each in self._took.items() if _alike(name, row) for took in each]
        return mean(alike) if alike else None


def _alike(one: str, other: str) -> bool:
    return one in ROWS and other in ROWS and ROWS[one].asks_model == ROWS[other].asks_model
