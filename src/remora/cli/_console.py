"""Helpers that all commands share. Data goes to stdout and messages to stderr; nothing depends on colour alone."""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import orjson
import typer
from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from remora.context.patterns import redact_patterns
from remora.context.text import escaped_json, visible
from remora.errors import ConfigError, DefinitionError, MissingExtra, RemoraError

HERE = Path()
SLOW_S = 1.0
SOME_FAILED, ALL_FAILED, BAD_CONFIG, CANCELLED = 1, 2, 3, 130

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON on stdout")]
ProjectDir = Annotated[Path, typer.Option("--project", "-C", help="A folder in the project; default: the current one")]


def parse_state(text: str) -> Path | str:
    """A folder, or the URL of a Postgres store."""
    return text if "://" in text else Path(text)


def parse_path(text: str) -> Path:
    """A file or a folder. An empty word, as of a variable that is not set, would mean the current folder."""
    if not text:
        raise typer.BadParameter("it is empty: expected a file or a folder")
    return Path(text)


StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        "--store",
        parser=parse_state,
        metavar="PATH|URL",
        help="Folder for streams, or `postgres://…`; default: `.agentfs` in the project",
    ),
]

# Without a terminal there is no width: print whole tables instead of narrow ones.
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)
err = Console(stderr=True, highlight=False, soft_wrap=True)
AGENTS_PACKAGES = frozenset(
    [
        "openai",
        "pathspec",
        "pydantic_monty",
        "pytest",
        "re2",
        "tenacity",
        "tokenizers",
        "tree_sitter",
        "tree_sitter_python",
        "watchfiles",
    ]
)
"""Modules of the extra `agents` that are not in the extra `trace`."""


FLAGS = {
    "server.server": "--server",
    "server.model": "--model",
    "escalation": "--escalate",
    "engine.name": "--engine",
    "engine.address": "--address",
    "runner.max_turns": "--max-turns",
    "runner.memory.trace_store": "--store",
}
"""The flags that set a setting, by its path."""


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Print an error as one sentence with a hint and exit with its code, instead of a traceback."""
    try:
        with _missing_extras():
            yield
    except RemoraError as error:
        _say_problem("error: ", "bold red", _message(error))
        if error.hint:
            _say_problem("hint: ", "bold", error.hint)
        raise typer.Exit(BAD_CONFIG if isinstance(error, ConfigError) else SOME_FAILED) from None
    except OSError as error:
        where = f"`{error.filename}` cannot be used" if error.filename else "A file could not be read or written"
        _say_problem("error: ", "bold red", f"{where}: {error.strerror or error}")
        raise typer.Exit(SOME_FAILED) from None
    except KeyboardInterrupt:
        err.print("Cancelled. What was recorded is safe.")
        raise typer.Exit(CANCELLED) from None


def _say_problem(kind: str, style: str, text: str) -> None:
    shown = Text(folded(visible(f"{kind}{redact_patterns(text)}"), err, 2))
    shown.stylize(style, 0, len(kind))
    err.print(shown)


def _message(error: RemoraError) -> str:
    """What happened. A setting that a flag set goes by the flag's name."""
    if not isinstance(error, DefinitionError) or error.file != "flag":
        return error.message
    named = [problem.removeprefix("$.").partition(": ") for problem in error.problems]
    return "\n".join(f"{_flag(path)} {_problem(words)}" for path, _, words in named)


def _flag(path: str) -> str:
    """The flag with its setting, which `--set` may have named instead."""
    return f"`{FLAGS[path]}` (the setting `{path}`)" if path in FLAGS else f"`{path}`"


def _problem(words: str) -> str:
    return words.replace("Input should", "should").replace("'", "`")


@contextmanager
def _missing_extras() -> Iterator[None]:
    """Turn a missing package of the extra `agents` into an error that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in AGENTS_PACKAGES:
            raise
        raise MissingExtra(f"`{package}`, which this command needs,", extra="agents") from error


@contextmanager
def slow_progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr after one second. Call the result with the number done and the total."""
    from rich import progress as bars  # slow to load

    shape = (bars.BarColumn(bar_width=24), bars.MofNCompleteColumn())
    columns = (bars.TextColumn(what), *shape, bars.TimeElapsedColumn(), bars.TimeRemainingColumn(compact=True))
    bar = bars.Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal)
    task = bar.add_task(what, total=None)
    timer = threading.Timer(SLOW_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, total: bar.update(task, completed=done, total=total)
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a file for writing that appears only when all of it is written. A pipe or device is written directly.

    An `OSError` names the file, not a temporary one or none.
    """
    try:
        with _open_whole(path) as file:
            yield file
    except OSError as error:
        if error.filename is None or Path(error.filename).parent == path.resolve().parent:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def _open_whole(path: Path) -> Iterator[TextIO]:
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    target = path.resolve()
    if not target.parent.is_dir():
        raise ConfigError(f"`{path}` cannot be written: `{path.parent}` is not a folder")
    handle, new = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
        Path(new).chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask())
        Path(new).replace(target)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def print_json(value: Any) -> None:
    """Print `value` as JSON on stdout."""
    sys.stdout.write(json_text(orjson.dumps(value, default=plain, option=orjson.OPT_INDENT_2)) + "\n")


def print_json_line(value: Any) -> None:
    """Print `value` as one line of JSON on stdout and flush."""
    sys.stdout.write(json_text(orjson.dumps(value, default=plain)) + "\n")
    sys.stdout.flush()


def json_text(data: bytes) -> str:
    """Decode JSON for printing, with control characters escaped. The value stays the same."""
    return escaped_json(data.decode())


def value_text(value: Any) -> str:
    """A value for people: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value, default=plain).decode()


def say(text: str, style: str = "", *, hang: int | None = None) -> None:
    """Print a line on stdout, with control characters made visible.

    With `hang`, a line that is longer than the terminal breaks between words and goes on with this indentation.
    """
    shown = visible(text)
    out.print(Text(shown if hang is None else folded(shown, out, hang), style=style))


def tell(notices: Iterable[str]) -> None:
    """Print notices on stderr."""
    for notice in notices:
        err.print(Text(folded(visible(f"notice: {redact_patterns(notice)}"), err, 2)))


def folded(text: str, console: Console, hang: int) -> str:
    """Text with lines that fit the terminal, broken between words. Without a terminal, the text as it is."""
    if not console.is_terminal or console.width <= hang + LEAST_ROOM:
        return text
    wrap = textwrap.TextWrapper(
        width=console.width,
        subsequent_indent=" " * hang,
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )
    return "\n".join("\n".join(wrap.wrap(line)) for line in text.split("\n"))


LEAST_ROOM = 24
"""Columns that an indented line needs at least."""


def plain(value: Any) -> Any:
    """Convert a value that JSON cannot represent."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return str(value)
