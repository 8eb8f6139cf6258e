"""How fast events become a packet, however much is known."""

from __future__ import annotations

import gc
from typing import Any

from benchmarks.measure import rate, say
from benchmarks.short.run import Plan, results
from remora.context.projection import project


def measure(plan: Plan) -> list[dict[str, Any]]:
    """One row for each number of knowledge keys."""
    return [_case(plan.sizes["results"], keys, plan.sizes["passes"]) for keys in plan.sizes["keys"]]


def _case(count: int, keys: int, passes: int) -> dict[str, Any]:
    say(f"folding: {count:,} tool results, {keys:,} keys")
    events = results(count, keys)
    gc.collect()
    gc.freeze()  # they stay, so collecting must not look at them again and again
    cpu, wall = rate(lambda: project(events), passes)
    gc.unfreeze()
    assert len(project(events).knowledge) == min(count, keys)
    return {"results": count, "keys": keys, "per_s": round(count / cpu), "per_s_wall": round(count / wall)}
