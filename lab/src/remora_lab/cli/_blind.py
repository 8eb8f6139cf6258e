"""`remora bench blind`: asks the model again at the decisive turn of each failure. Saves each answer at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from remora.cli._analyze import Model, Server
from remora.cli._console import JsonFlag, err, errors_as_sentences, print_json, say, tell
from remora.context.text import number, visible
from remora_lab.cli._models import Adapter, Gguf, bar, fetch_weights, models_of

if TYPE_CHECKING:
    from remora_lab.bench.answers import Answers
    from remora_lab.bench.blind import LostStream, Recheck
    from remora_lab.bench.results import Result
    from remora_lab.bench.rows import Models


def blind(
    file: Annotated[Path, typer.Argument(help="A file of results, with its streams beside it")],
    row: Annotated[list[str] | None, typer.Option(help="Only failures of this row")] = None,
    server: Server = None,
    model: Model = None,
    gguf: Gguf = None,
    adapter: Adapter = None,
    ask: Annotated[bool, typer.Option(help="Ask the model again; without it, only show")] = True,
    limit: Annotated[int | None, typer.Option(min=1, help="No more failures than these")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Ask only what an earlier check did not come to")] = False,
    page: Annotated[Path | None, typer.Option(help="The report; beside the results by default")] = None,
    json: JsonFlag = False,
) -> None:
    """Test whether the raw output would have helped: show packet and raw at the decisive turn, and ask the model again.

    \b
    Examples:
      remora bench blind results.jsonl
      remora bench blind results.jsonl --row embedded --no-ask
      remora bench blind results.jsonl --limit 20
      remora bench blind results.jsonl --resume
    """
    from remora_lab.bench.blind import failures, summarize_blindness
    from remora_lab.bench.blind_page import blind_page, describe_blindness
    from remora_lab.bench.results import read_results

    with errors_as_sentences():
        models = models_of(server, model, gguf, adapter) if ask else None
        results = [one for one in read_results([file]).results if not row or one.row in row]
        failed = failures(results)[:limit]
        place, title = page or file.with_suffix(".blind.html"), f"Blindness check of {file.name}"
        looked: list[Recheck | LostStream] = []
        try:
            _look(failed, file, models, _shown(place, title, looked), resume=resume, quiet=json)
        finally:
            measure = summarize_blindness(results, looked)
            place.write_text(blind_page(measure, looked, title), encoding="utf-8")
            err.print(Text(visible(f"wrote {place}")))
        print_json(measure) if json else say(describe_blindness(measure))


def _shown(place: Path, title: str, looked: list[Recheck | LostStream]) -> Callable[[Recheck | LostStream], None]:
    """What keeps a failure: at the end of the page at once, so that a check that is killed leaves what it saw."""
    from remora_lab.bench.blind_page import page_head, section

    place.write_text(page_head(title, "This check is not at its end."), encoding="utf-8")

    def keep(one: Recheck | LostStream) -> None:
        looked.append(one)
        with place.open("a", encoding="utf-8") as file:
            file.write(section(one))

    return keep


def _look(
    failed: list[Result],
    file: Path,
    models: Models | None,
    keep: Callable[[Recheck | LostStream], None],
    *,
    resume: bool,
    quiet: bool,
) -> None:
    """Every failure has been looked at and kept, in turn."""
    from remora_lab.bench.answers import Answers
    from remora_lab.bench.rows import ROWS

    answers: Answers | None = None
    if models is not None:
        rows = [ROWS[name] for name in dict.fromkeys(one.row for one in failed) if name in ROWS]
        fetch_weights([] if models.has_server else rows, models, quiet=quiet)
        tell(_other_models(failed, models))
        answers = Answers(file.with_suffix(".blind.jsonl"), resume=resume)
        err.print(Text(visible(f"{number(len(failed), 'failure')}, {len(answers)} asked before")))
    asyncio.run(_watched(_looks(failed, file.parent, models, answers), len(failed), keep, quiet=quiet))


def _looks(
    failed: list[Result], folder: Path, models: Models | None, answers: Answers | None
) -> AsyncIterator[Recheck | LostStream]:
    from remora_lab.bench.blind import recheck_failures
    from remora_lab.bench.rows import ROWS

    row = ROWS["server"] if models and models.has_server else None
    return recheck_failures(failed, folder, models, row=row, answers=answers)


async def _watched(
    looks: AsyncIterator[Recheck | LostStream], total: int, keep: Callable[[Recheck | LostStream], None], *, quiet: bool
) -> None:
    from remora_lab.bench.blind import Recheck

    rescued = 0
    with bar("failures", total, quiet=quiet) as shown:
        async for one in looks:
            keep(one)
            rescued += isinstance(one, Recheck) and one.rescued
            shown.step(f"failures: {rescued} rescued by raw output")


def _other_models(failed: list[Result], models: Models) -> list[str]:
    """A sentence for each row whose failures another model is asked about."""
    from remora_lab.bench.rows import ROWS

    if models.has_server:
        return []
    pairs = dict.fromkeys((one.model, models.name(ROWS[one.row])) for one in failed if one.row in ROWS)
    return [f"failures of `{was}` are asked of `{now}`" for was, now in pairs if was and was != now]
