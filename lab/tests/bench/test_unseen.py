"""The suite of agents never trained on: their names are new, and their tasks need what is shown and a decision."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.generator import part
from inference.real import smollm2
from remora.events import Call
from remora.ports import Prompt
from remora.subagent import SUBMIT_RESULT_TOOL
from remora_lab.bench.bench import BenchPlan, make_environment, run_bench, trials
from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.oracle import Oracle
from remora_lab.bench.results import Result
from remora_lab.bench.rows import ROWS
from remora_lab.bench.suite import read_suite
from remora_lab.bench.tasks import Task
from remora_lab.train.synthetic._scenarios import scenarios

ROOT = Path(__file__).parents[3]
SYNTHETIC = ROOT / "lab" / "src" / "remora_lab" / "train" / "synthetic"
SUITE = read_suite(ROOT / "benchmarks" / "unseen")
TASKS = list(SUITE.tasks)
AGENTS = sorted((ROOT / "benchmarks" / "unseen" / "agents").iterdir())
PLAIN = [agent for agent in AGENTS if agent.name in ("changelog", "dependencies", "dotenv", "readme")]
"""Written in the words that come to mind, as a user would: single words may be known, tools are not."""
BUNDLED = sorted(path for path in (ROOT / "agents").iterdir() if (path / "subagent.yaml").is_file())
HARDEST = [max((t for t in TASKS if t.operation == a.name), key=lambda t: len(str(t.solution))) for a in AGENTS]
SYSTEM = {"target_file", "node_text", "node_lines", "workspace_id"}
CONTRACT = {
    "result", "summary", "knowledge_delta", "outcome", "error", "candidate_actions", "excerpts", "tool", "args",
    "reason", "label", "text", "start_line",
}  # fmt: skip
"""Keys that every tool gives."""


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


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent not in PLAIN], ids=lambda path: path.name)
def test_no_name_argument_or_key_is_one_that_was_trained_on(agent: Path) -> None:
    assert len(names(agent)) > 8
    assert names(agent) & set().union(*map(names, BUNDLED)) == set()
    known = trained_words() | {word for name in trained_names() for word in name.split("_")}
    assert {word for name in names(agent) for word in name.split("_")} & known == set()


@pytest.mark.parametrize("agent", PLAIN, ids=lambda path: path.name)
def test_an_agent_in_plain_words_has_no_tool_that_was_trained_on(agent: Path) -> None:
    assert len(titles(agent)) > 4
    assert titles(agent) & set().union(trained_words(), trained_names(), *map(titles, BUNDLED)) == set()


def test_the_committed_suite_is_what_the_generator_makes() -> None:
    main = part("__main__", "unseen")
    assert (main.FOLDER / "eval.jsonl").read_bytes() == main.encoded()
    told = {agent.name: sum(task.operation == agent.name for task in TASKS) for agent in AGENTS}
    assert told == {
        "backlog": 8, "changelog": 12, "copyright": 8, "dependencies": 10, "dotenv": 12, "facade": 8, "readme": 10,
    }  # fmt: skip


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


async def tried(tasks: list[Task], row: str, folder: Path) -> tuple[list[Result], list[tuple[Prompt, Call]]]:
    watched: list[Watched] = []

    def oracle(task: Task) -> Watched:
        watched.append(Watched(task))
        return watched[-1]

    asked = BenchPlan(tasks, [ROWS[row]], [CONTROLS["none"]], 1)
    smollm2()  # its tokenizer counts: an estimate is larger, and the prompts would not fit
    place = make_environment(folder / "r.jsonl", SUITE.agents, oracle)
    results = [one async for one in run_bench(trials(asked), asked.models, place, keep=lambda one: None)]
    return results, [turn for one in watched for turn in one.turns]


def unshown(prompt: Prompt, call: Call) -> list[Any]:
    """Arguments that stand nowhere in what was said, but for the words of a submission."""
    said = "\n".join(str(message["content"]) for message in prompt.messages)
    given = [] if call.tool == SUBMIT_RESULT_TOOL else list(call.args.values())
    return [value for value in given if not re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", said)]


async def solvable_by_what_is_shown(tasks: list[Task], folder: Path) -> None:
    results, turns = await tried(tasks, "oracle", folder)
    assert [(one.task, one.problems) for one in results if not one.solved] == []
    assert all(one.own_agent and one.right_calls == one.asked > 0 and one.largest_prompt <= 1000 for one in results)
    assert [(call, missing) for prompt, call in turns if (missing := unshown(prompt, call))] == []
    # Where one call alone is offered, nobody has to decide anything.
    assert sum(len(prompt.candidates) != 1 for prompt, _ in turns) >= len(turns) / 3


async def test_the_oracle_solves_a_task_of_each_agent_with_arguments_that_are_shown(tmp_path: Path) -> None:
    await solvable_by_what_is_shown(HARDEST, tmp_path)


@pytest.mark.faults
async def test_every_task_can_be_solved_and_a_third_of_the_turns_need_a_decision(tmp_path: Path) -> None:
    await solvable_by_what_is_shown(TASKS, tmp_path)


async def test_the_first_candidate_does_not_do(tmp_path: Path) -> None:
    results, _ = await tried(HARDEST, "first-candidate", tmp_path)
    assert sum(one.solved for one in results) < len(results)
