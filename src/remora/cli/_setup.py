"""Commands about the project itself: its settings and its agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from remora.app import STATE_DIR, open_project
from remora.cli._console import HERE, JsonFlag, ProjectDir, StateDir, errors_as_sentences, out, print_json, say
from remora.cli._doctor import diagnose
from remora.cli._render import findings
from remora.context.text import visible
from remora.settings import Setting

setup = typer.Typer(add_completion=False, rich_markup_mode=None)
agents = typer.Typer(
    help="Agents that can be run here, and new ones.", invoke_without_command=True, rich_markup_mode=None
)
setup.add_typer(agents, name="agents")


@setup.command()
def config(json: JsonFlag = False, project: ProjectDir = HERE, state_dir: StateDir = None) -> None:
    """Show every setting and where it came from.

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
    """Write a commented `remora.yaml`, and change nothing that is there.

    \b
    Examples:
      remora init
    """
    with errors_as_sentences():
        written = open_project(project).init()
        say(f"Wrote {written}. Every line is a comment: take away the # of what you want to set.")


@setup.command()
def trust(
    path: Annotated[Path, typer.Argument(help="An agent's folder, a folder of agents, or a state folder")],
    json: JsonFlag = False,
) -> None:
    """Let a project's agents do what the bundled ones may, as long as they stay exactly as they are now.

    Read them first: a trusted agent may name Python code to import, and further programs to run. A state folder
    (`.agentfs`) that you copied from elsewhere is made your own, so that its runs can be accepted and resumed.

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
    """List the agents that can be run here.

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
        for title in ("agent", "from", "works on", "tools", "what it does"):
            table.add_column(title)
        for row in rows:
            cells = (row.name, row.origin, row.targets, row.tools, row.description)
            table.add_row(*(Text(visible(cell)) for cell in cells))
        out.print(table)


@agents.command()
def new(
    name: Annotated[str, typer.Argument(help="Small letters, digits and _")],
    project: ProjectDir = HERE,
) -> None:
    """Begin an agent of your own: a definition, a tool, and a test that passes.

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
def doctor(json: JsonFlag = False) -> None:
    """Say what this machine has, and what anything missing would be needed for.

    \b
    Examples:
      remora doctor
    """
    found = diagnose()
    print_json(found) if json else findings(found)
