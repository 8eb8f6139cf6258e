"""How much of each prompt is the beginning of the one before it, so that a server's prefix cache can reuse it."""

from __future__ import annotations

import asyncio
import inspect
from itertools import pairwise, takewhile
from typing import Any

from benchmarks.measure import say
from benchmarks.short.run import SYSTEM, Plan, run_loop
from benchmarks.workload import output
from remora.context.render import MESSAGE_OVERHEAD
from remora.events import Event, ModelRequestEvent
from remora.ports import TokenCounter

OUTPUT_KB = 5


def measure(plan: Plan) -> list[dict[str, Any]]:
    """For each counter a run that shows no code, and one that shows the function it works on."""
    codes = {"no code": "", "the code it works on": inspect.getsource(output)}
    return [
        {"shows": shows} | _case(plan.sizes["turns"], counter, code)
        for counter in plan.counters
        for shows, code in codes.items()
    ]


def _case(turns: int, counter: TokenCounter, code: str) -> dict[str, Any]:
    say(f"prefix: {turns} turns, {counter.name}")
    events = asyncio.run(run_loop(turns, turns, OUTPUT_KB, counter, code))
    requests = [event for event in events if isinstance(event, ModelRequestEvent)]
    sent = sum(event.tokens["total"] for event in requests)
    reused = sum(_reusable(*pair, counter) for pair in pairwise(requests))
    system = len(requests) * (counter.count(SYSTEM) + MESSAGE_OVERHEAD)
    return {
        "counter": counter.name,
        "exact": counter.exact,
        "turns": turns,
        "prompt_tokens": sent,
        "reusable_tokens": reused,
        "reusable_share": round(100 * reused / sent, 1),
        "system_share": round(100 * system / sent, 1),
    }


def _reusable(before: ModelRequestEvent, after: ModelRequestEvent, counter: TokenCounter) -> int:
    """Tokens up to the first character that differs; the token that it would be in is not counted."""
    pairs = zip(_user(before), _user(after), strict=False)
    shared = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return counter.count(SYSTEM) + MESSAGE_OVERHEAD + max(0, counter.count(shared) - 1)


def _user(event: Event) -> str:
    assert isinstance(event, ModelRequestEvent)
    return str(event.messages[-1]["content"])
