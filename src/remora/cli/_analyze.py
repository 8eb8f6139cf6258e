"""`remora analyze` and `remora resume`: run agents and report the results."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from remora.analysis import sum_rungs
from remora.app import (
    LADDER_START,
    NO_MODEL,
    STORE_SETTING,
    Named,
    Project,
    default_state_dir,
    ensure_weights,
    missing_weights,
    needs_weights,
    open_project,
    project_root,
    sandbox_name,
)
from remora.cli import _render as render
from remora.cli._console import (
    ALL_FAILED,
    HERE,
    SOME_FAILED,
    JsonFlag,
    ProjectDir,
    StateDir,
    errors_as_sentences,
    parse_path,
    print_json,
    say,
    tell,
)
from remora.cli._live import LiveRun
from remora.cli._model import fetching
from remora.cli._render_review import UNSAFE, diffs
from remora.cli._showing import Clean, showing
from remora.errors import ConfigError
from remora.orchestrator import LAST, Plan
from remora.ports import AgentResult
from remora.settings import without_passwords

run = typer.Typer(add_completion=False, rich_markup_mode=None)

Operations = Annotated[
    list[str] | None,
    typer.Option("--operations", "-o", help="Agents to run, comma-separated or repeated; default: lint"),
]
Server = Annotated[
    str | None,
    typer.Option(help="Model server: embedded, ollama, vllm, llamacpp, lmstudio or a URL; or a policy without a model"),
]
Model = Annotated[str | None, typer.Option(help="Name of the model on that server, such as qwen3:4b")]
Policy = Annotated[
    str | None, typer.Option(help="Decide without a model: scripted, first-candidate or random", metavar="NAME")
]
Escalate = Annotated[
    str | None,
    typer.Option(
        metavar="MODELS",
        help="Models to move up to when stuck, comma-separated: smollm2-135m, ollama#qwen3:4b or URL#MODEL",
    ),
]
NoMemory = Annotated[bool, typer.Option("--no-memory", help="Use plain chat history instead of the packet, to compare")]
MaxTurns = Annotated[int | None, typer.Option(help="Maximum number of turns for each agent")]
EngineName = Annotated[
    str | None, typer.Option("--engine", help="Where agents run: local or ray", metavar="NAME", show_default=False)
]
Address = Annotated[
    str | None, typer.Option(help="The Ray cluster, such as `auto` or HOST:6379; default: one on this machine")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only failed agents")]


@run.command()
def analyze(
    paths: Annotated[
        list[Path], typer.Argument(parser=parse_path, help="Files, folders and functions (FILE:NAME) of one project")
    ],
    operations: Operations = None,
    server: Server = None,
    model: Model = None,
    policy: Policy = None,
    escalate: Escalate = None,
    answer: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Run one agent again, with this answer of a larger model"),
    ] = None,
    changed: Annotated[
        str | None,
        typer.Option(metavar="[REF]", help="Only code that differs from a commit or branch; default: the last commit"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the agents that would run, and run none")] = False,
    no_memory: NoMemory = False,
    max_turns: MaxTurns = None,
    engine: EngineName = None,
    address: Address = None,
    quiet: Quiet = False,
    json: JsonFlag = False,
    state_dir: StateDir = None,
) -> None:
    """Run an agent on every function and file below PATHS. Your files do not change until you accept.

    \b
    Examples:
      remora analyze src/ -o lint
      remora analyze src/ -o lint,docstring --server ollama --model qwen3:4b
      remora analyze src/cart.py:Cart.add -o lint
      remora analyze src/ -o lint --changed
      remora analyze src/cart.py -o lint --policy first-candidate --json
      remora analyze src/ -o lint --escalate ollama#qwen3:4b
      remora analyze src/ -o lint --engine ray --address auto --store postgres://ci@db/traces
    """
    with errors_as_sentences():
        flags = run_flags(server, policy, model, no_memory, max_turns, escalate)
        flags |= engine_flags(engine, address)
        project = open_project(Named.of(paths[0]).path, state_dir=state_dir, settings=flags)
        check_model(project.server.server, model)
        if not dry_run:
            project.changes.settle()
        only = project.runs.changed_nodes(changed) if changed else None
        plan = project.runs.plan(paths, operation_names(operations), only, answer)
        if dry_run:
            print_json({"agents": plan.jobs, "problems": plan.problems}) if json else render.dry_run(plan)
            return
        results = _run_and_print(project, plan, project.runs.run(plan), quiet=quiet, json=json)
    raise typer.Exit(_exit_code(results))


@run.command()
def resume(
    run_id: Annotated[
        str | None, typer.Argument(help="A run, by the start or end of its id; default: the latest")
    ] = None,
    again: Annotated[
        str | None, typer.Option(metavar="AGENT", help="Continue this agent, which ended, as a new one")
    ] = None,
    words: Annotated[str, typer.Option("--say", help="With `--again`: say this to the agent before it goes on")] = "",
    server: Server = None,
    model: Model = None,
    policy: Policy = None,
    escalate: Escalate = None,
    engine: EngineName = None,
    address: Address = None,
    quiet: Quiet = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Continue a run that was interrupted by a crash, a kill or a power loss. It uses the same model and settings.

    With `--again`, continue an agent that ended: a new agent starts with its packet and its files, in a run of its own,
    and may take as many turns again. `remora accept` takes its changes only if you name it.

    \b
    Examples:
      remora resume
      remora resume 7GX2KQF
      remora resume --again 7GX2KQF --say "Now fix the imports too"
    """
    with errors_as_sentences():
        _check_again(run_id, again, words)
        opened = open_project(project, state_dir=state_dir)
        given = run_flags(server, policy, model, no_memory=False, max_turns=None, escalate=escalate)
        if given["server.server"] is None and escalate is None:
            recorded = opened.streams.settings_of_agent(again) if again else opened.runs.settings_of(run_id)
            given = recorded | {name: value for name, value in given.items() if value is not None}
        given |= engine_flags(engine, address)
        opened = open_project(project, state_dir=state_dir, settings=given)
        plan, results = _again(opened, again, words) if again else opened.runs.resume(run_id)
        if plan.is_over:
            print_json({"run_id": plan.run_id, "agents": []}) if json else say("Nothing to resume: the run is complete")
            return
        done = _run_and_print(opened, plan, results, quiet=quiet, json=json)
    raise typer.Exit(_exit_code(done))


