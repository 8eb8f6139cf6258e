"""`remora bench`: how rows do on a suite of tasks, what that comes to, and what the failed ones could not see."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from remora.app import default_state_dir, ensure_weights, needs_weights, open_app, project_root
from remora.cli._analyze import Model, Server
from remora.cli._console import HERE, JsonFlag, err, errors_as_sentences, out, print_json, say
from remora.cli._model import fetching
from remora.context.text import visible
from remora.errors import ConfigError

if TYPE_CHECKING:
    from remora.bench.bench import Asked
    from remora.bench.blind import Again
    from remora.bench.results import Result, Stored
    from remora.bench.rows import Models
    from remora.bench.suite import Suite
    from remora.bench.trial import Trial

bench = typer.Typer(add_completion=False, rich_markup_mode=None, invoke_without_command=True)

SUITE = Path("benchmarks/tasks")
Files = Annotated[list[Path], typer.Argument(help="Files of results; several are put together")]
Adapter = Annotated[
    str | None, typer.Option(help="For the `adapter` row: a LoRA adapter (GGUF), or `bundled`", metavar="FILE")
]
HistoryAdapter = Annotated[str | None, typer.Option(help="The adapter of the rows on chat history", metavar="FILE")]


@bench.callback()
def run(
    ctx: typer.Context,
    suite: Annotated[Path, typer.Option(help="A folder with tasks (`*.jsonl`)")] = SUITE,
    half: Annotated[str, typer.Option(help="Which tasks: eval, train or all")] = "eval",
    row: Annotated[list[str] | None, typer.Option(help="A row of the table; all that are possible by default")] = None,
    control: Annotated[list[str] | None, typer.Option(help="A control, or `all`; none by default")] = None,
    operation: Annotated[list[str] | None, typer.Option("--operation", "-o", help="Only tasks of this agent")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="No more tasks than these, spread over the suite")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Twelve tasks, once each: for every day")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="How often what is drawn is tried")] = 3,
    temperature: Annotated[float, typer.Option(min=0, help="Of models; above 0, every seed is a try of its own")] = 0.0,
    server: Server = None,
    model: Model = None,
    gguf: Annotated[Path | None, typer.Option(help="Weights for the embedded rows in place of ours")] = None,
    adapter: Adapter = None,
    history_adapter: HistoryAdapter = None,
    jobs: Annotated[int, typer.Option(min=1, help="Trials at once, each with a model of its own")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of each embedded model")] = None,
    out_file: Annotated[Path | None, typer.Option("--out", help="The file of results; one in `.agentfs`")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a file of results that is there")] = False,
    json: JsonFlag = False,
) -> None:
    """Try agents on tasks whose outcome the files decide, and compare who decides.

    \b
    Examples:
      remora bench --quick
      remora bench --row first-candidate --row oracle --control all --out results.jsonl
      remora bench --server ollama --model qwen3:4b --out qwen.jsonl --jobs 2
      remora bench --out results.jsonl --resume
      remora bench report results.jsonl
      remora bench blind results.jsonl
    """
    if ctx.invoked_subcommand:
        return
    from remora.bench.bench import Asked
    from remora.bench.controls import chosen_controls
    from remora.bench.rows import chosen_rows
    from remora.bench.suite import QUICK, chosen_tasks, read_suite

    with errors_as_sentences():
        models = _models(server, model, gguf, adapter, history_adapter, threads, temperature)
        found = read_suite(suite)
        count = tasks or (QUICK if quick else None)
        chosen = chosen_tasks(found, _half(half), operation or (), count)
        rows, controls = chosen_rows(row or (), models), chosen_controls(control or ())
        asked = Asked(chosen, rows, controls, 1 if quick else seeds, models)
        stored = _run(found, asked, _place_of_results(out_file, resume=resume), jobs, quiet=json)
        _tell(stored, json=json)


def _half(name: str) -> Any:
    if name not in ("eval", "train", "all"):
        raise ConfigError(f"There is no half `{name}`: expected `eval`, `train` or `all`")
    return None if name == "all" else name


def _models(
    server: str | None,
    model: str | None,
    gguf: Path | None,
    adapter: str | None,
    history_adapter: str | None,
    threads: int | None,
    temperature: float,
) -> Models:
    """Who is asked: the user's own settings say where keys and weights are, flags say the rest."""
    from remora.bench.rows import Models

    config = open_app(HERE, flags={"server.server": server, "server.model": model}).config.server
    own = config.model_copy(update={"server": "embedded", "model": "", "gguf": gguf or config.gguf, "threads": threads})
    named = {"packet": adapter, "history": history_adapter}
    adapters: dict[str, Path | str] = {
        name: word if word == "bundled" else Path(word) for name, word in named.items() if word
    }
    # Only a server that was named here has rows: the user's everyday one is not asked hundreds of times by itself.
    asked = config if server is not None else own
    return Models(asked, own, adapters, temperature)


def _place_of_results(path: Path | None, *, resume: bool) -> Path:
    """Where results go. Raises `ConfigError` for a file that is there and not to be gone on with."""
    if path is None:
        if resume:
            raise ConfigError("`--resume` needs a file to go on with", hint="Name it with `--out FILE`")
        from remora.events import new_id

        now = open_app(HERE).clock.now()
        return default_state_dir(project_root(HERE)) / "bench" / f"{new_id(now)}.jsonl"
    if path.exists() and not resume:
        raise ConfigError(f"`{path}` is there already", hint="Go on with it by `--resume`, or name another file")
    return path


