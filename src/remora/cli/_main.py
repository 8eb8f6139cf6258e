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
        "Run agents on the functions and files below PATHS whenever you save a change to them.",
    ),
    "resume": ("_analyze:run", "Go on with a run that was interrupted: by a crash, a kill, a power cut."),
    "diff": ("_review:review", "Show what agents would change and nobody has decided on."),
    "accept": ("_review:review", "Write agents' changes into your files."),
    "reject": ("_review:review", "Turn agents' changes down: they are no longer open."),
    "undo": ("_review:review", "Take back what the latest accept wrote."),
    "hub": ("_hub:hub", "The live index of the code."),
    "trace": ("_trace:trace", "Read the Long Track."),
    "agents": ("_setup:setup", "Agents that can be run here, and new ones."),
    "tool": ("_tool:tool", "Check, run and describe tool scripts (`.pym`)."),
    "trust": (
        "_setup:setup",
        "Let a project's agents do what the bundled ones may, as long as they stay exactly as they are now.",
    ),
    "model": ("_model:model", "The weights of the embedded model."),
    "init": ("_setup:setup", "Write a commented `remora.yaml`, and change nothing that is there."),
    "config": ("_setup:setup", "Show every setting and where it came from."),
    "doctor": ("_setup:setup", "Say what this machine has, and what anything missing would be needed for."),
}
"""The core's own commands by name: where each is, and what it does in one sentence."""

ELSEWHERE = {"bench": "remora-lab", "train": "remora-lab"}
"""Commands that a distribution of ours adds, and which one."""


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
    """One line on stderr without control characters. Imported here: no command needs it on its way."""
    from remora.context.text import one_line

    typer.echo(one_line(text), err=True)


class _Commands(Mapping[str, Any]):
    """All commands. Getting one imports its module; other distributions are not looked at for one of the core's."""

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
    """The `typer.Typer` of a plugin. Ends the process with a sentence if it cannot be imported."""
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
        self.commands = _Commands()  # type: ignore[assignment] # never added to

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
    """`--changed` by itself means the last commit: the parser knows no option with a value that may be left out."""
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it and exit")
    ] = False,
) -> None:
    """Small local models as tool-calling agents over your code: bounded context for them, a full audit for you."""
