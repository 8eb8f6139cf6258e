"""Runs the trials of a plan that have no result yet, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from remora.app import Deciders, deciders, weights_counter
from remora.config import ServerConfig
from remora.errors import ConfigError
from remora.ports import TokenCounter
from remora_lab.bench.controls import Control
from remora_lab.bench.results import Key, Result
from remora_lab.bench.rows import Models, TableRow
from remora_lab.bench.shadow import TaskOracle
from remora_lab.bench.tasks import Task
from remora_lab.bench.trial import BenchEnvironment, Trial, load_agents, run_trial
from remora_lab.machine import cores


@dataclass(frozen=True)
class BenchPlan:
    """What a bench is to try."""

    tasks: Sequence[Task]
    rows: Sequence[TableRow]
    controls: Sequence[Control]
    seeds: int = 3
    models: Models = field(default_factory=Models)


def trials(plan: BenchPlan, done: Collection[Key] = ()) -> list[Trial]:
    """What is left to try. What does not depend on a seed is tried once."""
    found = [
        Trial(task, row, control, seed, plan.models.name(row))
        for row in plan.rows
        for seed in range(plan.seeds)
        for control in plan.controls
        for task in plan.tasks
        if _is_sensible(plan, row, control, seed, task)
    ]
    return [trial for trial in found if trial.key not in done]


def _is_sensible(plan: BenchPlan, row: TableRow, control: Control, seed: int, task: Task) -> bool:
    if row.operations and task.operation not in row.operations:
        return False
    if row.decides == "ruff":
        return seed == 0 and control.name == "none"
    return seed == 0 or control.draws or plan.models.draws(row)


async def run_bench(
    todo: Sequence[Trial], models: Models, place: BenchEnvironment, *, jobs: int = 1, keep: Callable[[Result], None]
) -> AsyncIterator[Result]:
    """The result of every trial, in the order in which they end; `keep` has had it by then."""
    load_agents((trial.task.operation for trial in todo), place.agents)
    for (row, seed), group in groupby(todo, key=lambda trial: (trial.row, trial.seed)):
        async for result in _group(row, seed, list(group), models, place, jobs):
            keep(result)
            yield result


async def _group(
    row: TableRow, seed: int, todo: list[Trial], models: Models, place: BenchEnvironment, jobs: int
) -> AsyncIterator[Result]:
    """Trials of one row and seed: each worker asks a model of its own, and takes the next trial when it is free."""
    left = iter(todo)
    results: asyncio.Queue[Result | None] = asyncio.Queue()

    async def work() -> None:
        async with open_deciders(row, seed, models, jobs) as found, _open_above(row, models) as above:
            for trial in left:
                results.put_nowait(await run_trial(trial, place, found, above))

    async def all_workers() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(jobs, len(todo))):
                    group.create_task(work())
        finally:
            results.put_nowait(None)

    workers = asyncio.create_task(all_workers())
    try:
        while (result := await results.get()) is not None:
            yield result
        await _first_error(workers)
    finally:
        workers.cancel()
        await asyncio.gather(workers, return_exceptions=True)


async def _first_error(workers: asyncio.Task[None]) -> None:
    """Raises what ended the workers, by itself rather than in a group."""
    try:
        await workers
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


@asynccontextmanager
async def open_deciders(row: TableRow, seed: int, models: Models, jobs: int = 1) -> AsyncIterator[Deciders | None]:
    """Who decides in a row, ready to be asked. None for a row without an agent."""
    async with AsyncExitStack() as open_:
        if row.decides == "ruff":
            yield None
        elif row.asks_model:
            threads = models.embedded.threads or (max(1, cores() // jobs) if jobs > 1 else None)
            asked = await open_.enter_async_context(deciders(models.config(row, seed, threads)))
            yield _with_adapter(row, asked)
        else:
            # An oracle is no setting: what is opened for it is a policy that is never asked.
            name = "first-candidate" if row.decides == "oracle" else row.decides
            found = await open_.enter_async_context(deciders(ServerConfig(server=name, seed=seed)))
            counter = _counter(models.embedded.gguf, models.embedded.model)
            yield replace(found, counter=counter) if counter else found


@asynccontextmanager
async def _open_above(row: TableRow, models: Models) -> AsyncIterator[tuple[Deciders, ...]]:
    """The models above the first of a ladder."""
    async with AsyncExitStack() as open_:
        yield tuple([await open_.enter_async_context(deciders(each)) for each in models.rungs(row)])


def _with_adapter(row: TableRow, found: Deciders) -> Deciders:
    """`found`. Raises `ConfigError` where the base model would be asked in place of a row's adapter."""
    if row.adapter and "adapter" not in found.record:
        raise ConfigError(
            f"Row `{row.name}` needs an adapter: the bundled one is not for these weights",
            hint=f"Name one that was trained on them with `{row.adapter_option} FILE`",
        )
    return found


_counters: dict[tuple[Path | None, str], TokenCounter] = {}
"""Tokenizers of weights. Missing weights are looked for again: they may have been downloaded since."""


def _counter(gguf: Path | None, model: str) -> TokenCounter | None:
    """The embedded model's own, also for rows without a model, so that their prompts can be compared."""
    known = _counters.get((gguf, model)) or weights_counter(ServerConfig(gguf=gguf, model=model))
    return _counters.setdefault((gguf, model), known) if known else None


def make_environment(results: Path, agents: Path | None, oracle: Callable[[Task], TaskOracle]) -> BenchEnvironment:
    """Where the trials of a result file leave their streams: in a folder beside it."""
    from remora.sandbox import LocalSpawner

    return BenchEnvironment(results.parent / f"{results.stem}.streams", oracle, LocalSpawner(), agents)
