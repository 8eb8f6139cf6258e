"""Tasks for `readme`: command lines with options, and a README.md whose table tells of them, or of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

README = "README.md"
SERVE = '''"""Serves a folder of photos."""

import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("-p", "--port", type=int, default=8080, help="Where to listen")
    parser.add_argument("--host", default="localhost", help="Name or address of this machine")
    parser.add_argument("-q", "--quiet", action="store_true", help="Print nothing (errors excepted)")
    return parser.parse_args()
'''
CHART = '''"""Draws a bar chart in the terminal."""

from argparse import ArgumentParser

parser = ArgumentParser(description=__doc__)
parser.add_argument("-c", "--color", default="green", help="Color of the bars")
parser.add_argument("-w", "--width", type=int, default=60, help="Columns of the chart")
parser.add_argument(
    "--ascii",
    action="store_true",
    help="Deprecated: use --style",
)
parser.add_argument("--style", default="blocks", help="What bars are made of")
'''
BACKUP = '''"""Copies what has changed to another disk."""

import argparse


def options():
    parser = argparse.ArgumentParser("backup")
    parser.add_argument("-t", "--target", help="Folder to copy to")
    parser.add_argument("--keep", type=int, default=14, help="Days before a copy is deleted")
    parser.add_argument("-n", "--dry-run", action="store_true", help="Only tell what would be copied")
    parser.add_argument("--zip", action="store_true", help="This is deprecated, copies are always packed")
    parser.add_argument("--exclude", default="*.tmp", help="Files to pass over")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fail-at", type=int, help=argparse.SUPPRESS)
    return parser
'''
STATIONS = """import argparse

STATIONS = ("north", "south")


def parse(argv):
    parser = argparse.ArgumentParser()
    for station in STATIONS:
        parser.add_argument(f"--{station}", action="store_true", help=f"Read the {station} station")
    parser.add_argument("--unit", default="celsius", help="Unit of temperatures")
    parser.add_argument("--days", type=int, default=7, help="How far back")
    return parser.parse_args(argv)
"""
PORT = "| `-p`, `--port` | 8080 | Where to listen |"
HOST = "| `--host` | localhost | The name of your machine in the network |"
QUIET = "| `-q`, `--quiet` | off | Print nothing (errors excepted) |"
COLOR = "| `-c`, `--color` | green | Green looks best on black |"
WIDTH = "| `-w`, `--width` | 60 | Columns of the chart |"
STYLE = "| `--style` | blocks | What bars are made of |"
TARGET = "| `-t`, `--target` | none | Folder to copy to |"
KEEP = "| `--keep` | 14 | Two weeks are what the insurance asks for |"
DRY = "| `-n`, `--dry-run` | off | Try this first! |"
EXCLUDE = "| `--exclude` | *.tmp | Files to pass over |"
NORTH = "| `--north` | off | The station at the pole |"
UNIT = "| `--unit` | celsius | Or fahrenheit |"
DAYS = "| `--days` | 7 | How far back |"
HEAD = "| Option | Default | Meaning |\n|---|---|---|\n"
COLOUR = COLOR.replace("--color", "--colour")


@dataclass(frozen=True)
class _Case(Case):
    """A command line, the rows of the table before and after, and what is to be done."""

    before: Sequence[str]
    after: Sequence[str] | None = None
    """None where the table is left as it is."""
    rename: Mapping[str, str] = field(default_factory=dict)
    add: Sequence[str] = ()
    remove: Sequence[str] = ()
    correct: Sequence[str] = ()
    head: str = HEAD
    tail: str = ""
    """What follows the table."""


CASES = (
    _Case("readme-level", "easy", "photos/serve.py", SERVE, [PORT, HOST, QUIET]),
    _Case("readme-port", "easy", "serve.py", SERVE, [PORT.replace("8080", "8000"), HOST, QUIET], [PORT, HOST, QUIET],
          correct=["--port"]),
    _Case("readme-quiet", "easy", "gallery/serve.py", SERVE, [PORT, HOST], [PORT, HOST, QUIET], add=["--quiet"]),
    _Case("readme-theme", "easy", "album/__main__.py", SERVE, [PORT, HOST, QUIET, "| `--theme` | dark | Colors |"],
          [PORT, HOST, QUIET], remove=["--theme"]),
    _Case("readme-colour", "medium", "chart.py", CHART, [COLOUR, WIDTH], [COLOR, WIDTH, STYLE],
          rename={"--colour": "--color"}, add=["--style"]),
    _Case("readme-ascii", "medium", "bars/chart.py", CHART, [COLOR, WIDTH, STYLE]),
    _Case("readme-stations", "medium", "weather/cli.py", STATIONS, [NORTH, UNIT, DAYS.replace("7", "30")],
          [NORTH, UNIT, DAYS], correct=["--days"]),
    _Case("readme-untold", "medium", "picture/serve.py", SERVE, [], head="Call it with `--help`.\n"),
    _Case("readme-backup", "hard", "backup.py", BACKUP,
          ["| `--tape` | off | Copy to tape |", TARGET, KEEP.replace("14", "30"), DRY.replace("--dry-run", "--try")],
          [TARGET, KEEP, DRY, EXCLUDE], {"--try": "--dry-run"}, ["--exclude"], ["--tape"], ["--keep"]),
    _Case("readme-twice", "hard", "disks/backup.py", BACKUP, [TARGET, KEEP],
          tail=f"\n## For administrators\n\n{HEAD}{DRY}\n| `--force` | off | Copy all |\n"),
)  # fmt: skip


def readme_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        yield _task(case)


def _task(case: _Case) -> Task:
    files = {case.path: case.source, README: _readme(case, case.before)}
    after: dict[str, str | None] = {README: _readme(case, case.before if case.after is None else case.after)}
    todo = [call("rename_row", old=old, new=new) for old, new in case.rename.items()]
    todo += [call("add_row", option=name) for name in case.add]
    todo += [call("remove_row", option=name) for name in case.remove]
    todo += [call("correct_default", option=name) for name in case.correct]
    return made(case.name, case.level, files, case.path, after, [todo] if todo else [])


def _readme(case: _Case, rows: Sequence[str]) -> str:
    name = case.name.partition("-")[2].capitalize()
    table = case.head + "".join(f"{row}\n" for row in rows)
    return f"# {name}\n\nA small tool.\n\n## Options\n\n{table}{case.tail}\n## License\n\nMIT\n"
