"""`remora fork`: run an agent again from a recorded turn, with another model, setting or instruction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from remora import analysis, app
from remora.cli import _render_compare as render
from remora.cli._analyze import (
    MaxTurns,
    NoMemory,
    Policy,
    Server,
    check_model,
    fetch_weights,
    review_options,
    run_flags,
)
from remora.cli._console import (
    HERE,
    SOME_FAILED,
    JsonFlag,
    ProjectDir,
    StateDir,
    errors_as_sentences,
    print_json,
    slow_progress,
    tell,
)
from remora.cli._showing import showing
from remora.config import setting_paths
from remora.errors import ConfigError
from remora.ports import AgentResult
from remora.validation import parse_yaml

forking = typer.Typer(add_completion=False, rich_markup_mode=None)

MAX_FORKS = 100


@dataclass(frozen=True)
class Forked:
    """A fork that has run."""

    result: AgentResult
    comparison: analysis.AgentComparison
    """With the agent that was forked."""


@forking.command()
def fork(
    agent: Annotated[str, typer.Argument(help="Agent, by the start or end of its id")],
    at: Annotated[int, typer.Option("--at", min=0, help="Go on after this turn; 0: before the first one")],
    model: Annotated[list[str] | None, typer.Option(help="Name of a model; can be repeated, for one fork each")] = None,
    server: Server = None,
    policy: Policy = None,
    say: Annotated[str, typer.Option(help="Say this to the agent before it goes on")] = "",
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a setting, such as runner.max_turns, or else knowledge"),
    ] = None,
    times: Annotated[int, typer.Option(min=1, max=MAX_FORKS, help="Fork this often, each with another seed")] = 1,
    no_memory: NoMemory = False,
    max_turns: MaxTurns = None,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Run an agent again from the end of one of its turns, with the packet and the files as they were then.

    Without other flags it goes on with the model and settings of its run. The fork is a new agent in a run of its own;
    your files do not change, and `remora accept` takes its changes only if you name it.

    \b
    Examples:
      remora fork 7GX2KQF --at 3 --model qwen3:4b --model qwen3:8b
      remora fork 7GX2KQF --at 3 --say "Leave the imports as they are"
      remora fork 7GX2KQF --at 0 --times 5 --set server.temperature=0.8
    """
    with errors_as_sentences():
        opened = app.open_project(project, state_dir=state_dir)
        settings, knowledge = read_sets(sets or ())
        given = run_flags(server, policy, None, no_memory, max_turns) | settings
        if given["server.server"] is None:
            recorded = opened.streams.settings_of_agent(agent)
            given = recorded | {name: value for name, value in given.items() if value is not None}
        check_model(given.get("server.server") or opened.server.server, model)
        variants = list(_variants(given, model or (), times, opened.server.seed))
        done: list[Forked] = []
        with slow_progress("forks", quiet=json) as progress:
            for place, flags in enumerate(variants):
                progress(place, len(variants))
                each = app.open_project(project, settings=flags, state_dir=state_dir)
                plan = each.runs.plan_fork(agent, at, say=say, knowledge=knowledge)
                tell(plan.notices)
                fetch_weights(each, quiet=json)
                result = asyncio.run(_run(each, plan))
                comparison = each.streams.compare(agent, result.agent_id)
                done.append(Forked(result, _agents(comparison)))
        with showing(flag=False) as clean:
            shown = clean(done)
            print_json([_as_json(item) for item in shown]) if json else _print(opened, shown)
    failed = [item for item in done if item.result.outcome in ("error", "degraded")]
    raise typer.Exit(SOME_FAILED if failed else 0)


def read_sets(sets: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and knowledge from `KEY=VALUE` pairs. Values are YAML. Raises `ConfigError`."""
    settings: dict[str, Any] = {}
    knowledge: dict[str, Any] = {}
    for pair in sets:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"`--set {pair}` has no value: expected KEY=VALUE, such as runner.max_turns=20")
        value = parse_yaml(text, f"--set {key}")
        (settings if _is_setting(key.strip()) else knowledge)[key.strip()] = value
    return settings, knowledge


def _is_setting(key: str) -> bool:
    """Whether a setting has this name. Raises `ConfigError` for a misspelled one."""
    parts, paths = key.split("."), [path.split(".") for path in setting_paths()]
    if any(len(path) == len(parts) and all(map(_fits, path, parts)) for path in paths):
        return True
    if len(parts) > 1 and any(len(path) > 1 and path[0] == parts[0] for path in paths):
        near = get_close_matches(key, map(".".join, paths), n=1)
        raise ConfigError(f"There is no setting `{key}`", hint=f"Did you mean `{near[0]}`?" if near else None)
    return False


def _fits(name: str, given: str) -> bool:
    return name in ("*", given)


def _variants(given: dict[str, Any], models: Sequence[str], times: int, seed: int) -> Iterator[dict[str, Any]]:
    """The settings of each fork: every model, as often as asked for, each time with another seed."""
    named: list[dict[str, Any]] = [{"server.model": model} for model in models] or [{}]
    if len(named) * times > MAX_FORKS:
        raise ConfigError(f"{len(named) * times} forks are too many: expected at most {MAX_FORKS}")
    first = given.get("server.seed") or seed
    for each in named:
        for number in range(times):
            yield given | each | ({"server.seed": first + number} if times > 1 else {})


async def _run(project: app.Project, plan: app.ForkPlan) -> AgentResult:
    (result,) = [result async for result in project.runs.fork(plan)]
    return result


def _agents(found: analysis.AgentComparison | analysis.RunComparison) -> analysis.AgentComparison:
    if isinstance(found, analysis.RunComparison):
        raise ConfigError("Only an agent can be forked: the id is a run's")
    return found


def _as_json(item: Forked) -> dict[str, Any]:
    found = item.comparison
    return {"result": item.result, "parted": found.parted, "parted_by": found.first, "same_files": found.same_files}


def _print(project: app.Project, done: Sequence[Forked]) -> None:
    if len(done) == 1:
        render.agents(done[0].comparison)
    render.forks([item.comparison for item in done], review_options(project))
