"""Suites with agents of their own: what their agents are called, and their tasks run with prompts that are kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from inference.real import smollm2
from remora.events import Call
from remora.ports import Prompt
from remora.subagent import SUBMIT_RESULT_TOOL
from remora_lab.bench.bench import BenchPlan, make_environment, run_bench, trials
from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.oracle import Oracle
from remora_lab.bench.results import Result
from remora_lab.bench.rows import ROWS
from remora_lab.bench.suite import Suite, read_suite
from remora_lab.bench.tasks import Task
from remora_lab.train.synthetic._scenarios import scenarios

ROOT = Path(__file__).parents[3]
SYNTHETIC = ROOT / "lab" / "src" / "remora_lab" / "train" / "synthetic"
BUNDLED = sorted(path for path in (ROOT / "agents").iterdir() if (path / "subagent.yaml").is_file())
SYSTEM = {"target_file", "node_text", "node_lines", "workspace_id"}
CONTRACT = {
    "result", "summary", "knowledge_delta", "outcome", "error", "candidate_actions", "excerpts", "tool", "args",
    "reason", "label", "text", "start_line",
}  # fmt: skip
"""Keys that every tool gives."""


def suite_of(name: str) -> Suite:
    """A suite of `benchmarks` that has agents of its own."""
    return read_suite(ROOT / "benchmarks" / name)


def agents_of(suite: Suite) -> list[Path]:
    return sorted((suite.folder / "agents").iterdir())


def hardest_tasks(suite: Suite) -> list[Task]:
    """The task of each agent with the longest solution."""
    names = [agent.name for agent in agents_of(suite)]
    return [max((t for t in suite.tasks if t.operation == name), key=lambda t: len(str(t.solution))) for name in names]


def parsed(script: Path) -> ast.Module:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(script.read_text(encoding="utf-8"), str(script), "exec", flags)
    assert isinstance(tree, ast.Module)
    return tree


def titles(agent: Path) -> set[str]:
    """What an agent and its tools are called."""
    definition = yaml.safe_load((agent / "subagent.yaml").read_text(encoding="utf-8"))
    return {definition["name"], *(tool["name"] for tool in definition["tools"])}


def names(agent: Path) -> set[str]:
    """What an agent, its tools and their arguments are called, and every key of what its tools give."""
    found = titles(agent)
    for script in (path for path in agent.rglob("*") if path.suffix in (".py", ".pym")):
        for node in ast.walk(parsed(script)):
            found |= set(_inputs(node)) | set(_keys(node))
    return found - SYSTEM - CONTRACT


def _inputs(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Input":
        yield ast.literal_eval(node.args[0])


def _keys(node: ast.AST) -> Iterator[str]:
    for key in node.keys if isinstance(node, ast.Dict) else ():
        if isinstance(key, ast.Constant):
            yield str(key.value)


def trained_words() -> set[str]:
    """Every word that made-up agents are named with, and every key that their packets have."""
    found = set(re.findall(r"[a-z]+", (SYNTHETIC / "words.txt").read_text(encoding="utf-8").lower()))
    for module in SYNTHETIC.glob("*.py"):
        texts = [node.value for node in ast.walk(ast.parse(module.read_bytes())) if isinstance(node, ast.Constant)]
        found |= {text for text in texts if isinstance(text, str) and re.fullmatch(r"[a-z_]+", text)}
    return found


def trained_names() -> set[str]:
    """What agents of scenarios and their tools are called, and every argument and key that they have."""
    found = set()
    for scenario in scenarios().values():
        found |= {scenario.name, scenario.look.name, scenario.pile, *scenario.values}
        for case in scenario.cases:
            found |= {case.tool, *case.takes, *case.facts}
    return found


class Watched(Oracle):
    """An oracle that keeps the prompt of each turn, and what it called."""

    turns: list[tuple[Prompt, Call]]

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.turns = []

    async def decide(self, prompt: Prompt) -> Any:
        decided = await super().decide(prompt)
        self.turns.append((prompt, decided.calls[0]))
        return decided


async def tried(
    suite: Suite, tasks: Sequence[Task], row: str, folder: Path
) -> tuple[list[Result], list[tuple[Prompt, Call]]]:
    watched: list[Watched] = []

    def oracle(task: Task) -> Watched:
        watched.append(Watched(task))
        return watched[-1]

    asked = BenchPlan(list(tasks), [ROWS[row]], [CONTROLS["none"]], 1)
    smollm2()  # its tokenizer counts: an estimate is larger, and the prompts would not fit
    place = make_environment(folder / "r.jsonl", suite.agents, oracle)
    results = [one async for one in run_bench(trials(asked), asked.models, place, keep=lambda one: None)]
    return results, [turn for one in watched for turn in one.turns]


def unshown(prompt: Prompt, call: Call) -> list[Any]:
    """Arguments that stand nowhere in what was said, but for the words of a submission."""
    said = "\n".join(str(message["content"]) for message in prompt.messages)
    given = [] if call.tool == SUBMIT_RESULT_TOOL else list(call.args.values())
    return [value for value in given if not re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", said)]


async def solvable_by_what_is_shown(suite: Suite, tasks: Sequence[Task], folder: Path) -> None:
    results, turns = await tried(suite, tasks, "oracle", folder)
    assert [(one.task, one.problems) for one in results if not one.solved] == []
    assert all(one.own_agent and one.right_calls == one.asked > 0 and one.largest_prompt <= 1000 for one in results)
    assert [(call, missing) for prompt, call in turns if (missing := unshown(prompt, call))] == []
    # Where one call alone is offered, nobody has to decide anything.
    assert sum(len(prompt.candidates) != 1 for prompt, _ in turns) >= len(turns) / 3
