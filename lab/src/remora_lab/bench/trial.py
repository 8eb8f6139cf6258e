"""One trial: a task, a row, a control, a seed, and its result according to the files."""

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

from remora.app import Agents, Deciders, Project, deciders
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
from remora_lab.bench.controls import Control, make_overrides, renaming
from remora_lab.bench.results import Key, Result
from remora_lab.bench.rows import TableRow, run_config
from remora_lab.bench.shadow import Compared, Oracle, Shadowed
from remora_lab.bench.suite import task_digest
from remora_lab.bench.tasks import Task

if TYPE_CHECKING:
    from remora.scripts import Agent

PROMPT_STATUSES = (400, 413, 422)
"""HTTP statuses with which a server rejects one prompt, and may accept the next."""

OUTSIDE_TARGET = "is not the target's, and was changed"
"""How a check reports changed lines outside the target."""


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
        """The folder of its stream. No path comes from outside."""
        model = re.sub(r"[^A-Za-z0-9]+", "-", self.model).strip("-")
        row = f"{self.row.name}-{model}" if self.row.decides == "server" else self.row.name
        return f"{row}/{self.control.name}/{self.seed}/{self.task.id}"


@dataclass(frozen=True)
class Place:
    """What trials share."""

    streams: Path
    """State folders, one per trial."""
    oracle: Callable[[Task], Oracle]
    spawner: Spawner
    agents: Path | None = None
    """A folder of agents besides the bundled ones."""


class _CachedAgents(Agents):
    """Loads each agent once for all trials: checking its scripts takes longer than many runs."""

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
    """Load the agents before anything runs: Python's parser must not run in two threads."""
    here = Path.cwd()
    _TrialProject(here, here, run_config(TableRow("", "", "oracle"), agents)).agents.load(sorted(set(operations)))


async def run_trial(trial: Trial, place: Place, found: Deciders | None) -> Result:
    """Run a trial. Its stream is kept, the project is not. Raises `DecisionError` if the server is gone."""
    with tempfile.TemporaryDirectory(prefix="remora-bench-") as folder:
        before, project = Path(folder, "before"), Path(folder, "project")
        write_task(trial.task, before)
        write_task(trial.task, project)
        if found is None:
            fields = await _fix_with_ruff(trial, project)
        else:
            fields = await _run_agent(trial, place, found, project)
        problems = (*fields.pop("problems", ()), *(await check(trial.task, before, project, place.spawner)).problems)
    if found is None:
        # A person who runs ruff on a file accepts fixes elsewhere in it.
        problems = tuple(problem for problem in problems if OUTSIDE_TARGET not in problem)
    task = trial.task
    fields |= {"operation": task.operation, "level": task.level, "half": task.half}
    fields |= {"own_agent": place.agents is not None and (place.agents / task.operation).is_dir()}
    return Result(**trial.key._asdict(), solved=not problems, problems=problems, **fields)


def write_task(task: Task, root: Path) -> None:
    """Write the files of the task to `root`. Raises `ConfigError` for a path that leads outside."""
    for path, text in task.files.items():
        place = root / path
        if not place.resolve().is_relative_to(root.resolve()):
            raise ConfigError(f"Task `{task.id}` has the file `{path}`, which leads out of its project")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")


async def _fix_with_ruff(trial: Trial, project: Path) -> dict[str, Any]:
    """What a person would do without an agent."""
    began = time.monotonic()
    # Not through the sandbox: its allow-list does not let ruff write.
    how = ["--fix", *trial.row.options, "--no-cache", "--quiet"]
    argv = [sys.executable, "-P", "-m", "ruff", "check", *how, trial.task.path]
    pipe = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*argv, cwd=project, stdout=pipe, stderr=pipe)
    await process.wait()
    return {"wall_s": round(time.monotonic() - began, 3), "outcome": "success"}


