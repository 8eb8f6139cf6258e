"""Print who decided what: moves between models, and the decisions of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from remora.cli._console import out, say
from remora.context.text import one_line

if TYPE_CHECKING:
    from remora.analysis import RungRow

MAX_NAME = 48
WIDE = 100
"""Columns from which the number of decisions is printed beside their share."""


def moves(lines: Iterable[str]) -> None:
    """Print each move between models."""
    for line in lines:
        say(f"Ladder {one_line(line, 180)}", hang=2)


def decisions(rows: Sequence[RungRow]) -> None:
    """Print the share of decisions, tokens and seconds of each model, if there is more than one."""
    if len(rows) < 2:
        return
    total = sum(row.decisions for row in rows)
    say("Who decided:")
    names = [one_line(row.rung, MAX_NAME) for row in rows]
    wide = max(map(len, names))
    for row, name in zip(rows, names, strict=True):
        undecided = f", {row.undecided} without a call" if row.undecided else ""
        percent = f"({row.decisions / total:.0%})"
        share = f"{row.decisions:>4} of {total} decisions {percent:>6}" if out.width >= WIDE else f"{percent:>6}"
        say(
            f" {name:<{wide}} {share}  "
            f"{row.prompt_tokens:>8,} tokens in  {row.reply_tokens:>7,} out  {row.seconds:>7.1f} s{undecided}",
            hang=wide + 4,
        )
