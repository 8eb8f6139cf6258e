"""The top-level commands. Each is imported when it is invoked, so that `remora --help` is quick."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from remora._version import __version__
from remora.cli._plugins import Command, installed_plugins

BAD_INSTALLATION = 3
"""Exit status for a command that is not installed or cannot be loaded."""

COMMANDS = {
    "analyze": ("_analyze:run", "Run an agent on every function and file below PATHS."),
    "watch": (
        "_watch:watching",
        "Run agents on the functions and files below PATHS each time you save a change.",
    ),
    "resume": ("_analyze:run", "Continue a run that was interrupted by a crash, a kill or a power loss."),
    "fork": (
        "_fork:forking",
        "Run an agent again from the end of one of its turns, with the packet and the files as they were then.",
    ),
    "diff": ("_review:review", "Show open changes: those that are neither accepted nor rejected."),
    "accept": ("_review:review", "Write agents' changes into your files."),
    "reject": ("_review:review", "Reject agents' changes, so that they are no longer open."),
    "undo": ("_review:review", "Undo the latest accept."),
    "hub": ("_hub:hub", "Manage the index of the code."),
    "trace": ("_trace_commands:trace", "Read, check and prune streams (the Long Track)."),
    "view": ("_view:view", "Show both tracks of every agent on a local page, live and back in time."),
    "store": ("_store:store", "Make and copy Postgres stores for streams."),
    "agents": ("_setup:setup", "List the available agents, or create one."),
    "mcp": ("_mcp:serving", "Serve recorded runs and the code index to an assistant, as an MCP server."),
    "tool": ("_tool:tool", "Check and run tool scripts (`.pym`), and list the tools of MCP servers."),
    "trust": (
        "_setup:setup",
        "Trust a project's agents: give them the same rights as bundled ones until one of their files changes.",
    ),
    "model": ("_model:model", "Manage the weights of embedded models."),
    "init": ("_setup:setup", "Write a `remora.yaml` with every setting as a comment."),
    "config": ("_setup:setup", "Show every setting, its value and where the value comes from."),
    "doctor": (
        "_setup:setup",
        "Check the installation, show what each missing part is needed for, and which model fits this machine.",
    ),
}
"""The core's commands by name: module and object, and a one-sentence summary."""

ELSEWHERE = {"bench": "remora-lab", "train": "remora-lab"}
"""Commands that another of our distributions adds, with its name."""


@cache
def _plugin_commands() -> dict[str, Command]:
    """The commands of other distributions by name. A warning names each that cannot be used."""
    found: dict[str, Command] = {}
    for name, distribution, command, problem in installed_plugins():
        if command is None:
            _print_line(f"warning: command `{name}` of `{distribution}` cannot be loaded: {problem}")
        elif name in COMMANDS or name in found:
            _print_line(
                f"warning: command `{name}` of `{distribution}` is ignored: there is another command with this name"
            )
        else:
            found[name] = command
    return found


def _print_line(text: str) -> None:
    """Print one line on stderr without control characters. The import is local to keep start-up fast."""
    from remora.context.text import one_line

    typer.echo(one_line(text), err=True)


class _Commands(Mapping[str, Any]):
    """All commands. Getting one imports its module. Plugins are searched only for names that the core does not have."""

    def __getitem__(self, name: str) -> Any:
        if name in COMMANDS:
            target, summary = COMMANDS[name]
            loaded = Command(f"remora.cli.{target}", summary).load()
        else:
            loaded = _load_plugin(name, _plugin_commands()[name])
        found = typer.main.get_command(loaded)
        return getattr(found, "commands", {}).get(name, found)

    def __iter__(self) -> Iterator[str]:
        return iter([*COMMANDS, *_plugin_commands()])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _load_plugin(name: str, command: Command) -> Any:
    """Import the `typer.Typer` of a plugin. Exits with an error message if that fails."""
    try:
        loaded = command.load()
    except Exception as error:  # noqa: BLE001 - the code of another package may fail in any way
        problem = f"{type(error).__name__}: {error}"
    else:
        if isinstance(loaded, typer.Typer):
            return loaded
        problem = f"`{command.target}` is a `{type(loaded).__name__}`, expected a `typer.Typer`"
    _print_line(f"error: command `{name}` cannot be loaded: {problem}")
    raise typer.Exit(BAD_INSTALLATION)


class _Group(TyperGroup):
    """Lists all commands without importing their code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment] # read-only

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in ELSEWHERE:
            typer.echo(f"error: `remora {cmd_name}` is not installed", err=True)
            typer.echo(f"hint: Install it with `pip install {ELSEWHERE[cmd_name]}`", err=True)
            raise typer.Exit(BAD_INSTALLATION)
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        own = [(name, summary) for name, (_, summary) in COMMANDS.items()]
        others = [(name, command.summary) for name, command in _plugin_commands().items()]
        with formatter.section("Commands"):
            formatter.write_dl([*own, *others])


app = typer.Typer(
    name="remora",
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # commands inherit it
)


def run() -> None:
    """Run the command that the arguments name."""
    app(_with_reference(sys.argv[1:]))


def _with_reference(words: list[str]) -> list[str]:
    """Replace a bare `--changed` by `--changed=HEAD`: the parser has no options with an optional value."""
    return [
        "--changed=HEAD" if word == "--changed" and (after.startswith("-") or Path(after).exists()) else word
        for word, after in itertools.pairwise([*words, "-"])
    ]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"remora {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit")
    ] = False,
) -> None:
    """Run small local models as tool-calling agents on your code. They see a bounded prompt; you get a full record."""
