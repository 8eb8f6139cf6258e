"""Allow-list of programs and their arguments. Everything else is refused.

`ruff check`: reads its standard input and the project's settings, and runs none of the project's code.

- flags: `--no-cache --no-fix --isolated --force-exclude --quiet --exit-zero`, and `-` for the standard input
- values: `--output-format json|concise`, `--stdin-filename PATH`, `--select CODES`, `--extend-select CODES`,
  `--ignore CODES`, `--line-length N`, `--target-version py3N`

`ruff rule CODE`: prints what ruff's documentation says about a rule; `--output-format json|text`.

`pytest`: runs the project's code, so it only runs in a sandbox.

- flags: `-q -qq -v -vv -x -s -l -ra -rA -rf -rfE --no-header --no-summary --collect-only --exitfirst --quiet --verbose
  --showlocals --strict-markers`
- values: `-k EXPR`, `-m EXPR`, `--tb short|line|no|auto|long|native`, `--maxfail N`, `--durations N`, `--color no`,
  `-p no:cacheprovider`, `-o addopts=`, `-o required_plugins=` and `-o filterwarnings=` (empty, to override project
  settings that need a missing plugin, or that make an error of another plugin's warning),
  `--junitxml NAME` (a file name; its content is returned in `Completed.artifacts[NAME]`)
- positional: test files, folders and node ids (`tests/test_a.py::test_b[x]`), relative to the project, without `..`

A value may follow its flag as the next argument or after `=`. Flag and value are always passed on as one argument: ruff
and pytest read a file for an argument that begins with `@`, and a value that begins with `-` could be taken for a flag.
For the same reason pytest gets its paths with `./` in front.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from remora.errors import MissingExtra, ToolFailed

MAX_ARGUMENT = 4096

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
    """The arguments that a program accepts: flags, options with a checked value, and positional arguments."""

    flags: frozenset[str]
    options: Mapping[str, Check]
    words: Check = lambda word: False
    joined: frozenset[str] = frozenset()
    """Options that take their value without `=`, such as `-p`."""
    prefix: str = ""
    """Put in front of positional arguments, so that none is taken for a flag."""


_RUFF_CHECK = Rules(
    flags=frozenset({"--no-cache", "--no-fix", "--isolated", "--force-exclude", "--quiet", "--exit-zero"}),
    options={
        "--output-format": _matching("json|concise"),
        "--stdin-filename": _relative_path,
        "--select": _rule_codes,
        "--extend-select": _rule_codes,
        "--ignore": _rule_codes,
        "--line-length": _count,
        "--target-version": _matching("py3[0-9]{1,2}"),
    },
    words=_matching("-"),
)
"""ruff only checks its standard input: no fixes, no files, no configuration from arguments."""

_RUFF_RULE = Rules(
    flags=frozenset(), options={"--output-format": _matching("json|text")}, words=_matching(r"[A-Z]{1,10}[0-9]{1,5}")
)
"""What ruff's documentation says about one rule."""

_PYTEST = Rules(
    flags=frozenset(
        {"-q", "-qq", "-v", "-vv", "-x", "-s", "-l", "-ra", "-rA", "-rf", "-rfE", "--no-header", "--no-summary"}
        | {"--collect-only", "--exitfirst", "--quiet", "--verbose", "--showlocals", "--strict-markers"}
    ),
    options={
        "-k": _one_line,
        "-m": _one_line,
        "-p": _matching("no:cacheprovider"),
        "-o": _matching("(addopts|required_plugins|filterwarnings)="),
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
"""pytest may select tests and choose its output: no plugins, no configuration, no folders of its own."""

PROGRAMS: dict[str, dict[str, Rules]] = {
    "ruff": {"check": _RUFF_CHECK, "rule": _RUFF_RULE},
    "pytest": {"": _PYTEST},
}
"""Rules by program and subcommand. The subcommand is empty if the program has none."""

FORCED_ARGUMENTS: dict[str, tuple[str, ...]] = {"check": ("--no-cache", "--no-fix", "-")}
"""Arguments added to every call of a subcommand, so that project settings cannot turn a check into a fix."""

RUNS_PROJECT_CODE = frozenset({"pytest"})
"""Programs that execute project code, and so only run in a sandbox."""


def make_rules(flags: Sequence[str]) -> Rules:
    """Rules for a module that a trusted agent may run: these flags, options ending in `=`, and paths in the project."""
    return Rules(
        flags=frozenset(flag for flag in flags if not flag.endswith("=")),
        options={flag[:-1]: _one_line for flag in flags if flag.endswith("=")},
        words=_test_path,
        prefix="./",
    )


def check_arguments(argv: Sequence[str], extra: Mapping[str, Rules] | None = None) -> list[str]:
    """Return the arguments in their safe form. Raises `ToolFailed` naming the first one that is refused."""
    program, *words = argv if argv else [""]
    if extra and program in extra and program not in PROGRAMS:
        return _arguments(program, extra[program], words)
    if program not in PROGRAMS:
        known = ", ".join(f"`{name}`" for name in PROGRAMS)
        raise ToolFailed(f"Program `{_quote(program)}` is not allowed: expected one of {known}")
    subcommands = PROGRAMS[program]
    if "" in subcommands:
        return _arguments(program, subcommands[""], words)
    if not words or words[0] not in subcommands:
        known = ", ".join(f"`{name}`" for name in subcommands)
        raise ToolFailed(f"`{program} {_quote(words[0]) if words else ''}` is not allowed: expected {known}")
    safe = [words[0], *_arguments(program, subcommands[words[0]], words[1:])]
    return safe + [word for word in FORCED_ARGUMENTS.get(words[0], ()) if word not in safe]


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
        elif rules.words(word) and _is_passable(word) and _is_positional(word, rules):
            safe.append(f"{rules.prefix}{word}")
        else:
            raise ToolFailed(f"Argument `{_quote(word)}` of `{program}` is not allowed")
    return safe


def _is_positional(word: str, rules: Rules) -> bool:
    return not word.startswith("-") or (word == "-" and not rules.prefix)


def _option(program: str, rules: Rules, flag: str, value: str) -> str:
    if not _is_passable(value) or not rules.options[flag](value):
        raise ToolFailed(f"Value `{_quote(value)}` of `{program} {flag}` is not allowed")
    return f"{flag}{value}" if flag in rules.joined else f"{flag}={value}"


def _is_passable(word: str) -> bool:
    """Whether the system can pass it on: a lone surrogate could stand for any byte, and NUL ends an argument."""
    return "\0" not in word and len(word) <= MAX_ARGUMENT and not any("\ud800" <= char <= "\udfff" for char in word)


def _quote(word: str) -> str:
    return repr(word)[1:-1][:120]


def find_program(name: str) -> Path:
    """Find a program installed beside this Python; never through `PATH`, never in the project."""
    folders = [Path(sysconfig.get_path("scripts")), Path(sys.prefix) / "bin", Path(sys.executable).parent]
    for folder in folders:
        path = folder / name
        if folder.is_absolute() and path.is_file():
            return path
    raise MissingExtra(f"`{name}`", extra="agents")
