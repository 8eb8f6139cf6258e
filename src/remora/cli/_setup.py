"""Commands for the project's settings and agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from remora.app import STATE_DIR, measure_models, open_project
from remora.cli._console import HERE, JsonFlag, ProjectDir, StateDir, errors_as_sentences, out, print_json, say, tell
from remora.cli._doctor import diagnose
from remora.cli._render import findings
from remora.context.text import visible
from remora.settings import Setting

setup = typer.Typer(add_completion=False, rich_markup_mode=None)
agents = typer.Typer(
    help="List the available agents, or create one.", invoke_without_command=True, rich_markup_mode=None
)
setup.add_typer(agents, name="agents")


@setup.command()
def config(json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None) -> None:
    """Show every setting, its value and where the value comes from.

    \b
    Examples:
      remora config
      REMORA_RUNNER__MAX_TURNS=5 remora config
    """
    with errors_as_sentences():
        listed = open_project(project, state_dir=state_dir).settings.listed()
        print_json(listed) if json else _settings(listed)


@setup.command()
def init(project: ProjectDir = HERE) -> None:
    """Write a `remora.yaml` with every setting as a comment. An existing file is not changed.

    \b
    Examples:
      remora init
    """
    with errors_as_sentences():
        written = open_project(project).init()
        say(f"Wrote {written}. Every line is a comment: remove the # from what you want to set.")


@setup.command()
def trust(
    path: Annotated[Path, typer.Argument(help="An agent's folder, a folder of agents, or a state folder")],
    json: JsonFlag = False,
) -> None:
    """Trust a project's agents: give them the same rights as bundled ones until one of their files changes.

    Read them first: a trusted agent can import Python code and run further programs. For a state folder (`.agentfs`)
    that you copied from elsewhere, trust it so that you can accept and resume its runs.

    \b
    Examples:
      remora trust agents/
      remora trust agents/changelog
      remora trust .agentfs
    """
    with errors_as_sentences():
        if path.name == STATE_DIR or (path / "traces").is_dir():
            folder = open_project(path.absolute().parent, state_dir=path).trust_state()
            print_json({"state_dir": folder}) if json else say(f"Trusted the state folder {folder}")
            return
        done = open_project(path).agents.trust(path)
        if json:
            print_json(done)
        else:
            for source in done:
                say(f"Trusted {source.name}, as it is now: {source.folder}")


@agents.callback()
def list_agents(
    context: typer.Context, json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None
) -> None:
    """List the available agents.

    \b
    Examples:
      remora agents
      remora agents new changelog
    """
    if context.invoked_subcommand is not None:
        return
    with errors_as_sentences():
        rows = open_project(project, state_dir=state_dir).agents.describe()
        if json:
            print_json(rows)
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for title in ("agent", "from", "targets", "tools", "description"):
            table.add_column(title)
        for row in rows:
            cells = (row.name, row.origin, row.targets, row.tools, row.description)
            table.add_row(*(Text(visible(cell)) for cell in cells))
        out.print(table)


@agents.command()
def new(
    name: Annotated[str, typer.Argument(help="Lowercase letters, digits and _")],
    project: ProjectDir = HERE,
) -> None:
    """Create an agent of your own: a definition, two tools and a passing test.

    \b
    Examples:
      remora agents new changelog
    """
    with errors_as_sentences():
        opened = open_project(project)
        folder, files = opened.agents.new(name)
        for file in files:
            say(f"  {file}")
        say(f"Try it:  remora tool check {folder}\n         remora analyze . -o {name} --policy scripted")


def _settings(listed: list[Setting]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("setting", "value", "from"):
        table.add_column(title)
    for item in listed:
        table.add_row(*(Text(visible(str(cell))) for cell in (item.path, item.value, item.origin)))
    out.print(table)


@setup.command()
def doctor(
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure how fast each model is here, and remember it (up to minutes)")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Check the installation, show what each missing part is needed for, and which model fits this machine.

    \b
    Examples:
      remora doctor
      remora doctor --measure
    """
    with errors_as_sentences():
        if measure:
            measure_models(lambda name: tell([f"measuring {name}"]))
        found = diagnose()
    print_json(found) if json else findings(found)
