"""Options and progress bars that `remora bench` and `remora bench blind` share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from remora.app import catalogue, ensure_weights, needs_weights, open_project
from remora.cli._console import HERE, err
from remora.cli._model import fetching
from remora.context.text import one_line

if TYPE_CHECKING:
    from remora.config import ServerConfig
    from remora_lab.bench.rows import Models, TableRow

Gguf = Annotated[Path | None, typer.Option(help="Weights for the embedded rows in place of ours")]
Adapter = Annotated[
    str | None,
    typer.Option(
        help="For the `adapter` row: a LoRA adapter (GGUF), `requests` or `bundled`, the default without `--gguf`",
        metavar="FILE",
    ),
]
Above = Annotated[
    list[str] | None, typer.Option(help="For the `ladder` row: a larger model of the catalogue, above our own")
]
HistoryAdapter = Annotated[str | None, typer.Option(help="The adapter of the rows on chat history", metavar="FILE")]


def models_of(
    server: str | None,
    model: str | None,
    gguf: Path | None,
    adapter: str | None,
    history_adapter: str | None = None,
    threads: int | None = None,
    temperature: float = 0.0,
    above: Sequence[str] = (),
) -> Models:
    """Who is asked: the user's own settings say where keys and weights are, flags say the rest."""
    from remora_lab.bench.rows import Models

    config = open_project(HERE, settings={"server.server": server, "server.model": model}).config.server
    embedded = {"server": "embedded", "model": model or "" if server is None else "", "threads": threads}
    own = config.model_copy(update={**embedded, "gguf": gguf or config.gguf})
    named = {"packet": adapter or ("bundled" if _has_adapter(own) else None), "history": history_adapter}
    adapters: dict[str, Path | str] = {
        name: word if word in ("bundled", "requests") else Path(word) for name, word in named.items() if word
    }
    # Only a server that was named here has rows: the user's everyday one is not asked hundreds of times by itself.
    asked = config if server is not None else own
    return Models(asked, own, adapters, temperature, tuple(above))


def _has_adapter(own: ServerConfig) -> bool:
    """Whether an adapter for the model comes with the package. It is for its own weights alone."""
    from remora.inference import DEFAULT_MODEL

    entry = None if own.gguf else catalogue().get(own.model or DEFAULT_MODEL)
    return entry is not None and entry.adapter == "bundled"


def fetch_weights(rows: Iterable[TableRow], models: Models, *, quiet: bool) -> None:
    """The weights are there, if one of the rows asks the embedded model."""
    if any(row.decides == "embedded" for row in rows) and needs_weights(models.embedded):
        with fetching("the embedded model", quiet=quiet) as progress:
            ensure_weights(models.embedded, progress)


@dataclass(frozen=True)
class Bar:
    """How far it is, for somebody who watches."""

    progress: Progress
    place: TaskID

    def step(self, told: str) -> None:
        """One more is done."""
        self.progress.update(self.place, advance=1, description=one_line(told))


@contextmanager
def bar(what: str, total: int, *, quiet: bool) -> Iterator[Bar]:
    """A bar on a terminal; nothing elsewhere."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    shown = Progress(*columns, TimeElapsedColumn(), console=err, transient=True, disable=quiet or not err.is_terminal)
    with shown as progress:
        yield Bar(progress, progress.add_task(what, total=total))
