"""How long a decision of the embedded model takes, with its weights as they are fetched and as they are served.

Prompts are those of real runs over tasks of the suite, with no turn decided by rule. Both servers are asked each of
them, one after the other, so that what else the machine does falls on both. From the second turn of a run on, the
beginning of the prompt is known.

With `--model NAME`, another model of the catalogue is asked its own prompts: how long its first decision takes with
loading, the first one of each agent, and later ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.aims import at_most
from benchmarks.measure import business, folder, machine, now, say, versions
from remora.app import Deciders, Project, RunOverrides, deciders, ensure_weights, served_weights, weights_counter
from remora.config import Config, RunnerConfig, ServerConfig
from remora.errors import ReplyInvalid
from remora.inference import Adapter, EmbeddedPolicy, EmbeddedServer, FirstCandidatePolicy, bundled_adapter
from remora.ports import Decision, Prompt
from remora.subagent import SubagentDefinition, ToolEntry
from remora_lab.bench.suite import read_suite, select_tasks
from remora_lab.bench.tasks import Task
from remora_lab.bench.trial import write_task

TASKS = 12
WINDOW = 4096
DEFINITION = SubagentDefinition(name="any", goal="g", system_prompt="s", tools=(ToolEntry(name="t"),))
"""Stands for every agent: the model is asked with the same adapter for all."""


@dataclass(frozen=True)
class Asked:
    """A prompt of a run."""

    operation: str
    turn: int
    prompt: Prompt


class Noting:
    """Takes the first candidate, and keeps what it was asked."""

    name = "first-candidate"

    def __init__(self, operation: str, kept: list[Asked]) -> None:
        self._operation, self._kept, self._first, self._turn = operation, kept, FirstCandidatePolicy(), 0

    async def decide(self, prompt: Prompt) -> Decision:
        self._turn += 1
        self._kept.append(Asked(self._operation, self._turn, prompt))
        return await self._first.decide(prompt)


async def prompts(count: int) -> list[Asked]:
    """What agents on so many tasks are asked, in the order of their turns."""
    suite = read_suite(Path(__file__).parent / "tasks")
    kept: list[Asked] = []
    async with deciders(ServerConfig(server="first-candidate")) as found:
        counter = weights_counter(ServerConfig())
        for task in select_tasks(suite, "eval", (), count):
            await _run(task, replace(found, counter=counter or found.counter), kept)
    return kept


async def _run(task: Task, found: Deciders, kept: list[Asked]) -> None:
    with folder() as place:
        root = place / "project"
        write_task(task, root)
        app = Project(root, place / "state", Config(runner=RunnerConfig(by_rule=False)))
        wanted = f"{task.path}:{task.node}" if task.node else task.path
        plan = app.runs.plan([root / task.path], [task.operation], lambda node: node.node_id == wanted)
        noting = Noting(task.operation, kept)
        async for _ in app.runs.run(plan, overrides=RunOverrides(replace(found, policy=lambda _: noting))):
            pass


async def times(asked: list[Asked], threads: int) -> dict[str, list[float]]:
    """Seconds of each decision, by the weights that were asked."""
    source, adapter = ensure_weights(ServerConfig()), bundled_adapter()
    files = {"as fetched": source, "as served": served_weights(ServerConfig())}
    took: dict[str, list[float]] = {name: [] for name in files}
    async with AsyncExitStack() as open_:
        models = {}
        for name, gguf in files.items():
            server = EmbeddedServer(gguf, context=WINDOW, threads=threads, adapters=[adapter.path] if adapter else [])
            models[name] = await open_.enter_async_context(
                EmbeddedPolicy(server, adapter=Adapter(0) if adapter else None)
            )
        for number, each in enumerate(asked):
            for name in list(models) if number % 2 else reversed(models):
                began = perf_counter()
                await models[name].decide(each.prompt)
                took[name].append(perf_counter() - began)
    return took


async def model_times(name: str, count: int, threads: int) -> dict[str, Any]:
    """Seconds of the decisions of a model of the catalogue: cold, the first of an agent, and warm ones."""
    suite = read_suite(Path(__file__).parent / "tasks")
    kept: list[Asked] = []
    took: list[float] = []
    written: list[int] = []
    async with deciders(ServerConfig(model=name, threads=threads)) as found:
        tasks = select_tasks(suite, "eval", (), count)
        for task in tasks:
            await _run(task, found, kept)
        policy = found.policy(DEFINITION)
        for each in kept:
            began = perf_counter()
            try:
                usage = (await policy.decide(each.prompt)).usage
            except ReplyInvalid as error:
                usage = error.usage
            took.append(perf_counter() - began)
            written.append(int(usage.get("completion_tokens", 0)))
            say(f"{len(took)} of {len(kept)}: {took[-1]:.1f} s")
    first = [time for time, each in zip(took[1:], kept[1:], strict=True) if each.turn == 1]
    warm = [time for time, each in zip(took, kept, strict=True) if each.turn > 1]
    return {
        "model": name,
        "cold_s": round(took[0], 1),
        "first_of_an_agent_s": _spread(first),
        "warm_s": _spread(warm),
        "reply_tokens": statistics.median(written),
    }


def _spread(times: list[float]) -> dict[str, float]:
    return {
        "decisions": len(times),
        "median": round(statistics.median(times), 1) if times else 0.0,
        "least": round(min(times, default=0.0), 1),
        "most": round(max(times, default=0.0), 1),
    }


def medians(asked: list[Asked], took: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Medians, over warm turns of all operations and of each."""
    rows = []
    for operation in ("all", *sorted({each.operation for each in asked})):
        places = [place for place, each in enumerate(asked) if each.turn > 1 and operation in ("all", each.operation)]
        if not places:  # its runs end with their first turn
            continue
        slow, fast = ([took[name][place] for place in places] for name in ("as fetched", "as served"))
        rows.append(
            {
                "operation": operation,
                "decisions": len(places),
                "fetched_s": round(statistics.median(slow), 2),
                "served_s": round(statistics.median(fast), 2),
                "served_p90_s": round(statistics.quantiles(fast, n=10)[-1], 2) if len(fast) > 1 else round(fast[0], 2),
                "faster": round(statistics.median(one / other for one, other in zip(slow, fast, strict=True)), 2),
            }
        )
    return rows


def main() -> None:
    """Measure, judge, keep and show."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--model", default="", help="a larger model of the catalogue; its figures are only printed")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "decisions.json")
    options = parser.parse_args()
    busy = business()
    if options.model:
        figures = asyncio.run(model_times(options.model, options.tasks, options.threads))
        about = {"when": now(), "machine": machine(), "versions": versions(), "threads": options.threads}
        print(json.dumps(about | figures | {"busy_before": busy, "busy_after": business()}, indent=2))
        return
    asked = asyncio.run(prompts(options.tasks))
    say(f"decisions: {len(asked)} prompts of {options.tasks} tasks, {options.threads} threads, twice each")
    rows = medians(asked, asyncio.run(times(asked, options.threads)))
    aims = [at_most("a decision with a warm beginning, median", 1.5, [rows[0]["served_s"]], " s")]
    results = {
        "when": now(), "machine": machine(), "versions": versions(), "threads": options.threads, "decisions": rows,
        "aims": aims, "busy_before": busy, "busy_after": business(),
    }  # fmt: skip
    options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
