"""`remora trace`: reading the Long Track."""

from __future__ import annotations

from typing import Annotated

import typer

from remora.app import open_app
from remora.cli import _render as render
from remora.cli._console import HERE, SOME_FAILED, JsonFlag, Project, StateDir, errors_as_sentences, print_json

trace = typer.Typer(help="Read the Long Track.", no_args_is_help=True, rich_markup_mode=None)

StreamId = Annotated[str, typer.Argument(help="Agent or run, by the beginning or end of its id")]


@trace.command()
def ls(json: JsonFlag = False, project: Project = HERE, state_dir: StateDir = None) -> None:
    """List every agent's stream, oldest first."""
    with errors_as_sentences():
        rows = open_app(project, state_dir=state_dir).streams()
        print_json(rows) if json else render.streams(rows)


@trace.command()
def show(
    stream: StreamId,
    events: Annotated[bool, typer.Option("--events", help="Every event, one line each")] = False,
    json: JsonFlag = False,
    project: Project = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show an agent's run on both tracks, turn by turn, or every event of a stream.

    \b
    Examples:
      remora trace show 7GX2KQF
      remora trace show 7GX2KQF --events
    """
    with errors_as_sentences():
        app = open_app(project, state_dir=state_dir)
        if json:
            print_json([event.model_dump(exclude_defaults=True) for event in app.events(stream)])
        elif events or app.is_run(stream):
            render.event_lines(app.events(stream))
        else:
            render.both_tracks(app.stream(stream), {})


@trace.command()
def verify(
    stream: Annotated[str | None, typer.Argument(help="Agent or run; all of them if left out")] = None,
    json: JsonFlag = False,
    project: Project = HERE,
    state_dir: StateDir = None,
) -> None:
    """Prove from the bytes that streams are whole. Exit code 1 if one is damaged.

    A stream without its last event is called unsealed, never intact.
    """
    with errors_as_sentences():
        found = open_app(project, state_dir=state_dir).verify(stream)
        print_json(found) if json else render.reports(found)
    raise typer.Exit(SOME_FAILED if any(report.status == "damaged" for report in found) else 0)
