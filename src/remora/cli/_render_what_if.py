"""Prints what other rules would have made of recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from remora.cli._console import out, say
from remora.events import short_id

if TYPE_CHECKING:
    from remora.analysis import ChangedPrompt, PromptFigures, WhatIf

WIDE = 104
"""Columns of a line with all figures."""
MAX_WORDS = 8
"""Words that a line names; the others are counted."""


def what_if(rows: Sequence[WhatIf], total: WhatIf) -> None:
    """Print a line for each run with changed prompts, the totals, and the differences if they were asked for."""
    if not total.prompts:
        say("No prompt was compared")
        return
    if rows:
        say(f"{_name('agent', 'operation')} {'prompts':>7} {'changed':>7}{_break()}{_HEAD}", "bold")
    for row in rows:
        name = _name(short_id(row.agent_id), row.operation or "-")
        say(f"{name} {row.prompts:>7,} {row.changed:>7,}{_break()}{_line(row)}")
        for change in row.changes:
            _change(change)
    say(f"{_name('total', '')} {total.prompts:>7,} {total.changed:>7,}{_break()}{_line(total)}", "bold")
    _notes(rows, total)


_HEAD = f"{'tokens':>21} {'':>6}  {'recall':^15}  {'grounded':^13}"


def _name(agent: str, operation: str) -> str:
    return f"{agent:<9} {operation:<12.12}"


def _break() -> str:
    """Between the columns of a run and its figures: a new line in a narrow terminal."""
    return "  " if out.width >= WIDE else "\n     "


def _line(row: WhatIf) -> str:
    before, after = row.before, row.after
    growth = after.tokens / before.tokens - 1 if before.tokens else 0.0
    tokens = f"{before.tokens:>9,} → {after.tokens:>9,} {growth:>+6.0%}"
    if not before.scored:
        return f"{tokens}  {'-':^15}  {'-':^13}"
    grounded = f"{before.grounded_share:>5.1%} → {after.grounded_share:>5.1%}"
    return f"{tokens}  {before.recall:>6.3f} → {after.recall:>6.3f}  {grounded}"


def _change(change: ChangedPrompt) -> None:
    """The difference of one prompt, if it was asked for."""
    if not change.diff:
        return
    lost = f"; lost: {_words(change.lost)}" if change.lost else ""
    gained = f"; gained: {_words(change.gained)}" if change.gained else ""
    say(f"  turn {change.turn}: {change.tokens_before:,} → {change.tokens_after:,} tokens{lost}{gained}", "bold")
    for line in change.diff[2:]:
        say(f"    {line}", "green" if line.startswith("+") else "red" if line.startswith("-") else "")


def _words(words: Sequence[str]) -> str:
    more = len(words) - MAX_WORDS
    return ", ".join(words[:MAX_WORDS]) + (f" and {more} more" if more > 0 else "")


def _notes(rows: Sequence[WhatIf], total: WhatIf) -> None:
    if not total.changed:
        say(f"No prompt changes. Counted by {total.counter}")
        return
    say(f"{total.changed:,} of {total.prompts:,} prompts change. Counted by {total.counter}")
    others = {row.recorded_by for row in rows if row.recorded_by and row.recorded_by != row.counter}
    if others:
        names = ", ".join(sorted(others))
        say(f"Recorded prompts were cut by {names}: name its file with `--tokenizer` to count the same")
    if total.kept_results:
        say(f"{total.kept_results:,} results could not be read: what was distilled of them is kept")


def figures(row: WhatIf) -> dict[str, Any]:
    """The figures as JSON, with shares instead of sums."""
    rest = asdict(row)
    return rest | {"before": _figures(row.before), "after": _figures(row.after)}


def _figures(found: PromptFigures) -> dict[str, Any]:
    scored = bool(found.scored)
    return {
        "tokens": found.tokens,
        "recall": round(found.recall, 4) if scored else None,
        "grounded": round(found.grounded_share, 4) if scored else None,
        "scored_turns": found.scored,
    }
