"""What a long run sends: prompts that stay as they are, beside chat history that grows."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks.measure import say
from benchmarks.short.run import SYSTEM, Plan, run_loop
from remora.analysis import token_report
from remora.events import canonical
from remora.ports import TokenCounter

OUTPUT_KB = 0.5


def measure(plan: Plan) -> list[dict[str, Any]]:
    """For each counter, the turns that are compared."""
    return [row for counter in plan.counters for row in _case(plan.sizes["turns"], plan.sizes["cycle"], counter)]


def _case(turns: int, cycle: int, counter: TokenCounter) -> list[dict[str, Any]]:
    say(f"long: {turns:,} turns, {counter.name}")
    events = asyncio.run(run_loop(turns, cycle, OUTPUT_KB, counter))
    report = token_report(events, SYSTEM, lambda event: canonical(event.raw).decode(), counter)
    rows = {row.turn: row for row in report.rows}
    return [
        {
            "counter": counter.name,
            "exact": counter.exact,
            "turn": turn,
            "packet_tokens": rows[turn].packet,
            "turn_digits": counter.count(str(turn)),
            "history_tokens": rows[turn].history,
            "limit": rows[turn].limit,
        }
        # The tool's outputs come round again, so that these turns look back on the same ones.
        for turn in (cycle, turns // 2 // cycle * cycle, turns)
    ]
