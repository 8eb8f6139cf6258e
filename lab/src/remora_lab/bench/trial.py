"""One trial: runs one agent on one task, for one row, control and seed, and judges the files."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from remora.analysis import RungRow
from remora.app import Agents, Deciders, Project, RunOverrides, deciders
from remora.config import ServerConfig
from remora.errors import (
    ConfigError,
    CountingFailed,
    DecisionError,
    RemoraError,
    ServerRefused,
    ServerUnreachable,
)
from remora.events import ModelRequestEvent
from remora.ports import AgentResult, Policy, Spawner
from remora.subagent import SubagentDefinition
from remora_lab.bench.checks import check
from remora_lab.bench.controls import Control, apply_control, renaming
from remora_lab.bench.results import Key, Result, RungShare
from remora_lab.bench.rows import TableRow, run_config
from remora_lab.bench.shadow import Shadowed, TaskOracle, TurnComparison
from remora_lab.bench.suite import task_digest
from remora_lab.bench.tasks import Task

if TYPE_CHECKING:
    from remora.scripts import Agent

OF_THE_PROMPT = (400, 413, 422)
"""HTTP statuses by which a server refuses one prompt, and may well take the next."""

ELSEWHERE = "is not the target's, and was changed"
"""How a check tells of lines beside the target."""


@dataclass(frozen=True)
class Trial:
    """What is tried, and how."""

    task: Task
    row: TableRow
    control: Control
    seed: int
    model: str = ""

    @property
    def key(self) -> Key:
        return Key(self.task.id, task_digest(self.task), self.row.name, self.model, self.control.name, self.seed)

    @property
    def folder(self) -> str:
        """Where its stream is kept; nothing from outside becomes a path."""
        model = re.sub(r"[^A-Za-z0-9]+", "-", self.model).strip("-")
        row = f"{self.row.name}-{model}" if self.row.decides == "server" else self.row.name
        return f"{row}/{self.control.name}/{self.seed}/{self.task.id}"


@dataclass(frozen=True)
class BenchEnvironment:
    """What trials share."""

    streams: Path
    """Where state folders are kept, one a trial."""
    oracle: Callable[[Task], TaskOracle]
    spawner: Spawner
    agents: Path | None = None
    """A folder of agents beside the bundled ones."""


class _CachedAgents(Agents):
    """Loads each agent once for all trials: checking its scripts takes longer than many a run."""

    _known: ClassVar[dict[tuple[Path, str], Agent]] = {}

    def load(self, operations: Sequence[str]) -> dict[str, Agent]:
        folder = self._project.config.agents_dir
        if missing := [name for name in operations if (folder, name) not in self._known]:
            self._known.update({(folder, name): agent for name, agent in super().load(missing).items()})
        return {name: self._known[folder, name] for name in operations}


class _TrialProject(Project):
    @cached_property
    def agents(self) -> Agents:
        return _CachedAgents(self)


def load_agents(operations: Iterable[str], agents: Path | None) -> None:
    """The agents are loaded before anything runs: Python's parser, which does it, wants no other thread beside it."""
    here = Path.cwd()
    _TrialProject(here, here, run_config(TableRow("", "", "oracle"), agents)).agents.load(sorted(set(operations)))


async def run_trial(
    trial: Trial, place: BenchEnvironment, found: Deciders | None, above: Sequence[Deciders] = ()
) -> Result:
    """The trial's result. Its stream is kept, the project is not. Raises `DecisionError` if the server is gone.

    `above` are the models above `found` of a ladder.
    """
    with tempfile.TemporaryDirectory(prefix="remora-bench-") as folder:
        before, project = Path(folder, "before"), Path(folder, "project")
        write_task(trial.task, before)
        write_task(trial.task, project)
        if found is None:
            told = await _fixed_by_ruff(trial, project)
        else:
            told = await _run_agent(trial, place, [found, *above], project)
        problems = (*told.pop("problems", ()), *(await check(trial.task, before, project, place.spawner)).problems)
    if found is None:
        # A person who lets ruff mend a file is glad of what it mends elsewhere in it.
        problems = tuple(problem for problem in problems if ELSEWHERE not in problem)
    task = trial.task
    told |= {"operation": task.operation, "level": task.level, "half": task.half}
    told |= {"own_agent": place.agents is not None and (place.agents / task.operation).is_dir()}
    return Result(**trial.key._asdict(), solved=not problems, problems=problems, **told)


def write_task(task: Task, root: Path) -> None:
    """The files of the task are in `root`. Raises `ConfigError` for one that leads out of it."""
    for path, text in task.files.items():
        place = root / path
        if not place.resolve().is_relative_to(root.resolve()):
            raise ConfigError(f"Task `{task.id}` has the file `{path}`, which leads out of its project")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")


async def _fixed_by_ruff(trial: Trial, project: Path) -> dict[str, Any]:
    """What a person would do without any agent."""
    began = time.monotonic()
    # Not by the sandbox's spawner: that one lets ruff look and never write.
    how = ["--fix", *trial.row.options, "--no-cache", "--quiet"]
    argv = [sys.executable, "-P", "-m", "ruff", "check", *how, trial.task.path]
    pipe = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*argv, cwd=project, stdout=pipe, stderr=pipe)
    await process.wait()
    return {"wall_s": round(time.monotonic() - began, 3), "outcome": "success"}


