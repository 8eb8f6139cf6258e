"""How long a prompt takes to make, however much is known."""

from __future__ import annotations

import gc
import statistics
import time
from typing import Any

from benchmarks.loop import SYSTEM_PROMPT, TOOLS
from benchmarks.measure import say
from benchmarks.short.run import Plan, p95, results
from remora.context.models import DecisionPacket
from remora.context.projection import project
from remora.context.render import render
from remora.events import AgentStartEvent
from remora.ports import TokenCounter

START = AgentStartEvent(goal="Fix lint errors in src/shop/order.py:load", operation="lint", node_id="src/order.py:load")


def measure(plan: Plan) -> list[dict[str, Any]]:
    """One row for each counter, number of entries and limit."""
    packets = {entries: _packet(entries) for entries in plan.sizes["entries"]}
    return [
        _case(packet, counter, limit, max(2, plan.sizes["passes"] // max(1, entries // 250)))
        for counter in plan.counters
        for entries, packet in packets.items()
        for limit in plan.sizes["limits"]
    ]


def _packet(entries: int) -> DecisionPacket:
    """Ten actions, so many entries."""
    packet = project([START, *results(entries, entries)])
    assert len(packet.recent_actions) == 10
    return packet


def _case(packet: DecisionPacket, counter: TokenCounter, limit: int, passes: int) -> dict[str, Any]:
    entries = len(packet.knowledge)
    say(f"rendering: {entries:,} entries, {limit:,} tokens, {counter.name}")
    walls, cpus, tokens = [], [], 0
    gc.collect()
    gc.freeze()
    for _ in range(max(passes, 5)):
        cpu, wall = time.process_time(), time.perf_counter()
        made = render(packet, system_prompt=SYSTEM_PROMPT, tools=TOOLS, limit=limit, counter=counter)
        walls.append(1000 * (time.perf_counter() - wall))
        cpus.append(1000 * (time.process_time() - cpu))
        tokens = made.tokens["total"]
    gc.unfreeze()
    return {
        "counter": counter.name,
        "exact": counter.exact,
        "entries": entries,
        "limit": limit,
        "tokens": tokens,
        "median_ms": round(statistics.median(walls), 2),
        "p95_ms": round(p95(walls), 2),
        "p95_cpu_ms": round(p95(cpus), 2),
    }
