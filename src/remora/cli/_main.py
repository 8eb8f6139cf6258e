"""The commands at the top."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from remora._version import __version__
from remora.app import POLICIES, App, PolicyName, default_state_dir, open_app, project_root
from remora.cli import _render as render
from remora.cli._console import (
    ALL_FAILED,
    HERE,
    SOME_FAILED,
    JsonFlag,
    Project,
    StateDir,
    err,
    errors_as_sentences,
    print_json,
    say,
)
from remora.cli._doctor import diagnose
from remora.cli._trace import trace
from remora.errors import ConfigError
from remora.events import short_id
from remora.orchestrator import Plan
from remora.ports import AgentResult

app = typer.Typer(
    name="remora",
    help="Small local models as tool-calling agents over your code: bounded context for them, a full audit for you.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(trace, name="trace")

AgentId = Annotated[str | None, typer.Argument(help="Agent, by the beginning or end of its id; all of the latest run")]


def run() -> None:
    """Run the command that the arguments name. A polite kill ends it like Ctrl-C: everything open is sealed."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    app()


def _version(wanted: bool) -> None:
    if wanted:
        say(f"remora {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it and exit")
    ] = False,
) -> None:
    """Small local models as tool-calling agents over your code: bounded context for them, a full audit for you."""


@app.command()
def analyze(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders of one project")],
    operations: Annotated[str, typer.Option("--operations", "-o", help="Agents to run, comma-separated")] = "lint",
    policy: Annotated[str, typer.Option(help="Who decides: scripted, first-candidate or random")] = "scripted",
    json: JsonFlag = False,
    state_dir: StateDir = None,
) -> None:
    """Run an agent on every function and file below PATHS. Your files stay as they are until you accept.

    \b
    Examples:
      remora analyze src/ -o lint
      remora analyze src/cart.py -o lint --policy first-candidate --json
    """
    with errors_as_sentences():
        project = open_app(paths[0], state_dir=state_dir)
        plan = project.plan(paths, _names(operations), _policy(policy))
        if not json:
            render.heading(plan, shlex.join(["remora", *sys.argv[1:]]))
        results = asyncio.run(_run(project, plan, quiet=json))
        if json:
            print_json({"run_id": plan.run_id, "agents": results})
        else:
            asyncio.run(_tell(project, results))
    raise typer.Exit(_exit_code(results))


@app.command()
def diff(agent: AgentId = None, json: JsonFlag = False, project: Project = HERE, state_dir: StateDir = None) -> None:
    """Show what agents would change and nobody has accepted yet.

    \b
    Examples:
      remora diff
      remora diff 7GX2KQF
    """
    with errors_as_sentences():
        found = asyncio.run(open_app(project, state_dir=state_dir).diff(agent))
        if json:
            print_json(
                [
                    {"agent_id": item.summary.agent_id, "node_id": item.summary.node_id, "diff": item.text}
                    for item in found
                ]
            )
        else:
            render.diffs(found)


@app.command()
def accept(agent: AgentId = None, json: JsonFlag = False, project: Project = HERE, state_dir: StateDir = None) -> None:
    """Write agents' changes into your files. What you changed meanwhile is merged, or refused as a conflict.

    \b
    Examples:
      remora accept
      remora accept 7GX2KQF
    """
    with errors_as_sentences():
        done = asyncio.run(open_app(project, state_dir=state_dir).accept(agent))
        print_json(done) if json else render.accepted(done)
    raise typer.Exit(SOME_FAILED if any(item.conflict for item in done) else 0)


@app.command()
def doctor(json: JsonFlag = False) -> None:
    """Say what this machine has, and what anything missing would be needed for."""
    found = diagnose()
    print_json(found) if json else render.findings(found)


async def _run(project: App, plan: Plan, *, quiet: bool) -> list[AgentResult]:
    results = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as progress:
        bar = progress.add_task("agents", total=len(plan.jobs))
        async for result in project.run(plan):
            results.append(result)
            progress.update(bar, advance=1, description=short_id(result.agent_id))
    order = {job.agent_id: index for index, job in enumerate(plan.jobs)}
    return sorted(results, key=lambda result: order[result.agent_id])


async def _tell(project: App, results: Sequence[AgentResult]) -> None:
    """The run as a newcomer should see it: one agent on both tracks, the rest in a line each, then what is next."""
    if not results:
        say("No code found there that this operation works on")
        return
    # The one with the most to see; an agent that failed before its start has no stream.
    shown = max(results, key=lambda result: (result.last_seq >= 0, len(result.files), result.turns))
    if shown.last_seq >= 0:
        render.both_tracks(project.stream(shown.agent_id), await project.chat_history(shown.agent_id))
    for result in results:
        say(render.agent_line(result))
    render.verdicts(results)
    if shown.files:
        render.diffs(await project.diff(shown.agent_id), limit=16)
        say("")
    render.next_steps(shown, _options(project))


def _options(project: App) -> str:
    """What commands need beside their name, here, to mean this project and its state."""
    words = [] if project_root(HERE) == project.root else ["-C", os.path.relpath(project.root)]
    if project.state_dir != default_state_dir(project.root):
        words += ["--state-dir", os.path.relpath(project.state_dir)]
    return shlex.join(words)


def _names(operations: str) -> list[str]:
    names = [name.strip() for name in operations.split(",") if name.strip()]
    if not names:
        raise ConfigError("No operation was named", hint="Name one with `-o lint`")
    return list(dict.fromkeys(names))


def _policy(name: str) -> PolicyName:
    for known in POLICIES:
        if name == known:
            return known
    raise ConfigError(f"There is no policy `{name}`: expected one of {', '.join(f'`{known}`' for known in POLICIES)}")


def _exit_code(results: Sequence[AgentResult]) -> int:
    failed = [result for result in results if result.outcome in ("error", "degraded") or result.verdict == "failed"]
    if not failed:
        return 0
    return ALL_FAILED if len(failed) == len(results) else SOME_FAILED
