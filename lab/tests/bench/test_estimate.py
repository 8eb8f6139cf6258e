"""How long the rest will take."""

from __future__ import annotations

from bench.test_results import result
from bench.tiny import LINT
from remora_lab.bench.bench import BenchPlan, trials
from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.estimate import Estimate
from remora_lab.bench.rows import ROWS, Models


def test_rows_that_ask_a_model_are_not_judged_by_those_that_ask_none() -> None:
    rows = [ROWS["first-candidate"], ROWS["oracle"], ROWS["embedded"], ROWS["embedded-cut"]]
    tasks = [LINT.model_copy(update={"id": f"t{number}"}) for number in range(10)]
    estimate = Estimate(trials(BenchPlan(tasks, rows, [CONTROLS["none"]], 1, Models())), jobs=2)
    estimate.note(result(row="first-candidate", wall_s=2.0))
    assert estimate.seconds() is None  # nothing is known of models yet
    estimate.note(result(row="embedded", wall_s=20.0))
    # 9 and 10 trials like the first, 9 and 10 like the second, two at once.
    assert estimate.seconds() == (19 * 2.0 + 19 * 20.0) / 2
