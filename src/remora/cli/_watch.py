"""`remora watch`: run agents on code when you save it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from remora.app import Project, open_project
from remora.cli import _render as render
from remora.cli._analyze import (
    MaxTurns,
    Model,
    NoMemory,
    Operations,
    Policy,
    Server,
    check_model,
    operation_names,
    review_options,
    run_flags,
)
from remora.cli._console import JsonFlag, StateDir, err, errors_as_sentences, parse_path, print_json_line, say, tell
from remora.context.patterns import redact_values
from remora.context.text import visible
from remora.events import short_id
from remora.orchestrator import Plan

watching = typer.Typer(add_completion=False, rich_markup_mode=None)


@watching.command()
def watch(
    paths: Annotated[list[Path], typer.Argument(parser=parse_path, help="Files and folders of one project")],
    operations: Operations = None,
    server: Server = None,
    model: Model = None,
    policy: Policy = None,
    no_memory: NoMemory = False,
    max_turns: MaxTurns = None,
    json: JsonFlag = False,
    state_dir: StateDir = None,
) -> None:
    """Run agents on the functions and files below PATHS each time you save a change. Press Ctrl-C to stop.

    With `--json`, print one line for each agent. Your files do not change until you accept.

    \b
    Examples:
      remora watch src/ -o lint
      remora watch src/ -o lint,docstring --server ollama --model qwen3:4b
    """
    with errors_as_sentences():
        flags = run_flags(server, policy, model, no_memory, max_turns)
        project = open_project(paths[0], state_dir=state_dir, settings=flags)
        check_model(project.server.server, model)
        asyncio.run(_watch(project, paths, operation_names(operations), json=json))


async def _watch(project: Project, paths: list[Path], operations: list[str], *, json: bool) -> None:
    first = True
    async for plan in project.runs.watch(paths, operations):
        tell(f"skipped: {problem}" for problem in plan.problems)
        if first:
            where = " ".join(map(str, paths))
            err.print(Text(visible(f"Watching {where} for {', '.join(plan.operations)}. Ctrl-C stops.")))
        elif plan.jobs:
            await _run(project, plan, json=json)
        first = False


async def _run(project: Project, plan: Plan, *, json: bool) -> None:
    changed = 0
    async for result in project.runs.run(plan):
        changed += bool(result.files)
        if json:
            print_json_line({"run_id": plan.run_id, **vars(redact_values(result))})
        else:
            say(render.agent_line(redact_values(result)))
    if changed and not json:
        options = f" {review_options(project)}".rstrip()
        run = short_id(plan.run_id)
        say(f"Review: remora diff {run}{options}    Accept: remora accept {run}{options}")
