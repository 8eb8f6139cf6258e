"""Two agents of the OpenAI Agents SDK that hand off to each other, as its own customer service example does."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

from agents.testing import ScriptedModel, assistant_message, function_call

from agents import Agent, RunConfig, Runner, function_tool, handoff
from remora.integrations.openai_agents import TwoTracks


@function_tool
def book(seat: str) -> str:
    """Book a seat."""
    return f"Seat {seat} is booked as BK-7712"


async def main(out: Path) -> None:
    model = ScriptedModel(
        [
            [function_call("transfer_to_booking", {}, call_id="c1")],
            [function_call("book", {"seat": "12C"}, call_id="c2")],
            [function_call("transfer_to_triage", {}, call_id="c3")],
            [assistant_message("Booked.")],
            [assistant_message("It is BK-7712.")],
        ]
    )
    triage: Any = Agent("triage", instructions="Delegate.")
    booking: Any = Agent("booking", instructions="Book.", tools=[book], handoffs=[triage])
    triage.handoffs.append(handoff(booking))
    agent, items = triage, [{"role": "user", "content": "Seat 12C, please."}]
    for said in ("Seat 12C, please.", "Under which number?"):
        items = [*items[:-1], {"role": "user", "content": said}]
        async with TwoTracks("customer-1", state_dir=out / "state") as two:
            given = {"hooks": two, "run_config": two.run_config(RunConfig(model=model))}
            result = await Runner.run(two.agent(agent), items, **given)
        items, agent = [*result.to_input_list(), {}], result.last_agent
    offered = [[each.tool_name for each in call.handoffs] + [tool.name for tool in call.tools] for call in model.calls]
    told = {"offered": offered, "last": str(model.calls[-1].input), "agent": result.last_agent.name}
    (out / "told.json").write_text(json.dumps(told))


asyncio.run(main(Path(sys.argv[1])))
