"""Every command line of every page names a command that there is, with options that it has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

from remora.cli._main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.yml")]
LINE = re.compile(r"^[ \t]*(?:\$ )?(remora [^\n]*(?:\\\n[^\n]*)*)|`(remora [^`\n]+)`", re.MULTILINE)
NOT_COMMANDS = ("remora 0.1.0", "remora COMMAND", "remora …")


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words of each command line of a page, without comments and what follows a pipe."""
    for found in LINE.finditer(page.read_text(encoding="utf-8")):
        line = re.split(r"\s#\s|\s\|\s|\s{2,}#", (found[1] or found[2]).replace("\\\n", " "))[0]
        if not line.startswith(NOT_COMMANDS) and "COMMAND [OPTIONS]" not in line:
            try:
                yield shlex.split(line)
            except ValueError:  # a quotation mark of the sentence around it
                yield line.split()


@cache
def parts_of(command: Any) -> dict[str, Any]:
    """The commands below a command. They are imported when they are asked for."""
    return dict(getattr(command, "commands", {}))


def problem_of(words: list[str], command: Any) -> str:
    """Why a command line cannot be meant; empty if it can."""
    words = words[1:]
    while words and words[0] in parts_of(command):
        command = parts_of(command)[words.pop(0)]
    if words and parts_of(command) and not words[0].startswith("-"):
        return f"no command `{words[0]}`"
    known = {"-h", "--help", *(name for param in command.params for name in (*param.opts, *param.secondary_opts))}
    before = words[: words.index("--")] if "--" in words else words
    options = [word.split("=")[0].rstrip(",:.;") for word in before if re.match(r"--?[A-Za-z]", word)]
    return ", ".join(f"no option `{name}`" for name in options if name not in known)


def test_every_command_on_a_page_exists_with_its_options() -> None:
    root = typer.main.get_command(app)
    lines = [(page, words) for page in PAGES for words in command_lines(page)]
    assert len(lines) > 500
    wrong = [f"{page.name}: {' '.join(words)}: {why}" for page, words in lines if (why := problem_of(words, root))]
    assert not wrong
    assert problem_of(["remora", "trace", "lst"], root) == "no command `lst`"
    assert problem_of(["remora", "analyze", ".", "--sever", "x"], root) == "no option `--sever`"
