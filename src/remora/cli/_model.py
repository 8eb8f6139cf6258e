"""`remora model`: the weights of embedded models."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from remora.app import list_models, pull_model
from remora.cli._console import JsonFlag, err, errors_as_sentences, out, print_json, say, slow_progress
from remora.context.text import visible

DEFAULT = "smollm2-135m"
model = typer.Typer(
    help="Manage the weights of embedded models.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


Name = Annotated[str, typer.Argument(help="A model of the catalogue (`remora model ls`)")]
Origin = Annotated[
    str, typer.Option("--from", metavar="FILE|URL", help="Get it from here only, such as a file that you have")
]


@model.command()
def pull(name: Name = DEFAULT, origin: Origin = "", json: JsonFlag = False) -> None:
    """Download a model's weights into your cache, unless they are there already.

    An interrupted download continues where it stopped. Every file is checked by its SHA-256, wherever it comes from.

    \b
    Examples:
      remora model pull
      remora model pull qwen2.5-coder-1.5b
      remora model pull qwen2.5-coder-1.5b --from ~/Downloads/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
      remora model pull functiongemma-270m --from ~/Downloads/functiongemma-270m-it-Q8_0.gguf
    """
    with errors_as_sentences():
        with fetching(name, quiet=json) as progress:
            path = pull_model(name, origin=origin, progress=progress)
        print_json({"name": name, "path": path}) if json else say(f"ready: {path}")


@model.command()
def ls(json: JsonFlag = False) -> None:
    """List the models of the catalogue, and whether their weights are downloaded and intact.

    \b
    Examples:
      remora model ls
      remora model ls --json
    """
    with errors_as_sentences():
        with slow_progress("Checking digests", quiet=json) as progress:
            found = list_models(progress)
        if json:
            print_json([asdict(row) for row in found])
            return
        table = Table("model", "state", "size", "license", "path", box=None)
        for row in found:
            size = f"{row.size / 1e6:,.0f} MB" if row.size else ""
            name = row.name if row.role == "weights" else "  converted"
            path = row.path if row.state != "missing" else ""
            table.add_row(*(Text(visible(str(cell))) for cell in (name, row.state, size, row.license, path)))
        out.print(table)


class fetching:  # noqa: N801 - used as a block, like a function
    """Progress bar for a download: `with fetching(name) as progress: pull_model(name, progress=progress)`."""

    def __init__(self, name: str, *, quiet: bool = False) -> None:
        numbers = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        columns = (TextColumn("{task.description}"), BarColumn(), *numbers)
        self._name = name
        self._bar = Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal)
        self._task = self._bar.add_task("weights", total=None)
        self._announced = quiet

    def __enter__(self) -> fetching:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Update the bar."""
        if not self._announced:
            err.print(Text(visible(f"Getting the weights of {self._name} once ({total / 1e6:,.0f} MB)")))
            self._announced = True
        self._bar.update(self._task, completed=done, total=total)
