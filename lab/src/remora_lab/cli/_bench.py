"""`remora bench`: how rows do on a suite of tasks, a summary, and what failed agents could not see."""

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
from remora_lab.cli._models import Adapter, Gguf, HistoryAdapter, bar, fetch_weights, models_of

if TYPE_CHECKING:
    from remora_lab.bench.bench import Asked
    from remora_lab.bench.results import Result, Stored
    from remora_lab.bench.suite import Suite
    from remora_lab.bench.summary import Line, Summary
    from remora_lab.bench.trial import Trial

bench = typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)

SUITE = Path("benchmarks/tasks")
ROW_HELP = "A row of the table, such as `adapter`, `ruff-fix` or `ruff-fix-unsafe`; all that are possible by default"
Files = Annotated[list[Path], typer.Argument(help="Result files; several are merged")]


@bench.callback()
def run(
    ctx: typer.Context,
    suite: Annotated[Path, typer.Option(help="A folder with tasks (`*.jsonl`)")] = SUITE,
    half: Annotated[str, typer.Option(help="Which tasks: eval, train or all")] = "eval",
    row: Annotated[list[str] | None, typer.Option(help=ROW_HELP)] = None,
    control: Annotated[list[str] | None, typer.Option(help="A control, or `all`; none by default")] = None,
    operation: Annotated[list[str] | None, typer.Option("--operation", "-o", help="Only tasks of this agent")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="At most this many tasks, spread over the suite")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Twelve tasks, once each: for everyday use")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds for trials that depend on one")] = 3,
    temperature: Annotated[float, typer.Option(min=0, help="Of models; above 0, every seed is its own trial")] = 0.0,
    server: Server = None,
    model: Model = None,
    gguf: Gguf = None,
    adapter: Adapter = None,
    history_adapter: HistoryAdapter = None,
    jobs: Annotated[int, typer.Option(min=1, help="Trials at once, each with its own model")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of each embedded model")] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="The result file; by default one in `.agentfs`")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an existing result file")] = False,
    json: JsonFlag = False,
) -> None:
    """Run agents on tasks that are judged by their files, and compare who decides.

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
    from remora_lab.bench.bench import Asked
    from remora_lab.bench.controls import chosen_controls
    from remora_lab.bench.rows import chosen_rows
    from remora_lab.bench.suite import QUICK, chosen_tasks, read_suite

    with errors_as_sentences():
        models = models_of(server, model, gguf, adapter, history_adapter, threads, temperature)
        found = read_suite(suite)
        count = tasks or (QUICK if quick else None)
        chosen = chosen_tasks(found, _half(half), operation or (), count)
        rows, controls = chosen_rows(row or (), models), chosen_controls(control or ())
        asked = Asked(chosen, rows, controls, 1 if quick else seeds, models)
        stored = _run(found, asked, _results_path(out_file, resume=resume), jobs, quiet=json)
        _print_result(stored, json=json)


def _half(name: str) -> Any:
    if name not in ("eval", "train", "all"):
        raise ConfigError(f"There is no half `{name}`: expected `eval`, `train` or `all`")
    return None if name == "all" else name


def _results_path(path: Path | None, *, resume: bool) -> Path:
    """The file for results. Raises `ConfigError` if it exists and is not to be resumed."""
    if path is None:
        if resume:
            raise ConfigError("`--resume` needs a file to continue", hint="Name it with `--out FILE`")
        from remora.events import new_id

        now = open_project(HERE).clock.now()
        return default_state_dir(project_root(HERE)) / "bench" / f"{new_id(now)}.jsonl"
    if path.exists() and not resume:
        raise ConfigError(f"`{path}` already exists", hint="Continue it with `--resume`, or name another file")
    return path


def _run(found: Suite, asked: Asked, path: Path, jobs: int, *, quiet: bool) -> Stored:
    """Run the remaining trials and return all results in the file."""
    from remora_lab.bench.bench import make_place, run_bench, trials
    from remora_lab.bench.machine import header
    from remora_lab.bench.oracle import Oracle
    from remora_lab.bench.results import ResultFile, read_results

    done = {result.key for result in read_results([path] if path.exists() else []).results}
    todo = trials(asked, done)
    fetch_weights(asked.rows, asked.models, quiet=quiet)
    file = ResultFile(path)
    if todo:
        file.begin(header(shlex.join(["remora", *sys.argv[1:]]), asked.tasks, asked.models.temperature))
    err.print(Text(visible(f"{number(len(todo), 'trial')}, {len(done)} done before; results go to {path}")))
    place = make_place(path, found.agents, Oracle)
    asyncio.run(_show_progress(run_bench(todo, asked.models, place, jobs=jobs, keep=file.add), todo, jobs, quiet=quiet))
    stored = read_results([path])
    tell(_describe_refusals(stored.results))
    return stored


def _describe_refusals(results: Sequence[Result]) -> list[str]:
    """A sentence for each row whose prompts a server refused: those trials count as failed."""
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


def _print_result(stored: Stored, *, json: bool) -> None:
    from remora_lab.bench.summary import summarize

    summary = summarize(stored.results)
    if json:
        output: dict[str, Any] = {"headers": stored.headers, "lines": summary.lines}
        output |= {"against_no_model": summary.comparisons, "own_agents": summary.own and summary.own.lines}
        print_json(output)
        return
    _print_tables(summary)
    if summary.own:
        _print_tables(summary.own, "the suite's own agents")


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
    page: Annotated[
        Path | None, typer.Option(help="The folder of the docs page `tasks.md`, to update its figures")
    ] = None,
    keep: Annotated[Path | None, typer.Option(help="Write all results to this file, small enough to publish")] = None,
    json: JsonFlag = False,
) -> None:
    """Summarize results; update the docs page.

    \b
    Examples:
      remora bench report results.jsonl
      remora bench report a.jsonl b.jsonl --keep benchmarks/results/tasks.jsonl --page docs/benchmarks
    """
    from remora_lab.bench.page import write_page
    from remora_lab.bench.results import kept_lines, read_results

    with errors_as_sentences():
        stored = read_results(files)
        if not stored.results:
            raise ConfigError(f"`{files[0]}` contains no results")
        if keep is not None:
            keep.parent.mkdir(parents=True, exist_ok=True)
            keep.write_bytes(kept_lines(stored))
        made = write_page(stored, page) if page is not None else []
        for path in made:
            err.print(Text(visible(f"wrote {path}")))
        _print_result(stored, json=json)


bench.command()(blind)
