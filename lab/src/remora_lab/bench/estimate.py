"""Estimates the remaining time from the trials so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from remora_lab.bench.results import Result
from remora_lab.bench.rows import ROWS
from remora_lab.bench.stats import mean
from remora_lab.bench.trial import Trial


class Estimate:
    """Counts the remaining trials by row."""

    def __init__(self, todo: Sequence[Trial], jobs: int) -> None:
        self._left = Counter(trial.row.name for trial in todo)
        self._jobs = jobs
        self._took: dict[str, list[float]] = defaultdict(list)

    def note(self, result: Result) -> None:
        """Count one finished trial."""
        self._left[result.row] -= 1
        self._took[result.row].append(result.wall_s)

    def seconds(self) -> float | None:
        """Remaining seconds; None while a remaining row has no finished trial like it."""
        means = {row: self._mean(row) for row, left in self._left.items() if left > 0}
        if any(each is None for each in means.values()):
            return None
        return sum((each or 0.0) * self._left[row] for row, each in means.items()) / self._jobs

    def _mean(self, row: str) -> float | None:
        """The mean of the row itself, else of rows with the same kind of decider."""
        if self._took[row]:
            return mean(self._took[row])
        alike = [took for name, each in self._took.items() if _is_similar(name, row) for took in each]
        return mean(alike) if alike else None


def _is_similar(one: str, other: str) -> bool:
    return one in ROWS and other in ROWS and ROWS[one].asks_model == ROWS[other].asks_model
