"""`remora view`: a local page that shows both tracks, live and back in time."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from remora import app
from remora.cli._console import (
    HERE,
    JsonFlag,
    ProjectDir,
    StateDir,
    err,
    errors_as_sentences,
    print_json,
    print_json_line,
    say,
    tell,
)
from remora.cli._indexing import indexing_progress
from remora.cli._opening import open_to_read
from remora.errors import ConfigError

view = typer.Typer(add_completion=False, rich_markup_mode=None)

Wanted = Annotated[
    str | None, typer.Argument(metavar="[RUN|AGENT]", help="Open the page of this one; default: the list of all")
]


@view.command("view")
def show(
    wanted: Wanted = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the agent's page to this file instead, to share it")
    ] = None,
    max_bytes: Annotated[
        int, typer.Option(min=200_000, help="With --export: largest size of the file; what does not fit is left out")
    ] = 20_000_000,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one")] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser")] = True,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show both tracks of every agent on a local page, live and back in time.

    The server listens on 127.0.0.1 only. Anyone on this machine with the printed URL can read the pages; they change
    nothing. `--export` writes one agent's page to a file that needs no server and no network. Text that looks like a
    secret is redacted.

    \b
    Examples:
      remora view
      remora view 7GX2KQF
      remora view 7GX2KQF --export run.html
    """
    with errors_as_sentences():
        from remora.view import check_extra

        check_extra()  # before anything that needs the extra is imported
        from remora.view import Server, export_agent

        opened = open_to_read(project, state_dir, lists=True)
        path = _path(opened, wanted)
        if export is not None:
            done = export_agent(opened, _agent(wanted), export, max_bytes=max_bytes)
            tell(done.left_out)
            print_json(done) if json else say(f"{done.path}: {done.turns} turns, {done.size:,} bytes")
            return
        with indexing_progress(opened, quiet=json):
            opened.library.newest_agents(limit=1)
        server = Server(opened, port=port)
        address = server.url(path)
        print_json_line({"url": address}) if json else say(address)
        err.print("Open this address in a browser; Ctrl-C ends the page.")
        if browser:
            webbrowser.open(address)
        server.run()


def _path(opened: app.Project, wanted: str | None) -> str:
    """The page of what was named. Raises `TraceNotFound` if there is none."""
    if wanted is None:
        return "/"
    found = opened.library.find(wanted)
    return f"/?run={found.stem}" if found.parent.name == "runs" else f"/a/{found.stem}"


def _agent(wanted: str | None) -> str:
    if wanted is None:
        raise ConfigError("`--export` needs an agent", hint="`remora trace ls` lists them")
    return wanted
