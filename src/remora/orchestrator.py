"""Plans one agent for each node and operation, runs them concurrently, and records the run in a stream of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from remora._version import __version__
from remora.errors import TraceError
from remora.events import (
    FORMAT,
    AgentFinishedEvent,
    AgentScheduledEvent,
    Event,
    NoticeEvent,
    RunEndEvent,
    RunStartEvent,
)
from remora.nodes import CodeNode, NodeType
from remora.ports import AgentResult, Engine, Job, TraceWriter
from remora.subagent import SubagentDefinition


@dataclass(frozen=True)
class Plan:
    """The work of one run."""

    run_id: str
    root: str
    paths: tuple[str, ...]
    operations: tuple[str, ...]
    policy: str
    limit: int | None
    """Tokens of a whole prompt; None to use the model's own limit."""
    jobs: tuple[Job, ...]
    problems: tuple[str, ...] = ()
    """Files that could not be read. The run reports them and continues without them."""
    model: str = ""
    """The model's name, if the policy uses one and it is known."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the policy, recorded so that the run can be resumed."""
    taken_up: bool = False
    """Whether this resumes an interrupted run. `jobs` then holds only the unfinished ones."""
    ended: tuple[AgentResult, ...] = ()
    """Results of the jobs that finished before the interruption."""
    is_over: bool = False
    """Whether the run already finished, so that nothing is left to do."""
    parent: Mapping[str, Any] | None = None
    """For a fork: the agent that it forks, and after which turn."""
    ladder: tuple[str, ...] = ()
    """The models that an agent may move up to, first to last; empty without a ladder."""
    servers: tuple[str, ...] = ()
    """The servers that the run may ask, by name or URL."""
    mcp: tuple[str, ...] = ()
    """The MCP servers whose tools its agents use, by name."""

    def in_order(self, results: Iterable[AgentResult]) -> list[AgentResult]:
        """The results in the order of the jobs, then those of the last pass."""
        order = {job.agent_id: place for place, job in enumerate(self.jobs)}
        return sorted(results, key=lambda result: (order.get(result.agent_id, len(order)), result.agent_id))


FIRST, LAST = "first", "last"
"""Stages: an agent that works on a whole file before the others, and one that works on their combined changes."""


@dataclass(frozen=True)
class LastPass:
    """Jobs on the combined changes of all agents, and one sentence for each file that could not be checked."""

    jobs: tuple[Job, ...] = ()
    problems: tuple[str, ...] = ()


BuildOn = Callable[[Sequence[Job], Sequence[AgentResult]], Awaitable[Sequence[Job]]]
"""Given jobs and all results so far, returns the jobs, each on top of the changes that were made to its file."""
LookAgain = Callable[[Sequence[AgentResult]], Awaitable[LastPass]]
"""Checks the combined changes of all agents."""


def plan_jobs(
    run_id: str,
    nodes: Sequence[CodeNode],
    definitions: Mapping[str, SubagentDefinition],
    ids: Iterator[str],
    *,
    whole_files: bool = True,
) -> tuple[Job, ...]:
    """One job for every node that an operation targets, grouped by operation. `ids` supplies the agent ids.

    An operation with `whole_file_first` also gets a job for each whole file, unless `whole_files` is False.
    """
    jobs: list[Job] = []
    for operation, definition in definitions.items():
        make = partial(Job, run_id=run_id, operation=operation)
        if definition.whole_file_first and whole_files:
            files = [node for node in nodes if node.node_type is NodeType.FILE]
            whole = [node.model_copy(update={"owned": (node.lines,)}) for node in files]
            jobs += [make(agent_id=next(ids), node=node, stage=FIRST) for node in whole]
        jobs += [make(agent_id=next(ids), node=node) for node in nodes if node.node_type in definition.targets]
    return tuple(jobs)


def batches(jobs: Sequence[Job], operations: Sequence[str]) -> list[list[Job]]:
    """The jobs in groups that run one after another: operation by operation, each with its whole files first."""
    order = {operation: place for place, operation in enumerate(operations)}
    grouped: dict[tuple[int, bool], list[Job]] = {}
    for job in jobs:
        grouped.setdefault((order.get(job.operation, len(order)), job.stage != FIRST), []).append(job)
    return [grouped[key] for key in sorted(grouped)]


@dataclass(frozen=True)
class Meeting:
    """A file that agents of one operation changed, each in its own workspace. `results` are in accept order."""

    operation: str
    path: str
    results: tuple[AgentResult, ...]

    @property
    def fixed(self) -> int:
        """By how much the agents' own checks decreased, in total."""
        return sum(_count_of(result, "before") - _count_of(result, "after") for result in self.results)


def meetings(
    results: Sequence[AgentResult], definitions: Mapping[str, SubagentDefinition], not_taken: Sequence[str]
) -> list[Meeting]:
    """The changed files of every operation that has a check and targets whole files.

    Skips results that `accept` would skip: those with a failed outcome, or with a verdict in `not_taken`.
    """
    changed: dict[tuple[str, str], list[AgentResult]] = {}
    for result in results:
        definition = definitions.get(result.operation)
        if definition is None or definition.check is None or NodeType.FILE not in definition.targets:
            continue
        if result.outcome not in ("success", "partial") or result.verdict in not_taken:
            continue
        for change in result.files:
            changed.setdefault((result.operation, change.path), []).append(result)
    checked = {(result.operation, result.node_id) for result in results if result.stage == LAST}
    return [Meeting(*key, tuple(group)) for key, group in changed.items() if key not in checked]


