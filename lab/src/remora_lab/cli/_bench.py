"""`remora bench`: runs a suite of tasks, prints the table, and writes the documentation page."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from remora.app import default_state_dir, open_project, project_root
from remora.cli._analyze import Model, Server
from remora.cli._console import HERE, JsonFlag, err, errors_as_sentences, out, print_json, tell
from remora.context.text import number, visible
from remora.errors import ConfigError, ServerRefused
from remora_lab.cli._blind import blind
from remora_lab.cli._models import Above, Adapter, Gguf, HistoryAdapter, bar, fetch_weights, models_of
from remora_lab.cli._packages import packages, packages_report
from remora_lab.cli._requests import requests

if TYPE_CHECKING:
    from remora_lab.bench.bench import BenchPlan
    from remora_lab.bench.results import Result, Stored
    from remora_lab.bench.suite import Suite
    from remora_lab.bench.summary import Line, Summary
    from remora_lab.bench.trial import Trial

bench = typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)

SUITE = Path("benchmarks/tasks")
ROW_HELP = "A row of the table, such as `adapter`, `ruff-fix` or `ruff-fix-unsafe`; all that are possible by default"
Files = Annotated[list[Path], typer.Argument(help="Files of results; several are combined")]


@bench.callback()
def run(
    ctx: typer.Context,
    suite: Annotated[Path, typer.Option(help="A folder with tasks (`*.jsonl`)")] = SUITE,
    half: Annotated[str, typer.Option(help="Which tasks: eval, train or all")] = "eval",
    row: Annotated[list[str] | None, typer.Option(help=ROW_HELP)] = None,
    control: Annotated[list[str] | None, typer.Option(help="A control, or `all`; none by default")] = None,
    operation: Annotated[list[str] | None, typer.Option("--operation", "-o", help="Only tasks of this agent")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="At most this many tasks, spread over the suite")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Twelve tasks, once each")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds for what is random")] = 3,
    temperature: Annotated[
        float, typer.Option(min=0, help="Sampling temperature of models; above 0, every seed is a trial")
    ] = 0.0,
    server: Server = None,
    model: Model = None,
    gguf: Gguf = None,
    adapter: Adapter = None,
    history_adapter: HistoryAdapter = None,
    above: Above = None,
    jobs: Annotated[int, typer.Option(min=1, help="Trials at once, each with a model of its own")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of each embedded model")] = None,
    out_file: Annotated[Path | None, typer.Option("--out", help="The file of results; one in `.agentfs`")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an existing file of results")] = False,
    json: JsonFlag = False,
) -> None:
    """Run agents on benchmark tasks, and compare models and policies by the files they write.

    \b
    Examples:
      remora bench --quick
      remora bench --row first-candidate --row oracle --control all --out results.jsonl
      remora bench -o lint --row adapter --row ruff-fix --row ruff-fix-unsafe
      remora bench --server ollama --model qwen3:4b --out qwen.jsonl --jobs 2
      remora bench --out results.jsonl --resume
      remora bench report results.jsonl
      remora bench blind results.jsonl
    """
    if ctx.invoked_subcommand:
        return
    from remora_lab.bench.bench import BenchPlan
    from remora_lab.bench.controls import select_controls
    from remora_lab.bench.rows import select_rows
    from remora_lab.bench.suite import QUICK, read_suite, select_tasks

    with errors_as_sentences():
        models = models_of(server, model, gguf, adapter, history_adapter, threads, temperature, above or ())
        found = read_suite(suite)
        count = tasks or (QUICK if quick else None)
        chosen = select_tasks(found, _check_half(half), operation or (), count)
        rows, controls = select_rows(row or (), models), select_controls(control or ())
        plan = BenchPlan(chosen, rows, controls, 1 if quick else seeds, models)
        stored = _run(found, plan, _results_path(out_file, resume=resume), jobs, quiet=json)
        _tell(stored, json=json)


def _check_half(name: str) -> Any:
    if name not in ("eval", "train", "all"):
        raise ConfigError(f"There is no half `{name}`: expected `eval`, `train` or `all`")
    return None if name == "all" else name


def _results_path(path: Path | None, *, resume: bool) -> Path:
    """Where results go. Raises `ConfigError` for a file that is there and not to be gone on with."""
    if path is None:
        if resume:
            raise ConfigError("`--resume` needs a file to go on with", hint="Name it with `--out FILE`")
        from remora.events import new_id

        now = open_project(HERE).clock.now()
        return default_state_dir(project_root(HERE)) / "bench" / f"{new_id(now)}.jsonl"
    if path.exists() and not resume:
        raise ConfigError(f"`{path}` is there already", hint="Go on with it by `--resume`, or name another file")
    return path


def _run(found: Suite, plan: BenchPlan, path: Path, jobs: int, *, quiet: bool) -> Stored:
    """All results that the file holds then."""
    from remora_lab.bench.bench import make_environment, run_bench, trials
    from remora_lab.bench.header import make_header
    from remora_lab.bench.oracle import Oracle
    from remora_lab.bench.results import ResultFile, read_results

    done = {result.key for result in read_results([path] if path.exists() else []).results}
    todo = trials(plan, done)
    fetch_weights(plan.rows, plan.models, quiet=quiet)
    file = ResultFile(path)
    if todo:
        file.begin(make_header(shlex.join(["remora", *sys.argv[1:]]), plan.tasks, plan.models.temperature))
    err.print(Text(visible(f"{number(len(todo), 'trial')}, {len(done)} done before; results go to {path}")))
    place = make_environment(path, found.agents, Oracle)
    asyncio.run(_show_progress(run_bench(todo, plan.models, place, jobs=jobs, keep=file.add), todo, jobs, quiet=quiet))
    stored = read_results([path])
    tell(_refusals(stored.results))
    return stored


def _refusals(results: Sequence[Result]) -> list[str]:
    """A sentence for each row of which a server refused prompts: those trials count as failed."""
    rows = Counter(one.row for one in results if one.reason == ServerRefused.code)
    return [f"row `{row}`: the server refused a prompt in {number(count, 'trial')}" for row, count in rows.items()]


async def _show_progress(results: AsyncIterator[Result], todo: list[Trial], jobs: int, *, quiet: bool) -> None:
    from remora_lab.bench.estimate import Estimate

    estimate, solved = Estimate(todo, jobs), 0
    with bar("trials", len(todo), quiet=quiet) as shown:
        async for result in results:
            estimate.note(result)
            solved += result.solved
            shown.step(f"{result.row} {result.control}: {solved} solved, {_left(estimate.seconds())}")


def _left(seconds: float | None) -> str:
    if seconds is None:
        return "time left not known yet"
    return f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.0f} min left"


def _tell(stored: Stored, *, json: bool) -> None:
    from remora_lab.bench.summary import summarize

    summary = summarize(stored.results)
    if json:
        told: dict[str, Any] = {"headers": stored.headers, "lines": summary.lines}
        told |= {"against_no_model": summary.comparisons, "own_agents": summary.own and summary.own.lines}
        print_json(told)
        return
    _print_tables(summary)
    if summary.own:
        _print_tables(summary.own, "agents of the suite's own")


def _print_tables(summary: Summary, about: str = "") -> None:
    for control in summary.controls:
        _print_table(
            summary.of(control), ", ".join(filter(None, [about, "" if control == "none" else f"control: {control}"]))
        )


def _print_table(lines: Sequence[Line], title: str) -> None:
    from remora_lab.bench.page import percent

    table = Table(title=title or None, title_justify="left", box=None)
    for heading in ("row", "tasks", "seeds", "solved", "right tool", "turns", "prompt tokens", "largest", "wall s"):
        table.add_column(heading, justify="left" if heading == "row" else "right")
    for line in lines:
        right = percent(line.right_tool) if line.right_tool else "–"
        figures = [f"{line.turns.value:.1f}", f"{line.prompt_tokens.value:,.0f}", f"{line.largest_prompt:,}"]
        cells = [line.title, str(line.tasks), str(line.seeds), percent(line.success), right, *figures]
        table.add_row(*(Text(visible(cell)) for cell in [*cells, f"{line.wall_s.value:.2f}"]))
    out.print(table)


@bench.command()
def report(
    files: Files,
    page: Annotated[Path | None, typer.Option(help="The folder of the docs page `tasks.md`, to put figures in")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Also write all results to this file, without what only the streams need")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Summarize results, and update the docs page with them.

    \b
    Examples:
      remora bench report results.jsonl
      remora bench report a.jsonl b.jsonl --keep benchmarks/results/tasks.jsonl --page docs/benchmarks
    """
    from remora_lab.bench.page import write_page
    from remora_lab.bench.results import lines_to_publish, read_results

    with errors_as_sentences():
        stored = read_results(files)
        if not stored.results:
            raise ConfigError(f"`{files[0]}` holds no results")
        if keep is not None:
            keep.parent.mkdir(parents=True, exist_ok=True)
            keep.write_bytes(lines_to_publish(stored))
        made = write_page(stored, page) if page is not None else []
        for path in made:
            err.print(Text(visible(f"wrote {path}")))
        _tell(stored, json=json)


bench.command()(blind)
bench.command()(packages)
bench.command()(requests)
bench.command(name="packages-report")(packages_report)
