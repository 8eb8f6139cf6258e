"""`remora trace show`: an agent's run, one of its turns, or the agents of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from remora import analysis, app
from remora.cli import _render as render
from remora.cli._console import HERE, JsonFlag, ProjectDir, StateDir, errors_as_sentences, print_json, tell
from remora.cli._filters import StreamId
from remora.cli._indexing import indexing_progress
from remora.cli._opening import open_to_read
from remora.cli._showing import ShowSecrets, showing
from remora.errors import ConfigError
from remora.trace import Filter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remora.cli._showing import Clean
    from remora.events import Event


def show(
    stream: StreamId,
    turn: Annotated[
        int | None, typer.Option("--turn", "-t", min=0, help="Both tracks of this turn: the prompt, and what happened")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="With --turn: everything, however long")] = False,
    events: Annotated[bool, typer.Option("--events", help="Print every event in one line")] = False,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show an agent's run on both tracks, turn by turn, or one of its turns; the agents of a run; or every event.

    For a damaged stream, print everything before the damage, then the damage, and exit with code 1.

    \b
    Examples:
      remora trace show 7GX2KQF
      remora trace show 7GX2KQF --turn 3
      remora trace show 7GX2KQF --turn 3 --full
      remora trace show 7GX2KQF --events
    """
    with errors_as_sentences(), showing(show_secrets) as clean:
        opened = open_to_read(project, state_dir)
        if turn is not None:
            _show_turn(opened, stream, turn, clean, full=full, events=events, json=json)
            return
        if full:
            raise ConfigError("`--full` shows one turn in full: expected `--turn` with it")
        library = opened.library
        found = library.intact(stream)
        if json:
            print_json([render.event_values(clean(event)) for event in found])
        elif events:
            for event in found:
                render.event_line(clean(event))
        elif library.is_run(stream):
            _show_run(opened, stream, found, clean)
        elif (summary := clean(analysis.summarize(found))).events:
            tell(summary.notices)
            render.both_tracks(summary, {})
        if found.damage:
            raise found.damage


def _show_run(opened: app.Project, stream: str, found: Iterable[Event], clean: Clean) -> None:
    """Show the agents of a run."""
    from remora.cli._render_run import run_agents

    run_id = opened.library.find(stream).stem
    with indexing_progress(opened):
        rows = opened.library.agents(Filter(run=run_id))
    run_agents(run_id, map(clean, found), clean(sorted(rows, key=lambda row: (row.started, row.stream_id))))


def _show_turn(
    opened: app.Project, stream: str, turn: int, clean: Clean, *, full: bool, events: bool, json: bool
) -> None:
    """Show one turn of an agent."""
    from remora.cli._render_turn import find_turn, one_turn  # loads events and prompts, which lists do not need

    if opened.library.is_run(stream):
        raise ConfigError("A run's own stream has no turns: expected an agent", hint="`remora trace ls` lists them")
    viewing = app.Viewing(opened)
    outline = viewing.open(stream)
    index = find_turn(outline, turn)
    if not (json or events):
        one_turn(viewing, outline, index, clean, full=full)
    elif json:
        print_json([render.event_values(clean(event)) for event in viewing.turn(outline, index).events])
    else:
        for event in viewing.turn(outline, index).events:
            render.event_line(clean(event))
    if outline.damage:
        raise outline.damage
