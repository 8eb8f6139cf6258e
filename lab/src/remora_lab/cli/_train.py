"""`remora train`: exports training rows from traces, makes synthetic ones, and starts the trainer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from remora.app import open_project, served_weights
from remora.cli._console import HERE, JsonFlag, ProjectDir, StateDir, err, errors_as_sentences, print_json, say
from remora.context.text import visible
from remora.errors import ConfigError
from remora.inference import EstimatedCounter
from remora_lab.bench.oracle import Oracle
from remora_lab.bench.suite import read_suite, select_tasks
from remora_lab.train import (
    ExportResult,
    RowCounts,
    RowFile,
    TrainingResult,
    TrainingRow,
    export_rows,
    is_hard,
    request_rows,
    run_training,
    spoken_rows,
    suite_rows,
    synthetic_rows,
)

train = typer.Typer(
    help="Train an adapter for the embedded model from your own traces.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

RUNS_A_LINE, ROWS_A_LINE = 25, 2000
"""Runs, and synthetic rows, between two lines of progress."""
Out = Annotated[Path, typer.Option("--out", help="The file to write; packed where its name ends in .gz")]


@train.command()
def export(
    streams: Annotated[
        list[str] | None, typer.Argument(help="Agents or runs, by their ids; all where none is named")
    ] = None,
    out: Out = Path("rows.jsonl.gz"),
    unproven: Annotated[
        bool, typer.Option("--unproven", help="Also agents that nobody and no check confirmed")
    ] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Write training rows from agents that proved right: the prompts as sent, and the calls that were chosen.

    An agent proved right if its own check found nothing left, or if it has no check and you accepted its changes.
    Calls that failed or repeated themselves are left out.

    \b
    Examples:
      remora train export --out rows.jsonl.gz
      remora train export 7GX2KQF --unproven
    """
    with errors_as_sentences():
        done = asyncio.run(
            export_rows(open_project(project, state_dir=state_dir), streams or [], out, unproven=unproven)
        )
        print_json(_exported(done)) if json else say(_summary(done.path, done.counts, done))


