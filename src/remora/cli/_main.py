"""The commands at the top, each loaded when it is asked for, so that help comes at once."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from remora._version import __version__

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
    "bench": ("_bench:bench", "Try agents on tasks whose outcome the files decide, and compare who decides."),
    "train": ("_train:train", "Train an adapter for the embedded model from your own traces."),
    "init": ("_setup:setup", "Write a commented `remora.yaml`, and change nothing that is there."),
    "config": ("_setup:setup", "Show every setting and where it came from."),
    "doctor": ("_setup:setup", "Say what this machine has, and what anything missing would be needed for."),
}
"""By name: where the command is, and what it does in one sentence."""


class _Loaded(Mapping[str, Any]):
    """The commands themselves."""

    def __getitem__(self, name: str) -> Any:
        module, _, group = COMMANDS[name][0].partition(":")
        found = typer.main.get_command(getattr(import_module(f"remora.cli.{module}"), group))
        return getattr(found, "commands", {}).get(name, found)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Commands(TyperGroup):
    """Lists all commands without loading any."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Loaded()  # type: ignore[assignment] # never added to

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in COMMANDS.items()])


app = typer.Typer(
    name="remora",
    cls=_Commands,
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
