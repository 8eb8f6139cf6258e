"""`remora hub`: the index of the project's code."""

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

hub = typer.Typer(
    help="Manage the index of the code.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


@hub.command()
def index(json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None) -> None:
    """Update the index once. Only changed files are read.

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
    """Start a daemon that updates the index when you save a file. Returns after the first full update.

    \b
    Examples:
      remora hub start
    """
    with errors_as_sentences():
        found = open_project(project, state_dir=state_dir).hub.start()
        print_json(asdict(found)) if json else say(f"running: process {found.pid}")


@hub.command()
def stop(json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None) -> None:
    """Stop the daemon. The index stays, and runs update it themselves."""
    with errors_as_sentences():
        pid = open_project(project, state_dir=state_dir).hub.stop()
        message = "no daemon was running" if pid is None else f"stopped: process {pid}"
        print_json({"stopped": pid}) if json else say(message)


@hub.command()
def status(json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None) -> None:
    """Show whether a daemon is running and what the index contains. Exit code 1 if the index cannot be used."""
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
    """Show everything known about a node, verified against the current file.

    \b
    Examples:
      remora hub query src/cart.py:Cart.total
    """
    with errors_as_sentences():
        found = asyncio.run(open_project(project, state_dir=state_dir).hub.query(node))
        print_json(found.plain()) if json else render.node(found)
