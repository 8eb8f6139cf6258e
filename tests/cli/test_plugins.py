"""Other distributions add commands to `remora`; a broken one is named in one line and stops nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
SITE = Path(sysconfig.get_paths()["purelib"])
HELLO = """
import typer
from remora.cli import Command

hello = Command("greetings.app:app", "Greet somebody.")
missing = Command("greetings.nowhere:app", "Cannot be run.")
text = "no command"
"""
APP = """
import typer

app = typer.Typer(invoke_without_command=True)

@app.callback()
def greet(name: str = "you") -> None:
    print(f"Hello, {name}")
"""

Remora = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def bare_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All installed packages but those that are ours."""
    site = tmp_path_factory.mktemp("site")
    for entry in SITE.iterdir():
        if not entry.name.startswith(("remora", "_editable_impl_remora")):
            (site / entry.name).symlink_to(entry)
    return site


@pytest.fixture
def remora(bare_site: Path, tmp_path: Path) -> Remora:
    """The command as it is where only the core, its dependencies and what lies in `tmp_path` are installed."""

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        code = "from remora.cli import main; main()"
        env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [SRC, bare_site, tmp_path]))}
        argv = [sys.executable, "-S", "-P", "-c", code, *args]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)

    return run


def install(site: Path, entry_points: str, distribution: str = "remora_greetings") -> None:
    """A distribution with these lines in its group of entry points."""
    folder = site / f"{distribution}-1.0.dist-info"
    folder.mkdir()
    text = f"[console_scripts]\nother = os:getcwd\n\n[remora.commands]\n{entry_points}\n\n[pytest11]\nx = os\n"
    (folder / "entry_points.txt").write_text(text)
    package = site / "greetings"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(HELLO)
    (package / "app.py").write_text(APP)


def test_a_command_of_another_distribution_is_listed_and_runs(remora: Remora, tmp_path: Path) -> None:
    install(tmp_path, "hello = greetings:hello")
    listed = remora("--help")
    assert "hello    Greet somebody." in listed.stdout
    done = remora("hello", "--name", "Ada")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello, Ada\n", "")


def test_listing_a_command_does_not_import_the_code_that_runs_it(remora: Remora, tmp_path: Path) -> None:
    install(tmp_path, "missing = greetings:missing")
    listed = remora("--help")
    assert "Cannot be run." in listed.stdout
    assert listed.stderr == ""


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("nowhere:app", "ModuleNotFoundError: No module named 'nowhere'"),
        ("greetings:nothing", "AttributeError: module 'greetings' has no attribute 'nothing'"),
        ("greetings:text", "`greetings:text` is a `str`, expected a `remora.cli.Command`"),
    ],
)
def test_a_broken_plugin_is_one_line_on_stderr(remora: Remora, tmp_path: Path, target: str, told: str) -> None:
    install(tmp_path, f"hello = {target}")
    listed = remora("--help")
    assert listed.returncode == 0
    assert "analyze" in listed.stdout
    assert listed.stderr == f"warning: command `hello` of `remora-greetings` cannot be loaded: {told}\n"


def test_a_command_whose_code_is_broken_ends_with_a_sentence(remora: Remora, tmp_path: Path) -> None:
    install(tmp_path, "missing = greetings:missing")
    done = remora("missing")
    assert done.returncode == 3
    assert done.stderr == (
        "error: command `missing` cannot be loaded: ModuleNotFoundError: No module named 'greetings.nowhere'\n"
    )


def test_a_broken_plugin_does_not_disturb_the_commands_of_the_core(remora: Remora, tmp_path: Path) -> None:
    install(tmp_path, "hello = nowhere:app")
    done = remora("agents")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_plugin_cannot_replace_a_command_of_the_core_nor_of_another_plugin(remora: Remora, tmp_path: Path) -> None:
    install(tmp_path, "agents = greetings:hello\nhello = greetings:hello")
    install(tmp_path, "hello = greetings:missing", "remora_second")
    listed = remora("--help")
    assert "hello    Greet somebody." in listed.stdout
    assert [line.partition(" is ignored")[0] for line in listed.stderr.splitlines()] == [
        "warning: command `agents` of `remora-greetings`",
        "warning: command `hello` of `remora-second`",
    ]
    assert "lint" in remora("agents").stdout


@pytest.mark.parametrize("command", ["bench", "train"])
def test_without_the_lab_its_commands_say_what_to_install(remora: Remora, command: str) -> None:
    done = remora(command, "--quick")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        f"error: `remora {command}` is not installed\nhint: Install it with `pip install remora-lab`\n"
    )
    assert f"\n  {command} " not in remora("--help").stdout


def test_a_command_that_nobody_has_is_a_usage_error(remora: Remora) -> None:
    done = remora("bensh")
    assert done.returncode == 2
    assert "No such command 'bensh'" in done.stderr
