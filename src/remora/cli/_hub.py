"""`remora hub`: the live index of the code."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from remora.app import open_project
from remora.cli import _render_hub as render
from remora.cli._console import (
    HERE,
    SOME_FAILED,
    JsonFlag,
    ProjectDir,
    StateDir,
    err,
    errors_as_sentences,
    print_json,
    say,
)
from remora.context.text import number

hub = typer.Typer(help="The live index of the code.", no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@hub.command()
def index(json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None) -> None:
    """Bring the index up to date with the files, once. Only what changed is read.

    \b
    Examples:
      remora hub index
    """
    with errors_as_sentences():
        app = open_project(project, state_dir=state_dir)
        columns = (TextColumn("files"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=err, transient=True, disable=json or not err.is_terminal) as bar:
            task = bar.add_task("files", total=None)
            done = app.hub.index(lambda now: bar.update(task, completed=now.done, total=now.total))
        print_json(asdict(done)) if json else say(f"{number(done.total, 'file')}, {done.changed} changed")


@hub.command()
def start(json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None) -> None:
    """Start a daemon that keeps the index fresh while you write. It indexes first, and returns when that is done.

    \b
    Examples:
      remora hub start
    """
    with errors_as_sentences():
        found = open_project(project, state_dir=state_dir).hub.start()
        print_json(asdict(found)) if json else say(f"running: process {found.pid}")


@hub.command()
def stop(json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None) -> None:
    """Stop the daemon. The index stays, and runs bring it up to date themselves."""
    with errors_as_sentences():
        pid = open_project(project, state_dir=state_dir).hub.stop()
        told = "no daemon was running" if pid is None else f"stopped: process {pid}"
        print_json({"stopped": pid}) if json else say(told)


@hub.command()
def status(json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None) -> None:
    """Say whether a daemon runs and what the index holds. Exits with 1 where the index cannot be used."""
    with errors_as_sentences():
        found = asyncio.run(open_project(project, state_dir=state_dir).hub.status())
        print_json(asdict(found)) if json else render.status(found)
        if found.index != "ready":
            raise typer.Exit(SOME_FAILED)


@hub.command()
def query(
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node id, such as src/cart.py:Cart.total")],
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show all that is known of a node, proven against its file as it is now.

    \b
    Examples:
      remora hub query src/cart.py:Cart.total
    """
    with errors_as_sentences():
        found = asyncio.run(open_project(project, state_dir=state_dir).hub.query(node))
        print_json(found.plain()) if json else render.node(found)