def _count_of(result: AgentResult, name: str) -> int:
    value = result.check.get(name)
    return value if isinstance(value, int) else 0


class Coordinator:
    """Runs a plan through an engine and records the run."""

    def __init__(
        self,
        writer: TraceWriter,
        engine: Engine,
        look_again: LookAgain | None = None,
        build_on: BuildOn | None = None,
    ) -> None:
        """`look_again` is called once all agents have finished. Its jobs run in the same run.

        `build_on` is called before each group of jobs but the first, so that they start with the changes so far.
        """
        self._writer = writer
        self._engine = engine
        self._look_again = look_again
        self._build_on = build_on

    async def run(self, plan: Plan) -> AsyncGenerator[AgentResult]:
        """Yield each agent's result once it is recorded."""
        if not plan.taken_up:
            await self._record(plan, _run_start(plan), *(_scheduled_event(job) for job in plan.jobs))
        counts: Counter[str] = Counter()
        done, completed = list(plan.ended), False
        try:
            for group in (*batches(plan.jobs, plan.operations), None):
                jobs = await (self._last_pass(plan, done) if group is None else self._built(plan, group, done))
                stages = {job.agent_id: job.stage for job in jobs}
                async with aclosing(self._engine.run(jobs)) as results:
                    async for result in results:
                        counts[result.outcome] += 1
                        await self._record(plan, _finished_event(result) if result.has_ended else _open_notice(result))
                        done.append(replace(result, stage=stages[result.agent_id]))
                        yield done[-1]
            completed = True
        finally:
            await self._record(plan, RunEndEvent(outcome="finished" if completed else "cancelled", counts=dict(counts)))
            await self._writer.close(f"runs/{plan.run_id}")

    async def _built(self, plan: Plan, jobs: Sequence[Job], done: Sequence[AgentResult]) -> Sequence[Job]:
        """The jobs on top of the changes so far. Those that now start with changes are recorded as scheduled again."""
        if self._build_on is None or not done:
            return jobs
        built = await self._build_on(jobs, done)
        planned = {job.agent_id: job for job in jobs}
        if drafts := [_scheduled_event(job) for job in built if job != planned[job.agent_id]]:
            await self._record(plan, *drafts)
        return built

    async def _last_pass(self, plan: Plan, done: Sequence[AgentResult]) -> tuple[Job, ...]:
        """Record and return the jobs on the combined changes."""
        if self._look_again is None:
            return ()
        last = await self._look_again(done)
        notices = [NoticeEvent(code="last_pass", message=problem) for problem in last.problems]
        drafts = [*notices, *map(_scheduled_event, last.jobs)]
        if drafts:
            await self._record(plan, *drafts)
        return last.jobs

    async def _record(self, plan: Plan, *drafts: Event) -> None:
        """Append to the run's stream. If that fails, the run stops as in a crash, and a resume continues its agents."""
        stamped = [draft.model_copy(update={"run_id": plan.run_id}) for draft in drafts]
        try:
            await self._writer.append(f"runs/{plan.run_id}", stamped)
        except TraceError:
            self._engine.abandon()
            raise


def not_run(job: Job, reason: str, message: str) -> AgentResult:
    """The result of a job that never started and has no stream."""
    return AgentResult(job.agent_id, job.node.node_id, job.operation, "cancelled", reason, message, verdict="failed")


def _run_start(plan: Plan) -> RunStartEvent:
    return RunStartEvent(
        format=FORMAT,
        remora=__version__,
        root=plan.root,
        paths=plan.paths,
        operations=plan.operations,
        policy=plan.policy,
        limits={"prompt_tokens": plan.limit} if plan.limit else {},
        settings=dict(plan.settings),
        parent=dict(plan.parent) if plan.parent else None,
    )


def _scheduled_event(job: Job) -> AgentScheduledEvent:
    return AgentScheduledEvent(
        agent_id=job.agent_id,
        operation=job.operation,
        node_id=job.node.node_id,
        stage=job.stage,
        over=job.over,
        after=job.after,
        node=job.node.record() if job.stage or job.over else {},
        answer=job.answer,
    )


def _open_notice(result: AgentResult) -> NoticeEvent:
    """Why an agent is not over. Without `agent_finished`, a resume takes it up again."""
    why = f"{result.operation} {result.node_id}: {result.reason}: {result.summary}"
    return NoticeEvent(code="not_over", message=why, agent_id=result.agent_id)


def _finished_event(result: AgentResult) -> AgentFinishedEvent:
    return AgentFinishedEvent(
        agent_id=result.agent_id,
        operation=result.operation,
        node_id=result.node_id,
        outcome=result.outcome,
        reason=result.reason,
        summary=result.summary,
        head=result.head,
        last_seq=result.last_seq,
        verdict=result.verdict,
        check=dict(result.check),
        worker=result.worker,
    )
