"""Print a transcript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from remora.cli._console import say

if TYPE_CHECKING:
    from remora.analysis import Entry

_TITLES = {"prompt": "prompt", "reply": "reply", "call": "call", "result": "result", "output": "output of"}


def transcript(entries: Sequence[Entry]) -> None:
    """Print each entry under a heading with its kind and `seq`."""
    turn = 0
    for entry in entries:
        if entry.turn != turn:
            turn = entry.turn
            say(f"\n=== turn {turn} ===", "bold")
        title = " ".join(part for part in (_TITLES.get(entry.kind, entry.kind), entry.who) if part)
        say(f"--- {title} · {f'seq {entry.seq}' if entry.seq >= 0 else 'built now, not recorded'}", "bold")
        if entry.text:
            say(entry.text)
        if entry.left_out:
            say(f"… {entry.left_out:,} more characters: --full shows them", "yellow")
