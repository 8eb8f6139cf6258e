"""Which programs may be started, with which words. Everything that is not in this table is refused.

`ruff check`: reads its standard input and the project's settings, and runs none of the project's code.

- flags: `--no-cache --no-fix --isolated --force-exclude --quiet --exit-zero`, and `-` for the standard input
- values: `--output-format json`, `--stdin-filename PATH`, `--select CODES`, `--extend-select CODES`, `--ignore CODES`

`pytest`: runs the project's code, so it runs in a sandbox or not at all.

- flags: `-q -qq -v -vv -x -s -l -ra -rA -rf -rfE --no-header --no-summary --collect-only --exitfirst --quiet --verbose
  --showlocals --strict-markers`
- values: `-k EXPR`, `-m EXPR`, `--tb short|line|no|auto|long|native`, `--maxfail N`, `--durations N`, `--color no`,
  `-p no:cacheprovider`, `-o addopts=` and `-o required_plugins=` (both empty: without what the project's settings add,
  where a plugin is missing that they need), `--junitxml NAME` (a file name; its content comes back in
  `Completed.artifacts[NAME]`)
- words: test files, folders and node ids (`tests/test_a.py::test_b[x]`), relative to the project, without `..`

A value may follow its flag as the next word or after `=`. What is passed on is always one word: ruff and pytest would
read a file for a word that begins with `@`, and any program could take a word that begins with `-` for a flag. For the
same reason a path of pytest's is passed on with `./` before it.
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


def _one_line(value: str) -> bool:
    return bool(value) and value.isprintable()


def _relative_path(value: str) -> bool:
    path = PurePosixPath(value)
    return bool(value) and not path.is_absolute() and ".." not in path.parts and "\n" not in value


def _test_path(value: str) -> bool:
    path, _, _ = value.partition("::")
    return _one_line(value) and _relative_path(path)


def _matching(pattern: str) -> Check:
    return lambda value: re.fullmatch(pattern, value) is not None


_rule_codes = _matching(r"[A-Z]{1,10}[0-9]{0,5}(,[A-Z]{1,10}[0-9]{0,5}){0,99}")
_count = _matching(r"[0-9]{1,5}")


@dataclass(frozen=True)
class Rules:
    """What a program takes: flags alone, flags with a checked value, and words that stand for themselves."""

    flags: frozenset[str]
    options: Mapping[str, Check]
    words: Check = lambda word: False
    joined: frozenset[str] = frozenset()
    """Options that take their value without a `=` between."""
    prefix: str = ""
    """What is put before a word, so that it stays a word."""


_RUFF_CHECK = Rules(
    flags=frozenset({"--no-cache", "--no-fix", "--isolated", "--force-exclude", "--quiet", "--exit-zero"}),
    options={
        "--output-format": _matching("json"),
        "--stdin-filename": _relative_path,
        "--select": _rule_codes,
        "--extend-select": _rule_codes,
        "--ignore": _rule_codes,
    },
    words=_matching("-"),
)
"""ruff may look and say, on its standard input only: no fixing, no files, no configuration from arguments."""

_PYTEST = Rules(
    flags=frozenset(
        {"-q", "-qq", "-v", "-vv", "-x", "-s", "-l", "-ra", "-rA", "-rf", "-rfE", "--no-header", "--no-summary"}
        | {"--collect-only", "--exitfirst", "--quiet", "--verbose", "--showlocals", "--strict-markers"}
    ),
    options={
        "-k": _one_line,
        "-m": _one_line,
        "-p": _matching("no:cacheprovider"),
        "-o": _matching("(addopts|required_plugins)="),
        "--tb": _matching("short|line|no|auto|long|native"),
        "--maxfail": _count,
        "--durations": _count,
        "--color": _matching("no"),
        "--junitxml": _matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"),
    },
    words=_test_path,
    joined=frozenset({"-p", "-o"}),
    prefix="./",
)
"""pytest may choose what runs and how it is told: no plugins, no configuration, no folders of its own."""

PROGRAMS: dict[str, dict[str, Rules]] = {"ruff": {"check": _RUFF_CHECK}, "pytest": {"": _PYTEST}}
"""Rules by program and subcommand; the subcommand is empty where there is none."""

ALWAYS: dict[str, tuple[str, ...]] = {"ruff": ("--no-cache", "--no-fix", "-"), "pytest": ()}
"""Words that every call gets, so that a project's own settings cannot make a look into a change."""

RUNS_PROJECT_CODE = frozenset({"pytest"})
"""Programs that run what the project says, and so only run in a sandbox."""


def rules_of(flags: Sequence[str]) -> Rules:
    """Rules for a module of a trusted agent: these flags, `--name=` with one line after it, paths in the project."""
    return Rules(
        flags=frozenset(flag for flag in flags if not flag.endswith("=")),
        options={flag[:-1]: _one_line for flag in flags if flag.endswith("=")},
        words=_test_path,
        prefix="./",
    )


def allowed(argv: Sequence[str], extra: Mapping[str, Rules] | None = None) -> list[str]:
    """The words after the program's name, in their safe form. Raises `ToolFailed` naming the first that is refused."""
    program, *words = argv if argv else [""]
    if extra and program in extra and program not in PROGRAMS:
        return _arguments(program, extra[program], words)
    if program not in PROGRAMS:
        known = ", ".join(f"`{name}`" for name in PROGRAMS)
        raise ToolFailed(f"Program `{_shown(program)}` is not allowed: expected one of {known}")
    subcommands = PROGRAMS[program]
    if "" in subcommands:
        return _arguments(program, subcommands[""], words)
    if not words or words[0] not in subcommands:
        known = ", ".join(f"`{name}`" for name in subcommands)
        raise ToolFailed(f"`{program} {_shown(words[0]) if words else ''}` is not allowed: expected {known}")
    safe = [words[0], *_arguments(program, subcommands[words[0]], words[1:])]
    return safe + [word for word in ALWAYS[program] if word not in safe]


def _arguments(program: str, rules: Rules, words: Sequence[str]) -> list[str]:
    safe: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, has_value, value = word.partition("=")
        if word in rules.flags:
            safe.append(word)
        elif flag in rules.options:
            if not has_value:
                value = rest.pop(0) if rest else ""
            safe.append(_option(program, rules, flag, value))
        elif rules.words(word) and _sound(word) and _is_word(word, rules):
            safe.append(f"{rules.prefix}{word}")
        else:
            raise ToolFailed(f"Argument `{_shown(word)}` of `{program}` is not allowed")
    return safe


def _is_word(word: str, rules: Rules) -> bool:
    return not word.startswith("-") or (word == "-" and not rules.prefix)


def _option(program: str, rules: Rules, flag: str, value: str) -> str:
    if not _sound(value) or not rules.options[flag](value):
        raise ToolFailed(f"Value `{_shown(value)}` of `{program} {flag}` is not allowed")
    return f"{flag}{value}" if flag in rules.joined else f"{flag}={value}"


def _sound(word: str) -> bool:
    """Whether the system can pass it on: a lone surrogate could stand for any byte, NUL ends a word."""
    return "\0" not in word and len(word) <= MAX_WORD and not any("\ud800" <= char <= "\udfff" for char in word)


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