async def _run_agent(trial: Trial, place: BenchEnvironment, found: Sequence[Deciders], project: Path) -> dict[str, Any]:
    stream = trial.folder
    state = place.streams / stream
    if state.exists():
        shutil.rmtree(state)  # of a trial that was cut off: what it had begun belongs to a project that is gone
    above = tuple(str(each.record.get("model")) for each in found[1:])
    app = _TrialProject(project, state, run_config(trial.row, place.agents, above))
    watched = _Watched(trial, place.oracle(trial.task), found)
    began = time.monotonic()
    result = await _result(app, trial, watched)
    wall = time.monotonic() - began
    if result.reason == CountingFailed.__name__ or any(map(stops_bench, watched.errors)):
        raise DecisionError(f"Task `{trial.task.id}`: {result.summary}", hint="Go on later with `--resume`")
    await app.review.accept(result.agent_id)  # by name: a fix that may alter behaviour is not accepted otherwise
    told = {"outcome": result.outcome, "reason": result.reason, "verdict": result.verdict, "turns": result.turns}
    told |= {"wall_s": round(wall, 3), "agent_id": result.agent_id, "stream": f"{place.streams.name}/{stream}"}
    if result.reason == ServerRefused.code:
        told |= {"problems": (result.summary,)}
    if above:
        told |= {"rungs": {one.rung: _rung(one) for one in result.decisions}}
    return told | _prompts(app, result) | _compared(watched.turns)


def stops_bench(error: RemoraError) -> bool:
    """Whether nobody who is asked later would be answered: the server is gone, or knows no such key or model."""
    if isinstance(error, ServerRefused):
        return error.status not in OF_THE_PROMPT
    return isinstance(error, ServerUnreachable | CountingFailed)


async def _result(app: Project, trial: Trial, watched: _Watched) -> AgentResult:
    """How the one agent ended. Raises `ConfigError` if there is not exactly one."""
    task = trial.task
    wanted = f"{task.path}:{task.node}" if task.node else task.path
    plan = app.runs.plan([app.root / task.path], [task.operation], lambda node: node.node_id == wanted)
    if len(plan.jobs) != 1:
        raise ConfigError(f"Task `{task.id}` is for `{wanted}`, where `{task.operation}` has {len(plan.jobs)} agents")
    async with watched.opened() as found:
        overrides = apply_control(trial.control, task, trial.seed, found, watched.names)
        overrides = _with_goal(replace(overrides, rungs=watched.above), task.goal)
        results = [result async for result in app.runs.run(plan, overrides=overrides)]
    return results[0]


def _with_goal(overrides: RunOverrides, goal: str) -> RunOverrides:
    """The agent is asked for `goal`, if there is one. Its braces are a person's, not places to fill."""
    if not goal:
        return overrides
    own = {"goal": goal.replace("{", "{{").replace("}", "}}")}
    return replace(overrides, definition=lambda given: overrides.definition(given).model_copy(update=own))


class _Watched:
    """Whoever decides in a trial, with the oracle beside it."""

    def __init__(self, trial: Trial, oracle: TaskOracle, found: Sequence[Deciders]) -> None:
        self._trial = trial
        self._oracle = oracle
        self._found = found[0]
        self.above = tuple(map(self._watch, found[1:]))
        self.names = renaming(trial.control, trial.task, trial.seed)
        self._shadows: list[Shadowed] = []

    @property
    def turns(self) -> list[TurnComparison]:
        return sorted((turn for shadow in self._shadows for turn in shadow.turns), key=lambda one: one.turn)

    @property
    def errors(self) -> list[DecisionError]:
        """Why whoever was asked last gave no decision."""
        return [shadow.error for shadow in self._shadows if shadow.error]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Deciders]:
        """Who decides: drawn by seed and task where it is drawn."""
        trial, policy = self._trial, self._found.policy
        if trial.row.decides == "random":
            seed = trial.seed * 2**32 + zlib.crc32(trial.task.id.encode())
            async with deciders(ServerConfig(server="random", seed=seed)) as drawn:
                yield replace(self._found, policy=lambda definition: self._shadow(drawn.policy(definition)))
            return
        yield replace(self._found, policy=lambda definition: self._shadow(self._own(policy, definition)))

    def _watch(self, found: Deciders) -> Deciders:
        return replace(found, policy=lambda definition: self._shadow(found.policy(definition)))

    def _own(self, policy: Callable[[SubagentDefinition], Policy], definition: SubagentDefinition) -> Policy:
        if self._trial.row.decides != "oracle":
            return policy(definition)
        return self.names.policy(self._oracle) if self.names else self._oracle

    def _shadow(self, policy: Policy) -> Policy:
        self._shadows.append(Shadowed(policy, self._oracle, self.names))
        return self._shadows[-1]


def _rung(one: RungRow) -> RungShare:
    return RungShare(decisions=one.decisions, prompt_tokens=one.prompt_tokens, seconds=round(one.seconds, 3))


def _prompts(app: Project, result: AgentResult) -> dict[str, Any]:
    """What the prompts of the run took, from their receipts."""
    if result.last_seq < 0:
        return {}
    receipts = [event for event in app.library.events(result.agent_id) if isinstance(event, ModelRequestEvent)]
    exact = bool(receipts) and all(receipt.counter.get("exact") for receipt in receipts)
    total = sum(receipt.tokens.get("total", 0) for receipt in receipts)
    return {"prompt_tokens": total, "largest_prompt": result.largest_prompt, "exact": exact}


def _compared(turns: Sequence[TurnComparison]) -> dict[str, Any]:
    """How often the oracle would have agreed, and where it would not have for the first time."""
    wrong = next((turn for turn in turns if not turn.right_call), None)
    counts = {"asked": len(turns)}
    counts |= {"right_tools": sum(turn.right_tool for turn in turns)}
    counts |= {"right_calls": sum(turn.right_call for turn in turns)}
    if wrong is None:
        return counts
    return counts | {"wrong_turn": wrong.turn, "wrong_call": wrong.call, "choices": wrong.choices}
