"""How far a long command is: told on stderr, to a person, and to no one else."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from remora.cli import _progress


@pytest.mark.parametrize(
    ("terminal", "quiet", "moment", "shown"),
    [(True, False, 0, True), (True, True, 0, False), (False, False, 0, False), (True, False, 3600, False)],
)
def test_a_bar_is_shown_only_at_a_terminal_after_a_moment_and_never_beside_json(
    terminal: bool, quiet: bool, moment: float, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = io.StringIO()
    monkeypatch.setattr(_progress, "err", Console(file=told, force_terminal=terminal, width=80))
    monkeypatch.setattr(_progress, "DELAY_S", moment)
    with _progress.delayed_progress(quiet=quiet) as progress:
        for done in range(4):
            progress("accept", done, 4)
    assert ("accept" in told.getvalue()) == shown
