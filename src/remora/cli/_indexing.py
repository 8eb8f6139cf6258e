"""Progress bar for updating the stream index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from remora.cli._console import err

if TYPE_CHECKING:
    from remora.app._project import Project

_LONG = 8 * 1024 * 1024
"""Bytes of streams above which a bar is shown. Fewer are read at once."""


@contextmanager
def indexing_progress(opened: Project, *, quiet: bool = False) -> Iterator[None]:
    """Show a progress bar on a terminal while the index reads many streams."""
    with ExitStack() as stack:
        bar: list[Callable[[int], None]] = []

        def update(done: int, total: int) -> None:
            if total >= _LONG and not bar:
                bar.append(stack.enter_context(_bar(total)))
            for advance in bar:
                advance(done)

        opened.indexing = update if err.is_terminal and not quiet else None
        yield


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn  # slow to import

    columns = (TextColumn("reading streams into the index"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=err, transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda done: shown.update(task, completed=done)