def _check_again(run_id: str | None, again: str | None, words: str) -> None:
    if again and run_id:
        raise ConfigError("`--again` continues one agent: expected no run besides it")
    if words and not again:
        raise ConfigError("`--say` speaks to one agent: expected `--again AGENT` with it")


def _again(project: Project, agent: str, words: str) -> tuple[Plan, AsyncIterator[AgentResult]]:
    plan = project.runs.plan_again(agent, say=words)
    tell(plan.notices)
    return plan.plan, project.runs.fork(plan)


def run_flags(
    server: str | None,
    policy: str | None,
    model: str | None,
    no_memory: bool,
    max_turns: int | None,
    escalate: str | None = None,
) -> dict[str, Any]:
    """Translate the flags of a run into settings."""
    if policy is not None and policy not in NO_MODEL:
        known = ", ".join(f"`{name}`" for name in NO_MODEL)
        raise ConfigError(
            f"There is no policy `{policy}`: expected one of {known}",
            hint="To use a model, name a server with `--server`",
        )
    if policy and (server or model):
        raise ConfigError(
            f"`--policy {policy}` decides without a model: `--{'server' if server else 'model'}` names one",
            hint="Leave one of them out",
        )
    return {
        "server.server": policy or server,
        "server.model": model,
        "escalation": _ladder(escalate, names_model=bool(server or policy or model)),
        "runner.memory.enabled": False if no_memory else None,
        "runner.max_turns": max_turns,
    }


def check_model(server: str, model: object) -> None:
    """Raises `ConfigError` if a model is named where a policy without a model decides."""
    if model and server in NO_MODEL:
        raise ConfigError(
            f"`--model` names a model of a server, but `{server}` decides without a model",
            hint="Name the server with `--server`",
        )


def engine_flags(engine: str | None, address: str | None) -> dict[str, Any]:
    """Translate the flags of the engine into settings."""
    if address is not None and engine == "local":
        raise ConfigError("`--address` names a Ray cluster: expected `--engine ray` with it")
    return {"engine.name": engine, "engine.address": "" if engine == "local" else address}


def _ladder(escalate: str | None, *, names_model: bool) -> list[str] | None:
    """The ladder of the flags: None for the one of the settings.

    It starts with the model of the other flags, or of the settings if only one rung is named. A model that is named
    without a ladder is used alone.
    """
    if escalate is None:
        return [] if names_model else None
    rungs = [name.strip() for name in escalate.split(",") if name.strip()]
    return [LADDER_START, *rungs] if names_model or len(rungs) == 1 else rungs


