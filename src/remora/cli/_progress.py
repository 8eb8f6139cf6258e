"""Progress bar for commands that read or write many streams."""

from __future__ import annotations

import time
from typing import Literal, Self

from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from remora.cli._console import err
from remora.context.text import visible

DELAY_S = 0.5


def time_left(seconds: float | None) -> str:
    """An estimate of remaining seconds, for people; empty if there is none."""
    if seconds is None:
        return ""
    if seconds < ROUND_S:
        return f"about {max(1, round(seconds))} s left"
    minutes = round(seconds / 60)
    return f"about {minutes} min left" if minutes < ROUND_S else f"about {minutes // 60} h {minutes % 60} min left"


ROUND_S = 90
"""From here on, seconds are shown as minutes, and minutes as hours."""


class delayed_progress:  # noqa: N801 - used as a block, like a function
    """Progress bar on stderr after half a second: `with delayed_progress() as progress: work(progress)`."""

    def __init__(self, *, quiet: bool = False, unit: Literal["items", "bytes"] = "items") -> None:
        """With `quiet`, or without a terminal, no bar is shown."""
        counts = MofNCompleteColumn() if unit == "items" else DownloadColumn()
        words = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", max_width=24))
        columns = (words, BarColumn(bar_width=16), counts, TimeElapsedColumn(), TimeRemainingColumn(compact=True))
        self._bar = Progress(*columns, console=err, transient=True)
        self._task = self._bar.add_task("", total=None)
        self._shown = not quiet and err.is_terminal
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar.live.is_started:  # stopping a bar that never started prints an empty line
            self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Update the bar."""
        if self._shown and time.monotonic() - self._started > DELAY_S:
            self._bar.start()
            self._bar.update(self._task, description=escape(visible(what)), completed=done, total=total)
