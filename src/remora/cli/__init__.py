"""The command line. Each command parses its arguments, calls one method of a `Project`, prints the result and exits."""

from __future__ import annotations

import codecs
import gc
import os
import sys
from io import TextIOWrapper
from pathlib import Path

from remora.cli._plugins import Command
from remora.cli._signals import CANCELLED, end_now, leave, listen
from remora.errors import MissingExtra

__all__ = ["Command", "main"]


ALLOCATIONS = 50_000
"""Allocations after which Python searches for unreachable cycles; its default is 700. A command keeps most of what it
reads and makes few cycles, and searching that often takes a tenth of a report's time."""


def main() -> None:
    """Run the `remora` command."""
    gc.set_threshold(ALLOCATIONS, 20, 20)
    try:
        _prepare_streams()
        listen()
        _run()
    except KeyboardInterrupt:
        end_now()
    except SystemExit as ended:
        if ended.code == CANCELLED:
            end_now()
        raise
    finally:
        leave()


def _prepare_streams() -> None:
    """Let every text be written: UTF-8 to files and pipes, and what a terminal cannot show as `?`.

    A stream that the caller closed becomes an empty one.
    """
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 (open until the end)
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")


def _run() -> None:
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        missing = MissingExtra("The `remora` command", extra="agents")
        sys.stderr.write(f"error: {missing.message}\nhint: {missing.hint}\n")
        raise SystemExit(3) from None
    from remora.cli._main import run

    run()