def _run(found: Suite, asked: Asked, path: Path, jobs: int, *, quiet: bool) -> Stored:
    """All results that the file holds then."""
    from remora.bench.bench import make_place, run_bench, trials
    from remora.bench.machine import header
    from remora.bench.oracle import Oracle
    from remora.bench.results import ResultFile, read_results

    done = {result.key for result in read_results([path] if path.exists() else []).results}
    todo = trials(asked, done)
    if any(row.decides == "embedded" for row in asked.rows) and needs_weights(asked.models.embedded):
        with fetching(quiet=quiet) as progress:
            ensure_weights(asked.models.embedded, progress)
    file = ResultFile(path)
    if todo:
        file.begin(header(shlex.join(["remora", *sys.argv[1:]]), asked.tasks, asked.models.temperature))
    err.print(Text(visible(f"{len(todo)} trials, {len(done)} done before; results go to {path}")))
    place = make_place(path, found.agents, Oracle)
    asyncio.run(_watched(run_bench(todo, asked.models, place, jobs=jobs, keep=file.add), todo, jobs, quiet=quiet))
    return read_results([path])


async def _watched(results: AsyncIterator[Result], todo: list[Trial], jobs: int, *, quiet: bool) -> None:
    from remora.bench.estimate import Estimate

    estimate, solved = Estimate(todo, jobs), 0
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=err, transient=True, disable=quiet or not err.is_terminal
    ) as bar:
        place = bar.add_task("trials", total=len(todo))
        async for result in results:
            estimate.note(result)
            solved += result.solved
            told = f"{result.row} {result.control}: {solved} solved, {_left(estimate.seconds())}"
            bar.update(place, advance=1, description=told)


def _left(seconds: float | None) -> str:
    if seconds is None:
        return "time left not known yet"
    return f"about {seconds:.0f} s left" if seconds < 120 else f"about {seconds / 60:.0f} min left"


def _tell(stored: Stored, *, json: bool) -> None:
    from remora.bench.page import percent
    from remora.bench.summary import summarized

    summary = summarized(stored.results)
    if json:
        print_json({"headers": stored.headers, "lines": summary.lines, "against_no_model": summary.comparisons})
        return
    for control in summary.controls:
        table = Table(title=None if control == "none" else f"control: {control}", title_justify="left", box=None)
        for heading in ("row", "tasks", "seeds", "solved", "right tool", "turns", "prompt tokens", "largest", "wall s"):
            table.add_column(heading, justify="left" if heading == "row" else "right")
        for line in summary.of(control):
            right = percent(line.right_tool) if line.right_tool else "–"
            figures = [f"{line.turns.value:.1f}", f"{line.prompt_tokens.value:,.0f}", f"{line.largest_prompt:,}"]
            cells = [line.title, str(line.tasks), str(line.seeds), percent(line.success), right, *figures]
            table.add_row(*(Text(visible(cell)) for cell in [*cells, f"{line.wall_s.value:.2f}"]))
        out.print(table)


@bench.command()
def report(
    files: Files,
    page: Annotated[Path | None, typer.Option(help="The folder of the docs page `tasks.md`, to put figures in")] = None,
    keep: Annotated[Path | None, typer.Option(help="Put all results into this file, small enough to store")] = None,
    json: JsonFlag = False,
) -> None:
    """Show what results come to; put them into the docs page.

    \b
    Examples:
      remora bench report results.jsonl
      remora bench report a.jsonl b.jsonl --keep benchmarks/results/tasks.jsonl --page docs/benchmarks
    """
    from remora.bench.page import write_page
    from remora.bench.results import kept_lines, read_results

    with errors_as_sentences():
        stored = read_results(files)
        if not stored.results:
            raise ConfigError(f"`{files[0]}` holds no results")
        if keep is not None:
            keep.parent.mkdir(parents=True, exist_ok=True)
            keep.write_bytes(kept_lines(stored))
        made = write_page(stored, page) if page is not None else []
        for path in made:
            err.print(Text(visible(f"wrote {path}")))
        _tell(stored, json=json)


@bench.command()
def blind(
    file: Annotated[Path, typer.Argument(help="A file of results, with its streams beside it")],
    row: Annotated[list[str] | None, typer.Option(help="Only failures of this row")] = None,
    server: Server = None,
    model: Model = None,
    gguf: Annotated[Path | None, typer.Option(help="Weights for the embedded rows in place of ours")] = None,
    adapter: Adapter = None,
    ask: Annotated[bool, typer.Option(help="Ask the model again; without it, only show")] = True,
    limit: Annotated[int | None, typer.Option(min=1, help="No more failures than these")] = None,
    page: Annotated[Path | None, typer.Option(help="The report; beside the results by default")] = None,
    json: JsonFlag = False,
) -> None:
    """Would the raw output have helped? Shows packet and raw at the turn that decided, and asks the model again.

    \b
    Examples:
      remora bench blind results.jsonl
      remora bench blind results.jsonl --row embedded --no-ask
    """
    from remora.bench.blind import failures, measured
    from remora.bench.blind_page import blind_page, told
    from remora.bench.results import read_results

    with errors_as_sentences():
        models = _models(server, model, gguf, adapter, None, None, 0.0)
        results = [one for one in read_results([file]).results if not row or one.row in row]
        failed = failures(results)[:limit]
        again = asyncio.run(_again(failed, file.parent, models if ask else None))
        measure = measured(results, again)
        place = page or file.with_suffix(".blind.html")
        place.write_text(blind_page(measure, again, f"Blindness check of {file.name}"), encoding="utf-8")
        print_json(measure) if json else say(told(measure))
        err.print(Text(visible(f"wrote {place}")))


async def _again(failed: list[Result], folder: Path, models: Models | None) -> list[Again]:
    from remora.bench.blind import look_again
    from remora.bench.rows import ROWS

    row = ROWS["server"] if models and models.has_server else None
    found = models and replace(models, temperature=0.0)
    return [one async for one in look_again(failed, folder, found, row=row)]
