"""`python -m benchmarks.runs`: what a run costs beside its model and its tools, alone and 64 at once."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.aims import at_most
from benchmarks.measure import business, folder, machine, now, say, versions
from remora.app import SystemClock, open_project
from remora.context.contracts import ToolSpec
from remora.events import Call, Event, ModelRequestEvent, ModelResponseEvent, ToolResultEvent
from remora.inference import EstimatedCounter
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import Decision, Prompt, ToolOutput
from remora.runner import RunLimits, Runner
from remora.subagent import SUBMIT_RESULT, SubagentDefinition
from remora.trace import FileBlobs, FileTrace
from remora.twotrack import Identity, PromptSettings, TwoTrack, Wiring

TURNS = 30
OUTPUT = {"errors": [{"code": "F401", "row": number, "message": "`os` imported but unused"} for number in range(60)]}
DEFINITION = SubagentDefinition(
    name="bench",
    goal="Fix {node}",
    system_prompt="Fix it.",
    tools=[{"name": "look", "effects": "none"}],
    max_turns=1000,
)
LINES = LineRange(first=1, last=2)
NODE = CodeNode(
    node_id="a.py:f",
    node_type=NodeType.FUNCTION,
    name="f",
    file_path=Path("a.py"),
    lines=LINES,
    owned=(LINES,),
    text="",
)


class Tools:
    """A tool that takes no time, and a workspace that nothing is written to."""

    specs = (ToolSpec(name="look", effects="none"),)

    def __init__(self) -> None:
        self.calls = 0

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        self.calls += 1
        told = {"summary": f"{self.calls} looked at", "knowledge_delta": {"left": self.calls}}
        return ToolOutput({"result": OUTPUT, "outcome": "success", **told})

    def take_changes(self) -> tuple[()]:
        return ()


class Policy:
    """Decides at once; or, while idle agents are counted, not at all."""

    name = "bench"

    def __init__(self, turns: int, waiting: asyncio.Event | None = None) -> None:
        self._turns, self._waiting = turns, waiting

    async def decide(self, prompt: Prompt) -> Decision:
        if self._waiting is not None:
            await self._waiting.wait()
        done = self._waiting is not None or prompt.turn > self._turns
        tool, args = (SUBMIT_RESULT.name, {"summary": "done"}) if done else ("look", {})
        return Decision((Call(call_id=f"c{prompt.turn}", tool=tool, args=args),))


def runner(state: Path, trace: FileTrace, number: int, policy: Policy) -> Runner:
    tools = Tools()
    track = TwoTrack.of(
        Wiring(
            identity=Identity(f"01AGENT{number:04}", "01RUN", "bench", NODE.node_id),
            goal="Fix a.py:f",
            tools=(*tools.specs, SUBMIT_RESULT),
            system_prompt="Fix it.",
            prompts=PromptSettings(1000),
            writer=trace,
            blobs=FileBlobs(state),
            counter=EstimatedCounter(),
            clock=SystemClock(),
        )
    )
    return Runner(
        track,
        DEFINITION,
        NODE,
        policy=policy,
        tools=tools,
        workspace=tools,
        limits=RunLimits(TURNS + 1, max_repeats=999),
    )


async def run_agents(state: Path, agents: int) -> tuple[float, float]:
    """CPU and wall seconds of so many agents at once, without syncs."""
    async with FileTrace(state, clock=SystemClock(), sync="off") as trace:
        runners = [runner(state, trace, number, Policy(TURNS)) for number in range(agents)]
        cpu, wall = process_time(), perf_counter()
        await asyncio.gather(*(one.run() for one in runners))
        return process_time() - cpu, perf_counter() - wall


def loop(passes: int, agents: int) -> dict[str, Any]:
    """One agent alone, and many at once, in turn."""
    say(f"runs: 1 and {agents} agents, {TURNS} turns each")
    alone, together, walls = [], [], []
    for _ in range(passes):
        with folder() as state:
            cpu, wall = asyncio.run(run_agents(state, 1))
            alone.append(cpu)
            walls.append(wall)
        with folder() as state:
            together.append(asyncio.run(run_agents(state, agents))[0] / agents)
    return {
        "turns": TURNS,
        "wall_ms_a_turn": round(1000 * min(walls) / TURNS, 2),
        "cpu_ms_a_turn": round(1000 * min(alone) / TURNS, 2),
        "agents": agents,
        "cpu_together_to_alone": round(median(together) / median(alone), 2),
    }


async def idle(agents: int) -> float:
    """Megabytes that each agent takes while its model thinks."""
    with folder() as state:
        async with FileTrace(state, clock=SystemClock(), sync="off") as trace:
            go = asyncio.Event()
            first = asyncio.create_task(runner(state, trace, 9999, Policy(TURNS, go)).run())
            await asyncio.sleep(0.2)
            gc.collect()
            before = rss()
            tasks = [asyncio.create_task(runner(state, trace, n, Policy(TURNS, go)).run()) for n in range(agents)]
            while (await asyncio.sleep(0.05)) or len(list((state / "traces").glob("*.jsonl"))) <= agents:
                pass
            await asyncio.sleep(0.5)
            gc.collect()
            grown = rss() - before
            go.set()
            await asyncio.gather(first, *tasks)
    return grown / agents


def rss() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def help_ms(passes: int) -> dict[str, float]:
    """The fastest of several `remora --help`, beside a Python that does nothing."""
    program = "from remora.cli import main; main()"

    def once(*words: str) -> float:
        began = perf_counter()
        subprocess.run([sys.executable, *words], capture_output=True, check=False)
        return 1000 * (perf_counter() - began)

    nothing = min(once("-c", "pass") for _ in range(passes))
    return {
        "help_ms": round(min(once("-c", program, "--help") for _ in range(passes)), 1),
        "python_ms": round(nothing, 1),
    }


def embedded(turns: int) -> dict[str, Any]:
    """A run of the lint agent on the embedded model: where its time went, by its own stream."""
    say(f"runs: {turns} turns on the embedded model")
    settings = {"server.server": "embedded", "runner.max_turns": turns, "runner.max_repeats": 999}
    settings |= {"runner.by_rule": False}  # what rules decide takes no time of a model
    with folder() as root:
        (root / "remora.yaml").touch()
        (root / "ruff.toml").write_text('lint.select = ["E", "F", "UP"]\n')
        (root / "load.py").write_text("import os, sys\n\n\ndef load(path):\n    if path == None:\n        return {}\n")
        project = open_project(root, settings | {"runner.max_errors": 999, "event_stream.sync": "off"})
        project.agents.load(["lint"])
        results = asyncio.run(project.runs.analyze([root / "load.py"], ["lint"]))
        longest = max(results, key=lambda result: result.turns)
        return shares(list(project.library.events(longest.agent_id)))


def shares(events: list[Event]) -> dict[str, Any]:
    """Seconds of a run by who took them."""
    model, asked = 0.0, 0.0
    for event in events:
        at = datetime.fromisoformat(event.ts).timestamp()
        if isinstance(event, ModelRequestEvent):
            asked = at
        elif isinstance(event, ModelResponseEvent):
            model += at - asked
    tools = sum(event.duration_ms / 1000 for event in events if isinstance(event, ToolResultEvent))
    whole = datetime.fromisoformat(events[-1].ts).timestamp() - datetime.fromisoformat(events[0].ts).timestamp()
    turns = sum(isinstance(event, ModelRequestEvent) for event in events)
    ours = whole - model - tools
    return {
        "turns": turns,
        "model_s": round(model, 2),
        "tools_s": round(tools, 2),
        "ours_s": round(ours, 3),
        "share": round(ours / whole, 4),
        "decision_s": round(model / turns, 2),
    }


def main() -> None:
    """Measure, judge, keep and show."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, to see that it runs")
    parser.add_argument("--embedded", action="store_true", help="also 30 turns on the embedded model")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "runs.json")
    options = parser.parse_args()
    busy = business()
    rows = loop(1, 4) if options.quick else loop(5, 64)
    rows |= {"idle_mb": round(asyncio.run(idle(8 if options.quick else 200)), 3)} | help_ms(3 if options.quick else 15)
    aims = [
        at_most("beside tools, a turn with a policy that decides at once", 10, [rows["wall_ms_a_turn"]], " ms"),
        at_most(
            f"CPU of an agent, {rows['agents']} at once against one alone", 1.2, [rows["cpu_together_to_alone"]], "×"
        ),
        at_most("memory of an idle agent", 2, [rows["idle_mb"]], " MB"),
        at_most("`remora --help`", 300, [rows["help_ms"]], " ms"),
    ]
    results: dict[str, Any] = {"when": now(), "machine": machine(), "versions": versions(), "busy_before": busy}
    results |= {"runs": rows, "aims": aims}
    if options.embedded:
        results["embedded"] = found = embedded(4 if options.quick else TURNS)
        aims.append(at_most("beside model and tools, share of a run on the embedded model", 0.05, [found["share"]]))
    results["busy_after"] = business()
    options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