async def _run_agent(trial: Trial, place: Place, found: Deciders, project: Path) -> dict[str, Any]:
    stream = trial.folder
    state = place.streams / stream
    if state.exists():
        shutil.rmtree(state)  # of an interrupted trial, whose project is gone
    app = _TrialProject(project, state, run_config(trial.row, place.agents))
    shadowed = _ShadowedDeciders(trial, place.oracle(trial.task), found)
    began = time.monotonic()
    result = await _result(app, trial, shadowed)
    wall = time.monotonic() - began
    if result.reason == CountingFailed.__name__ or any(map(ends_all, shadowed.errors)):
        raise DecisionError(f"Task `{trial.task.id}`: {result.summary}", hint="Continue later with `--resume`")
    await app.review.accept(app.library.runs()[-1].stem)
    fields = {"outcome": result.outcome, "reason": result.reason, "verdict": result.verdict, "turns": result.turns}
    fields |= {"wall_s": round(wall, 3), "agent_id": result.agent_id, "stream": f"{place.streams.name}/{stream}"}
    if result.reason == ServerRefused.code:
        fields |= {"problems": (result.summary,)}
    return fields | _prompts(app, result) | _compare_turns(shadowed.turns)


def ends_all(error: RemoraError) -> bool:
    """Whether later requests would fail too: the server is gone, or rejects the key or model."""
    if isinstance(error, ServerRefused):
        return error.status not in PROMPT_STATUSES
    return isinstance(error, ServerUnreachable | CountingFailed)


async def _result(app: Project, trial: Trial, shadowed: _ShadowedDeciders) -> AgentResult:
    """Run the one agent. Raises `ConfigError` if there is not exactly one."""
    task = trial.task
    wanted = f"{task.path}:{task.node}" if task.node else task.path
    plan = app.runs.plan([app.root / task.path], [task.operation], lambda node: node.node_id == wanted)
    if len(plan.jobs) != 1:
        raise ConfigError(f"Task `{task.id}` is for `{wanted}`, where `{task.operation}` has {len(plan.jobs)} agents")
    async with shadowed.opened() as found:
        overrides = make_overrides(trial.control, task, trial.seed, found, shadowed.names)
        results = [result async for result in app.runs.run(plan, overrides=overrides)]
    return results[0]


class _ShadowedDeciders:
    """The policies of a trial, each shadowed by the oracle."""

    def __init__(self, trial: Trial, oracle: Oracle, found: Deciders) -> None:
        self._trial = trial
        self._oracle = oracle
        self._found = found
        self.names = renaming(trial.control, trial.task, trial.seed)
        self._shadows: list[Shadowed] = []

    @property
    def turns(self) -> list[Compared]:
        return [turn for shadow in self._shadows for turn in shadow.turns]

    @property
    def errors(self) -> list[DecisionError]:
        """The last errors of the policies."""
        return [shadow.error for shadow in self._shadows if shadow.error]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Deciders]:
        """The deciders, with a random policy seeded by trial and task."""
        trial, policy = self._trial, self._found.policy
        if trial.row.decides == "random":
            seed = trial.seed * 2**32 + zlib.crc32(trial.task.id.encode())
            async with deciders(ServerConfig(server="random", seed=seed)) as drawn:
                yield replace(self._found, policy=lambda definition: self._shadow(drawn.policy(definition)))
            return
        yield replace(self._found, policy=lambda definition: self._shadow(self._own(policy, definition)))

    def _own(self, policy: Callable[[SubagentDefinition], Policy], definition: SubagentDefinition) -> Policy:
        if self._trial.row.decides != "oracle":
            return policy(definition)
        return self.names.policy(self._oracle) if self.names else self._oracle

    def _shadow(self, policy: Policy) -> Policy:
        self._shadows.append(Shadowed(policy, self._oracle, self.names))
        return self._shadows[-1]


def _prompts(app: Project, result: AgentResult) -> dict[str, Any]:
    """Tokens of the run's prompts, from their receipts."""
    if result.last_seq < 0:
        return {}
    receipts = [event for event in app.library.events(result.agent_id) if isinstance(event, ModelRequestEvent)]
    exact = bool(receipts) and all(receipt.counter.get("exact") for receipt in receipts)
    total = sum(receipt.tokens.get("total", 0) for receipt in receipts)
    return {"prompt_tokens": total, "largest_prompt": result.largest_prompt, "exact": exact}


def _compare_turns(turns: Sequence[Compared]) -> dict[str, Any]:
    """How often the oracle agreed, and the first disagreement."""
    wrong = next((turn for turn in turns if not turn.right_call), None)
    counts = {"asked": len(turns)}
    counts |= {"right_tools": sum(turn.right_tool for turn in turns)}
    counts |= {"right_calls": sum(turn.right_call for turn in turns)}
    if wrong is None:
        return counts
    return counts | {"wrong_turn": wrong.turn, "wrong_call": wrong.call, "choices": wrong.choices}
