"""`remora bench requests`: how often a model does what a sentence asks for, and declines what no tool can do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remora.cli._analyze import Model, Server
from remora.cli._console import JsonFlag, errors_as_sentences, print_json, say
from remora.errors import ConfigError
from remora_lab.cli._models import Adapter, Gguf, bar, fetch_weights, models_of

if TYPE_CHECKING:
    from remora.app import Deciders
    from remora_lab.bench.requests import Asked, Request, RequestFigures
    from remora_lab.bench.rows import Models, TableRow


def requests(
    rows: Annotated[int, typer.Option(min=1, help="Number of made-up requests, in words never trained on")] = 300,
    from_file: Annotated[
        Path | None,
        typer.Option("--from", help="Requests that people wrote: JSON lines with `request`, `tools` and `call`"),
    ] = None,
    spoken: Annotated[
        bool, typer.Option("--spoken", help="In place of made-up requests, sentences and tools written by hand")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The same seed asks the same")] = 1,
    server: Server = None,
    model: Model = None,
    gguf: Gguf = None,
    adapter: Adapter = None,
    base: Annotated[bool, typer.Option("--base", help="Ask our own model without its adapter")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Requests at once, each to a model of its own")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the embedded model")] = None,
    json: JsonFlag = False,
) -> None:
    """Test whether a model chooses the tool that a person's sentence asks for, or declines if none fits.

    \b
    Examples:
      remora bench requests --rows 100
      remora bench requests --spoken --rows 300
      remora bench requests --model qwen2.5-coder-1.5b --json
      remora bench requests --from my_requests.jsonl --server ollama --model qwen3:4b
    """
    from remora_lab.bench.own_requests import OwnRequests
    from remora_lab.bench.requests import figures
    from remora_lab.bench.rows import ROWS

    with errors_as_sentences():
        if spoken and from_file:
            raise ConfigError("`--spoken` and `--from` name two sources of requests: expected one of them")
        own = OwnRequests(from_file) if from_file else None
        rows = len(own) if own else rows
        models = models_of(server, model, gguf, adapter, None, threads)
        row = ROWS["server" if server else "adapter" if models.adapters and not base else "embedded"]
        fetch_weights([row], models, quiet=json)
        written = own.prompts if own else lambda _: _made(seed, rows, spoken=spoken)
        found = figures(asyncio.run(_ask(row, models, rows, seed, jobs, written, quiet=json)))
        print_json(_plain(found)) if json else say(_told(models.name(row), rows, found))


def _plain(found: RequestFigures) -> dict[str, Any]:
    """The figures, each with the ends of its interval by name."""
    from remora_lab.bench.stats import Interval

    return {name: value._asdict() if isinstance(value, Interval) else value for name, value in vars(found).items()}


async def _ask(
    row: TableRow,
    models: Models,
    count: int,
    seed: int,
    jobs: int,
    prompts: Callable[[Deciders], Iterator[Request]],
    *,
    quiet: bool,
) -> list[Asked]:
    from remora.subagent import SubagentDefinition, ToolEntry
    from remora_lab.bench.bench import open_deciders
    from remora_lab.bench.requests import ask_requests

    nobody = SubagentDefinition(name="request", goal="", system_prompt="", tools=(ToolEntry(name="any"),))
    async with AsyncExitStack() as open_:
        opened = [await open_.enter_async_context(open_deciders(row, seed, models, jobs)) for _ in range(jobs)]
        ready = [each for each in opened if each is not None]
        policies = [each.policy(nobody) for each in ready]
        with bar("requests", count, quiet=quiet) as shown:
            return await ask_requests(prompts(ready[0]), policies, lambda one: shown.step(one.tool))


def _made(seed: int, count: int, *, spoken: bool) -> Iterator[Request]:
    from remora.inference import EstimatedCounter
    from remora_lab.bench.requests import request_of
    from remora_lab.train import request_rows, spoken_rows

    rows = spoken_rows if spoken else request_rows
    return map(request_of, rows(seed, count, EstimatedCounter(), unseen=True))


def _told(model: str, rows: int, found: RequestFigures) -> str:
    from remora_lab.bench.page import percent

    return "\n".join(
        [
            f"{model}: {rows} requests",
            f"  a tool fits: right tool {percent(found.right_tool)}, exact {percent(found.exact)}",
            f"    declined all the same {percent(found.over_declined)}, first listed {percent(found.first_listed)}",
            f"  no tool fits: declined {percent(found.declined)}",
            f"    where `no_tool_fits` was offered {percent(found.declined_by_tool)}",
            f"  {found.seconds:.2f} s a decision",
        ]
    )
