"""Summarizes results by row, control and operation, with confidence intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.results import Result, RungShare
from remora_lab.bench.rows import DEFAULT_MODEL, ROWS
from remora_lab.bench.stats import Interval, by_tasks, difference, mean, wilson

NO_MODEL = ("first-candidate", "random")


@dataclass(frozen=True)
class Line:
    """One row's figures, over all its tasks and seeds."""

    row: str
    model: str
    control: str
    operation: str
    """Empty for all of them."""
    tasks: int
    seeds: int
    success: Interval
    right_tool: Interval | None
    """None where no agent decided."""
    turns: Interval
    prompt_tokens: Interval
    largest_prompt: int
    wall_s: Interval
    exact: bool
    rungs: Mapping[str, RungShare] = field(default_factory=dict)
    """By model, for a ladder: who decided how often."""

    @property
    def title(self) -> str:
        return row_title(self.row, self.model)


@dataclass(frozen=True)
class Comparison:
    """A row beside the best row without a model, task by task."""

    title: str
    against: str
    points: Interval
    """Share of tasks solved more, or less."""


@dataclass(frozen=True)
class Summary:
    """The whole table."""

    lines: tuple[Line, ...]
    comparisons: tuple[Comparison, ...]
    own: Summary | None = None
    """The same for agents that came with their suite, where the table is of bundled ones; never mixed with these."""

    def of(self, control: str = "none", operation: str = "") -> list[Line]:
        """The lines under one control, for one operation or for all."""
        return [line for line in self.lines if (line.control, line.operation) == (control, operation)]

    @property
    def operations(self) -> list[str]:
        return sorted({line.operation for line in self.lines if line.operation})

    @property
    def controls(self) -> list[str]:
        found = {line.control for line in self.lines}
        return [name for name in CONTROLS if name in found]


def summarize(results: Sequence[Result]) -> Summary:
    """The table of these results."""
    own = [result for result in results if result.own_agent]
    if not 0 < len(own) < len(results):
        return _summarized(results)
    return replace(_summarized([result for result in results if not result.own_agent]), own=_summarized(own))


def _summarized(results: Sequence[Result]) -> Summary:
    groups: dict[tuple[str, str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        for operation in ("", result.operation):
            groups[result.row, result.model, result.control, operation].append(result)
    lines = sorted((_line(*key, group) for key, group in groups.items()), key=_order)
    return Summary(tuple(lines), tuple(_comparisons(results)))


def _order(line: Line) -> tuple[int, int, str, str, str]:
    rows, controls = list(ROWS), list(CONTROLS)
    row = rows.index(line.row) if line.row in rows else len(rows)
    control = controls.index(line.control) if line.control in controls else len(controls)
    return control, row, line.row, line.model, line.operation


def _line(row: str, model: str, control: str, operation: str, results: Sequence[Result]) -> Line:
    tasks = _by_task(results)
    decided = sum(result.asked for result in results)
    return Line(
        row,
        model,
        control,
        operation,
        tasks=len(tasks),
        seeds=len({result.seed for result in results}),
        success=wilson(mean(list(solved_by_task(results).values())), len(tasks)),
        right_tool=_ratio(tasks, lambda one: (one.right_tools, one.asked)) if decided else None,
        turns=_ratio(tasks, lambda one: (one.turns, 1)),
        prompt_tokens=_ratio(tasks, lambda one: (one.prompt_tokens, 1)),
        largest_prompt=max(result.largest_prompt for result in results),
        wall_s=_ratio(tasks, lambda one: (one.wall_s, 1)),
        exact=all(result.exact for result in results),
        rungs=_rungs(results),
    )


def row_title(row: str, model: str) -> str:
    """What a row is called in tables, with the name of its model unless it is ours."""
    known = ROWS.get(row)
    if known is None:
        return row
    base = model.partition(" + ")[0]
    title = known.title.format(model=model)
    return (
        title
        if base in ("", DEFAULT_MODEL)
        else title.replace("embedded base model", base).replace("embedded model", base)
    )


def _rungs(results: Sequence[Result]) -> dict[str, RungShare]:
    total: dict[str, RungShare] = {}
    for name, one in ((name, one) for result in results for name, one in result.rungs.items()):
        before = total.get(name, RungShare())
        total[name] = RungShare(
            decisions=before.decisions + one.decisions,
            prompt_tokens=before.prompt_tokens + one.prompt_tokens,
            seconds=before.seconds + one.seconds,
        )
    return total


def _by_task(results: Sequence[Result]) -> dict[str, list[Result]]:
    tasks: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        tasks[result.task].append(result)
    return dict(sorted(tasks.items()))


def solved_by_task(results: Sequence[Result]) -> dict[str, float]:
    """The share of seeds with which each task was solved."""
    return {task: mean([float(one.solved) for one in tries]) for task, tries in _by_task(results).items()}


def _ratio(tasks: dict[str, list[Result]], pair: Callable[[Result], tuple[float, float]]) -> Interval:
    return by_tasks({task: [pair(one) for one in tries] for task, tries in tasks.items()})


def _comparisons(results: Sequence[Result]) -> list[Comparison]:
    """Every row that asks a model, beside the best row without one, as shipped and on the same tasks."""
    shares: dict[tuple[str, str], dict[str, float]] = {}
    for row, model in sorted({(one.row, one.model) for one in results if one.control == "none"}):
        own = [one for one in results if (one.row, one.model, one.control) == (row, model, "none")]
        shares[row, model] = solved_by_task(own)
    without = {key: found for key, found in shares.items() if key[0] in NO_MODEL}
    if not without:
        return []
    best = max(without, key=lambda key: mean(list(without[key].values())))
    asking = [key for key in shares if key[0] in ROWS and ROWS[key[0]].asks_model]
    asking.sort(key=lambda key: list(ROWS).index(key[0]))
    return [
        Comparison(row_title(row, model), ROWS[best[0]].title, difference(shares[row, model], shares[best]))
        for row, model in asking
    ]
