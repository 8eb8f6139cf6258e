"""`remora trace diff`: two agents or two runs side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from remora import analysis
from remora.cli import _render_compare as render
from remora.cli._console import HERE, JsonFlag, ProjectDir, StateDir, errors_as_sentences, print_json
from remora.cli._opening import open_to_read

One = Annotated[str, typer.Argument(metavar="A", help="Agent or run, by the start or end of its id")]
Other = Annotated[str, typer.Argument(metavar="B", help="Another one of the same kind")]


def diff(
    one: One,
    other: Other,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Compare two agents or two runs: where they diverged, and what each saw, chose and got.

    \b
    Examples:
      remora trace diff 7GX2KQF K6VR0ZW
      remora trace diff 7GX2KQF K6VR0ZW --json
    """
    with errors_as_sentences():
        streams = open_to_read(project, state_dir).streams
        found = streams.compare(one, other)
        if json:
            print_json(found)
        elif isinstance(found, analysis.RunComparison):
            render.runs(found)
        else:
            render.agents(found)
