"""The commands at the top."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from remora._version import __version__
from remora.cli import _render as render
from remora.cli._analyze import run as running
from remora.cli._console import (
    JsonFlag,
    print_json,
    say,
)
from remora.cli._doctor import diagnose
from remora.cli._model import model
from remora.cli._review import review
from remora.cli._setup import setup
from remora.cli._tool import tool
from remora.cli._trace import trace
from remora.cli._watch import watching

app = typer.Typer(
    name="remora",
    help="Small local models as tool-calling agents over your code: bounded context for them, a full audit for you.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(trace, name="trace")
app.add_typer(tool, name="tool")
app.add_typer(model, name="model")
app.add_typer(running)
app.add_typer(watching)
app.add_typer(review)
app.add_typer(setup)


def run() -> None:
    """Run the command that the arguments name. A polite kill ends it like Ctrl-C: everything open is sealed."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    app(_with_reference(sys.argv[1:]))


def _with_reference(words: list[str]) -> list[str]:
    """`--changed` by itself means the last commit: the parser knows no option with a value that may be left out."""
    following = [*words[1:], "-"]
    return [
        "--changed=HEAD" if word == "--changed" and (after.startswith("-") or Path(after).exists()) else word
        for word, after in zip(words, following, strict=True)
    ]


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
def doctor(json: JsonFlag = False) -> None:
    """Say what this machine has, and what anything missing would be needed for."""
    found = diagnose()
    print_json(found) if json else render.findings(found)