def _run_and_print(
    project: Project, plan: Plan, running: AsyncIterator[AgentResult], *, quiet: bool, json: bool
) -> list[AgentResult]:
    """Run the agents, print progress and results as the flags say, and return the results."""
    fetch_weights(project, quiet=json or quiet)
    tell(missing_weights(project.config))
    if not json and not quiet:
        render.heading(plan, shlex.join(["remora", *map(without_passwords, sys.argv[1:])]), sandbox_name())
    if not quiet:
        render.skipped(plan)
    results = asyncio.run(_run_with_progress(project, plan, running, quiet=json or quiet))
    tell(project.runs.notices)
    with showing(flag=False) as clean:
        _print_run(project, plan, clean(results), clean, quiet=quiet, json=json)
    return results


def _print_run(
    project: Project, plan: Plan, results: Sequence[AgentResult], clean: Clean, *, quiet: bool, json: bool
) -> None:
    """Print the results as the flags say."""
    if json:
        decisions = sum_rungs(row for result in results for row in result.decisions)
        agents = [vars(result) | {"why": result.why} for result in results]
        print_json({"run_id": plan.run_id, "agents": agents, "decisions": decisions})
    elif quiet:
        for result in results:
            if _is_failed(result):
                say(render.agent_line(result))
    else:
        asyncio.run(_print_results(project, results, clean, named=plan.parent is not None))


def fetch_weights(project: Project, *, quiet: bool) -> None:
    """Download the embedded model's weights if this run needs them and they are missing, with a progress bar."""
    if needs_weights(project.server):
        with fetching(project.runs.model_name(), quiet=quiet) as progress:
            ensure_weights(project.server, progress)


async def _run_with_progress(
    project: Project, plan: Plan, running: AsyncIterator[AgentResult], *, quiet: bool
) -> list[AgentResult]:
    results = []
    with LiveRun(plan, project.state_dir, store=project.store, quiet=quiet) as live:
        async for result in running:
            results.append(result)
            live.add(result)
    return plan.in_order(results)


async def _print_results(project: Project, results: Sequence[AgentResult], clean: Clean, *, named: bool) -> None:
    """Print one agent on both tracks, one line for each agent, the verdicts, a diff and the next steps."""
    if not results:
        say("No code found that these operations work on: they need Python files (`.py`) that nothing leaves out")
        return
    example = max(results, key=_worth_showing)
    if example.last_seq >= 0:
        summary = clean(project.streams.show(example.agent_id))
        tell(summary.notices)
        render.both_tracks(summary, *await project.streams.chat_history(example.agent_id))
    render.agent_lines(results)
    render.verdicts(results)
    if example.files:
        diffs(clean(await project.review.diff(example.agent_id)), limit=16)
        say("")
    changed = any(result.files for result in results)
    unfinished = sum(not result.has_ended for result in results)
    key, options = await _known_key(project, example), review_options(project)
    render.next_steps(example, options, key=key, changed=changed, named=named, unfinished=unfinished)


async def _known_key(project: Project, result: AgentResult) -> str:
    """A value that the packet has after the first turn: what the check counts, else another; empty without one."""
    if result.last_seq < 0 or not result.check:
        return ""
    found, _ = await project.streams.explain(str(result.check.get("key")), result.agent_id, 1)
    return found.key if found.known else next(iter(found.keys), "")


def _worth_showing(result: AgentResult) -> tuple[object, ...]:
    """Sort key of the agent to show: the one with the most changes, and the most turns of a model.

    One that failed before its start has no stream, and one of the last pass would be shown without the changes that it
    builds on. Unsafe changes are not what a reader should take for the normal case.
    """
    usual = result.last_seq >= 0, result.stage != LAST, result.verdict != UNSAFE
    return (*usual, len(result.files), result.largest_prompt > 0, result.turns)


def review_options(project: Project) -> str:
    """The options that review commands need in this folder to use the same project and state folder."""
    words = [] if project_root(HERE) == project.root else ["-C", os.path.relpath(project.root)]
    if project.store is not None and project.settings.origin_of(STORE_SETTING) == "flag":
        words += ["--store", str(project.store.address)]
    elif project.state_dir != default_state_dir(project.root):
        words += ["--state-dir", os.path.relpath(project.state_dir)]
    return shlex.join(words)


def operation_names(operations: Sequence[str] | None) -> list[str]:
    """Parse the values of `-o` and drop duplicates. Raises `ConfigError` if they are empty."""
    given = ("lint",) if operations is None else operations
    names = [name.strip() for value in given for name in value.split(",") if name.strip()]
    if not names:
        raise ConfigError("No operation was named", hint="Name one with `-o lint`")
    return list(dict.fromkeys(names))


def _is_failed(result: AgentResult) -> bool:
    return result.outcome in ("error", "degraded") or result.verdict == "failed"


def _exit_code(results: Sequence[AgentResult]) -> int:
    failed = [result for result in results if _is_failed(result)]
    if not failed:
        return 0
    return ALL_FAILED if len(failed) == len(results) else SOME_FAILED
