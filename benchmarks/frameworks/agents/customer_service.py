"""The airline of the OpenAI Agents SDK's examples, loaded from its source distribution: `examples/customer_service`.

The three agents, their handoffs and their tools are theirs, unchanged. A script is the customer and the model.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

from agents.testing import ScriptedModel, assistant_message, function_call
from agents.version import __version__
from recorder import Recorder

from agents import RunConfig, Runner

SEATS = ("4A", "5C", "7F", "12D", "16B", "22E", "9A", "14C")
FAQ, BOOKING, TRIAGE = (f"transfer_to_{name}_agent" for name in ("faq", "seat_booking", "triage"))


def example() -> Any:
    """The example's module. The source distribution is kept beside the environment."""
    home = Path(sys.prefix) / "examples"
    if not (folder := home / f"openai_agents-{__version__}").exists():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
        wanted = ["--no-binary", "openai-agents", "-d", str(home), f"openai-agents=={__version__}"]
        subprocess.run([*pip, *wanted], check=True, stdout=sys.stderr)
        with tarfile.open(home / f"openai_agents-{__version__}.tar.gz") as packed:
            packed.extractall(home, filter="data")
    sys.path.append(str(folder))
    path = folder / "examples" / "customer_service" / "main.py"
    spec: Any = importlib.util.spec_from_file_location("customer_service_example", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def confirmation(number: int) -> str:
    return f"CNF{(number * 7919 + 1234) % 90000 + 10000}"


def conversation() -> list[tuple[str, list[Any]]]:
    """What the customer says, and what a model with good sense does then: calls, and an answer."""
    talk: list[tuple[str, list[Any]]] = []
    topics = ("How large may my bag be?", "Is there wifi on the plane?", "How many seats does the plane have?")
    for number, seat in enumerate(SEATS):
        code, question = confirmation(number), topics[number % 3]
        talk.append(
            (f"Hello. {question}", [(FAQ, {}), ("faq_lookup_tool", {"question": question}), "As the FAQ says."])
        )
        seat_wish = f"Passenger {number + 1}: the confirmation number is {code}."
        talk.append((seat_wish, [(TRIAGE, {}), (BOOKING, {}), "Which seat would you like?"]))
        booked = ("update_seat", {"confirmation_number": code, "new_seat": seat})
        talk.append((f"Seat {seat}, please.", [booked, f"Seat {seat} is yours."]))
        if number >= 4:
            first, other = confirmation(number - 4), f"{number + 1}B"
            again = ("update_seat", {"confirmation_number": first, "new_seat": other})
            talk.append((f"Move passenger {number - 3} to {other}, too.", [again, "Done."]))
        talk.append(("Back to the start, please.", [(TRIAGE, {}), "How can I help?"]))
    return talk


async def main() -> None:
    recorder, service = Recorder(), example()
    steps = [step for _, several in conversation() for step in several]
    model = ScriptedModel(
        [assistant_message(step)] if isinstance(step, str) else [function_call(*step, call_id=f"call_{number}")]
        for number, step in enumerate(steps)
    )
    agent, items, context = service.triage_agent, [], service.AirlineAgentContext()
    for said, _ in conversation():
        items.append({"role": "user", "content": said})
        result = await run(recorder, agent, items, context, RunConfig(model=model))
        items, agent = result.to_input_list(), result.last_agent
    for step, call in zip(steps, model.calls, strict=True):
        messages = [text_of(item) for item in call.input]
        tools = [[tool.name, tool.description, getattr(tool, "params_json_schema", {})] for tool in call.tools]
        tools += [[each.tool_name, each.tool_description, each.input_json_schema] for each in call.handoffs]
        recorder.request(call.system_instructions or "", messages, tools, [] if isinstance(step, str) else [step[1]])
    recorder.save()


async def run(recorder: Recorder, agent: Any, items: list[Any], context: Any, config: RunConfig) -> Any:
    if recorder.settings is None:
        return await Runner.run(agent, items, context=context, run_config=config)
    from remora.integrations.openai_agents import TwoTracks

    async with TwoTracks("customer-1", **recorder.settings) as two:
        return await Runner.run(two.agent(agent), items, context=context, hooks=two, run_config=two.run_config(config))


def text_of(item: Any) -> str:
    if item.get("type") == "function_call":
        return f"{item['name']} {item['arguments']}"
    content = item.get("output") or item.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


asyncio.run(main())
