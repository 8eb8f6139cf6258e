"""Row 28: the embedded model's process crashes or hangs at random moments. A real model, killed by the system."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Callable

import pytest

from inference.real import smollm2
from inference.test_embedded import TOOLS, _lives
from remora.errors import DecisionError
from remora.inference import PRESETS, EmbeddedPolicy, EmbeddedServer, Endpoint
from remora.ports import Prompt

FAULTS = 100
LIKE = Endpoint(PRESETS["llamacpp"], "", mode="json", max_tokens=24, deadline_s=5.0)
ASKED = {"role": "user", "content": 'Answer {"tool": "run_linter", "args": {}}'}
PROMPT = Prompt(messages=(ASKED,), tools=TOOLS[:2], turn=1)


@pytest.mark.faults
async def test_crashes_and_hangs_end_in_a_decision_or_a_typed_error_and_leave_no_child(
    record_property: Callable[[str, object], None],
) -> None:
    chance, seen, struck = random.Random(28), Counter[str](), list[int]()
    server = EmbeddedServer(smollm2(), context=512)
    async with EmbeddedPolicy(server, LIKE) as policy:
        while len(struck) < FAULTS:
            request = asyncio.create_task(policy.decide(PROMPT))
            # From before the child listens until after its reply.
            await asyncio.sleep(chance.uniform(0.0, 2.0))
            if server._child is not None:
                struck.append(server._child.process.pid)
                os.kill(struck[-1], chance.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP]))
            seen[await _ending(request)] += 1
            if server._failures >= 4:
                server.worked()  # the limit has a test of its own
    assert [pid for pid in struck if _lives(pid)] == []
    record_property(
        "row 28", f"{len(struck)} crashes and hangs of {len(set(struck))} children: {dict(seen)}; none left"
    )


async def _ending(request: asyncio.Task[object]) -> str:
    try:
        await asyncio.wait_for(request, 60)
    except DecisionError as error:
        return error.code
    return "decision"