@train.command()
def rows(
    synthetic: Annotated[
        int, typer.Option("--synthetic", "--variety", min=0, help="Number of rows of made-up agents")
    ] = 0,
    requests: Annotated[
        int, typer.Option(min=0, help="Number of rows in which a person's sentence chooses the tool, or none fits")
    ] = 0,
    spoken: Annotated[
        int, typer.Option(min=0, help="Number of rows of what people say, with tools that were written by hand")
    ] = 0,
    suite: Annotated[Path | None, typer.Option(help="A folder of tasks: rows of its training half")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Runs of each task, every one a little different")] = 6,
    tasks: Annotated[int | None, typer.Option(min=1, help="At most this many tasks")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same rows")] = 1,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="Use words and kinds of work that are never trained on")
    ] = False,
    hard: Annotated[
        bool,
        typer.Option(
            "--hard", help="Of made-up agents, keep only turns whose first suggestion is wrong, or after a failure"
        ),
    ] = False,
    out: Out = Path("rows.jsonl.gz"),
    chats: Annotated[Path | None, typer.Option(help="Also write the same turns as chat history to this file")] = None,
    json: JsonFlag = False,
) -> None:
    """Write rows of made-up agents, or of a suite of tasks that an oracle solves with the real tools.

    Rows of made-up agents are packets by the real renderer, of tools that do not exist. Beside your own rows they keep
    an adapter from learning your tools by heart and nothing else.

    \b
    Examples:
      remora train rows --synthetic 20000 --out synthetic.jsonl.gz
      remora train rows --synthetic 1000 --unseen --out judge.jsonl.gz
      remora train rows --synthetic 2000 --hard --out hard.jsonl.gz
      remora train rows --requests 5000 --spoken 5000 --out requests.jsonl.gz
      remora train rows --suite benchmarks/tasks --out suite.jsonl.gz --chats chats.jsonl.gz
    """
    with errors_as_sentences():
        if not any((synthetic, requests, spoken, suite)):
            raise ConfigError(
                "No rows were asked for: expected `--synthetic NUMBER`, `--requests NUMBER`, `--spoken NUMBER` "
                "or `--suite FOLDER`"
            )
        with ExitStack() as open_:
            file = open_.enter_context(RowFile(out))
            talk = open_.enter_context(RowFile(chats)) if chats else None
            if suite:
                asyncio.run(_run_suite(suite, tasks, episodes, seed, jobs, file, talk))
            made = synthetic_rows(seed, synthetic, EstimatedCounter(), unseen=unseen)
            _add_synthetic(file, filter(is_hard, made) if hard else made, synthetic)
            _add_synthetic(file, request_rows(seed, requests, EstimatedCounter(), unseen=unseen), requests)
            _add_synthetic(file, spoken_rows(seed, spoken, EstimatedCounter(), unseen=unseen), spoken)
            if talk:
                _add_synthetic(
                    talk, synthetic_rows(seed, synthetic, EstimatedCounter(), unseen=unseen, chats=True), synthetic
                )
        told = [_summary(each.path, each.counts) for each in (file, talk) if each]
        counts = file.counts
        print_json({"path": out, "rows": counts.rows, "repeated": counts.repeated}) if json else say("\n".join(told))


def _add_synthetic(out: RowFile, made: Iterable[TrainingRow], number: int) -> None:
    for done, row in enumerate(made, start=1):
        out.add(row)
        if done % ROWS_A_LINE == 0:
            err.print(Text(visible(f"{out.path}: {done:,} of {number:,} made-up rows")))


async def _run_suite(
    folder: Path, count: int | None, episodes: int, seed: int, jobs: int, out: RowFile, chats: RowFile | None
) -> None:
    found = read_suite(folder)
    todo = select_tasks(found, "train", (), count)
    done = 0
    async for made in suite_rows(found, todo, Oracle, episodes=episodes, seed=seed, jobs=jobs):
        done += 1
        for row in made.packets:
            out.add(row)
        if chats:
            for row in made.chats:
                chats.add(row)
        if done % RUNS_A_LINE == 0:
            err.print(f"{done} of {len(todo) * episodes} runs, {out.counts.rows} rows")


@train.command()
def run(
    rows: Annotated[list[Path], typer.Argument(help="Files of rows")],
    out: Annotated[Path, typer.Option("--out", help="A folder for adapter.gguf and metrics.json")] = Path("adapter"),
    base: Annotated[Path | None, typer.Option(help="The GGUF file to train for; the embedded model's own")] = None,
    start: Annotated[str, typer.Option("--from", help="Start from this adapter: a file, or `bundled`")] = "",
    epochs: Annotated[int, typer.Option(min=1)] = 2,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    rank: Annotated[int, typer.Option(min=1, help="Rank of the adapter's matrices; its size grows with it")] = 16,
    alpha: Annotated[float, typer.Option(min=1, help="The adapter's weight is this number divided by the rank")] = 32.0,
    lr: Annotated[float | None, typer.Option(help="Learning rate; 0.001, or 0.0003 with `--from`")] = None,
    blocks: Annotated[
        int | None, typer.Option(min=1, help="Adapt only so many of the last blocks: faster on a CPU, a smaller file")
    ] = None,
    valid: Annotated[list[Path] | None, typer.Option(help="Evaluation rows, in addition to those held out")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop with a checkpoint after this many minutes")] = None,
    threads: Annotated[int | None, typer.Option(min=1)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint in the folder")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
) -> None:
    """Train an adapter on these rows: on a GPU in minutes, on a CPU overnight.

    With `--from bundled` the adapter begins with what ours has learned: some hundred rows of your own agents are then
    enough, and a CPU needs an hour for them.

    \b
    Examples:
      remora train run rows.jsonl.gz --from bundled --out adapter
      remora train run rows.jsonl.gz synthetic.jsonl.gz --out adapter
      remora train run rows.jsonl.gz --out adapter --minutes 60 --resume
    """
    with errors_as_sentences():
        weights = base or served_weights(open_project(project).config.server)
        options = ["--epochs", str(epochs), "--seed", str(seed), *(["--resume"] if resume else [])]
        options += ["--rank", str(rank), "--alpha", str(alpha)]
        options += ["--lr", str(lr)] if lr else []
        options += ["--blocks", str(blocks)] if blocks else []
        options += ["--valid", *(str(path.absolute()) for path in valid)] if valid else []
        options += ["--minutes", str(minutes)] if minutes else []
        options += ["--threads", str(threads)] if threads else []
        done = run_training(weights, rows, out, options, start=start)
        print_json({"adapter": done.adapter, "metrics": done.metrics, "whole": done.whole}) if json else _trained(done)


def _exported(done: ExportResult) -> dict[str, object]:
    told = {"path": done.path, "rows": done.counts.rows, "repeated": done.counts.repeated, "streams": done.streams}
    return told | {"used": done.used, "unproven": done.unproven, "by_operation": dict(done.counts.by_operation)}


def _summary(path: Path, counts: RowCounts, done: ExportResult | None = None) -> str:
    parts = ", ".join(f"{visible(name)} {count}" for name, count in counts.by_operation.most_common())
    told = f"{visible(str(path))}: {counts.rows} rows ({parts}); {counts.repeated} duplicates left out"
    return f"{told}; {done.used} of {done.streams} agents, {done.unproven} not verified" if done else told


def _trained(done: TrainingResult) -> None:
    say(f"ready: {visible(str(done.adapter))}" if done.whole else "Stopped at the time limit: continue with --resume")
    say(f"Use it with: server.adapter: {visible(str(done.adapter.absolute()))}")
