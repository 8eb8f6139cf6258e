"""The command line. Each command parses its arguments, calls one method of a `Project`, prints the result and exits."""

from __future__ import annotations

import gc
import sys

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
