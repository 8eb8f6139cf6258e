"""Which programs may be started, with which words. Everything that is not in this table is refused.

A value is always passed as `--flag=value`, in one word: ruff would read a file for a word that begins with `@`, and any
program could take a word that begins with `-` for a flag.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from remora.errors import MissingExtra, ToolFailed

MAX_WORD = 4096

Check = Callable[[str], bool]


def _relative_path(value: str) -> bool:
    path = PurePosixPath(value)
    return bool(value) and not path.is_absolute() and ".." not in path.parts and "\n" not in value


def _rule_codes(value: str) -> bool:
    return re.fullmatch(r"[A-Z]{1,10}[0-9]{0,5}(,[A-Z]{1,10}[0-9]{0,5}){0,99}", value) is not None


def _json(value: str) -> bool:
    return value == "json"


@dataclass(frozen=True)
class Subcommand:
    """What one subcommand takes: flags alone, flags with a checked value, and words that stand for themselves."""

    flags: frozenset[str]
    options: Mapping[str, Check]
    words: frozenset[str] = frozenset()


PROGRAMS: dict[str, dict[str, Subcommand]] = {
    "ruff": {
        "check": Subcommand(
            flags=frozenset({"--no-cache", "--no-fix", "--isolated", "--force-exclude", "--quiet", "--exit-zero"}),
            options={
                "--output-format": _json,
                "--stdin-filename": _relative_path,
                "--select": _rule_codes,
                "--extend-select": _rule_codes,
                "--ignore": _rule_codes,
            },
            words=frozenset({"-"}),
        ),
    },
}
"""ruff may look and say, on its standard input only: no fixing, no files, no configuration from arguments."""

ALWAYS: dict[str, tuple[str, ...]] = {"ruff": ("--no-cache", "--no-fix", "-")}
"""Words that every call gets, so that a project's own settings cannot make a look into a change."""


def allowed(argv: Sequence[str]) -> list[str]:
    """The words after the program's name, in their safe form. Raises `ToolFailed` naming the first that is refused."""
    program, *words = argv if argv else [""]
    if program not in PROGRAMS:
        known = ", ".join(f"`{name}`" for name in PROGRAMS)
        raise ToolFailed(f"Program `{_shown(program)}` is not allowed: expected one of {known}")
    if not words or words[0] not in PROGRAMS[program]:
        known = ", ".join(f"`{name}`" for name in PROGRAMS[program])
        raise ToolFailed(f"`{program} {_shown(words[0]) if words else ''}` is not allowed: expected {known}")
    safe = [words[0], *_arguments(program, PROGRAMS[program][words[0]], words[1:])]
    return safe + [word for word in ALWAYS.get(program, ()) if word not in safe]


def _arguments(program: str, rules: Subcommand, words: Sequence[str]) -> list[str]:
    safe: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, has_value, value = word.partition("=")
        if word in rules.flags or word in rules.words:
            safe.append(word)
            continue
        if flag not in rules.options:
            raise ToolFailed(f"Argument `{_shown(word)}` of `{program}` is not allowed")
        if not has_value:
            value = rest.pop(0) if rest else ""
        if "\0" in value or len(value) > MAX_WORD or not rules.options[flag](value):
            raise ToolFailed(f"Value `{_shown(value)}` of `{program} {flag}` is not allowed")
        safe.append(f"{flag}={value}")
    return safe


def _shown(word: str) -> str:
    return repr(word)[1:-1][:120]


def find_program(name: str) -> Path:
    """The program as it was installed beside this Python; never by `PATH`, never from the project."""
    folders = [Path(sysconfig.get_path("scripts")), Path(sys.prefix) / "bin", Path(sys.executable).parent]
    for folder in folders:
        path = folder / name
        if folder.is_absolute() and path.is_file():
            return path
    raise MissingExtra(f"`{name}`", extra="agents")
