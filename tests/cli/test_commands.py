"""The list of commands says of each what it says of itself, and loads none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from remora.cli._main import COMMANDS, app


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_listed_with_its_own_first_sentence(name: str) -> None:
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    first = " ".join(command.help.split("\n\n")[0].split())
    assert first.startswith(COMMANDS[name][1])


def test_help_loads_no_part_of_ours() -> None:
    code = "import sys; sys.argv = ['remora', '--help']\nfrom remora.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    tell = "print([name for name in sys.modules if name in ('pydantic', 'remora.events', 'remora.app', 'openai')])"
    done = subprocess.run([sys.executable, "-c", code + tell], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", [[], ["-h"], ["trace", "-h"], ["trace", "ls", "-h"], ["accept", "-h"]])
def test_help_is_shown_for_no_words_at_all_and_for_the_short_option(words: list[str]) -> None:
    code = "from remora.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert "Usage: " in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
