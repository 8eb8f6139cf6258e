"""Nodes × operations → agents, many at once, and a stream of the run that says which ran and how each ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from remora._version import __version__
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
    """What one run will do."""

    run_id: str
    root: str
    paths: tuple[str, ...]
    operations: tuple[str, ...]
    policy: str
    limit: int | None
    """Tokens of a whole prompt; None where the model decides."""
    jobs: tuple[Job, ...]
    problems: tuple[str, ...] = ()
    """Files that could not be read; the run goes on without them, and says so."""
    model: str = ""
    """The name of the model that decides, where one does and it is known."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Who decides and how, for whoever goes on with it."""
    taken_up: bool = False
    """Whether the run began earlier and was interrupted: then its jobs are those that had not ended."""
    ended: tuple[AgentResult, ...] = ()
    """Then also what had ended."""
    is_over: bool = False
    """Whether it had come to its end by itself: then nothing is left to do."""

    def in_order(self, results: Iterable[AgentResult]) -> list[AgentResult]:
        """The results in the order of the jobs; those of agents that were needed later come after them."""
        order = {job.agent_id: place for place, job in enumerate(self.jobs)}
        return sorted(results, key=lambda result: (order.get(result.agent_id, len(order)), result.agent_id))


LAST = "last"
"""The stage of an agent that works on what the others' changes come to together."""


@dataclass(frozen=True)
class LastPass:
    """What is left to do once all agents of a run have ended, and what could not be looked at, a sentence each."""

    jobs: tuple[Job, ...] = ()
    problems: tuple[str, ...] = ()


LookAgain = Callable[[Sequence[AgentResult]], Awaitable[LastPass]]
"""Finds what is wrong in what the agents' changes come to together."""


def plan_jobs(
    run_id: str, nodes: Sequence[CodeNode], definitions: Mapping[str, SubagentDefinition], ids: Iterator[str]
) -> tuple[Job, ...]:
    """One job for every node that an operation targets, operation by operation, the agents named by `ids`."""
    return tuple(
        Job(run_id=run_id, agent_id=next(ids), operation=operation, node=node)
        for operation, definition in definitions.items()
        for node in nodes
        if node.node_type in definition.targets
    )


@dataclass(frozen=True)
class Meeting:
    """A file that agents of one operation changed, each on a copy of its own, in the order of accepting."""

    operation: str
    path: str
    results: tuple[AgentResult, ...]

    @property
    def fixed(self) -> int:
        """How many things fewer the agents' own checks found wrong afterwards, all together."""
        return sum(_number(result, "before") - _number(result, "after") for result in self.results)


def meetings(
    results: Sequence[AgentResult], definitions: Mapping[str, SubagentDefinition], not_taken: Sequence[str]
) -> list[Meeting]:
    """The changed files of every operation that can look at a whole file: by a check, with agents that target files.

    Work that accept leaves out, by its outcome or a verdict in `not_taken`, is left out here too.
    """
    found: dict[tuple[str, str], list[AgentResult]] = {}
    for result in results:
        definition = definitions.get(result.operation)
        if definition is None or definition.check is None or NodeType.FILE not in definition.targets:
            continue
        if result.outcome not in ("success", "partial") or result.verdict in not_taken:
            continue
        for change in result.files:
            found.setdefault((result.operation, change.path), []).append(result)
    looked_at = {(result.operation, result.node_id) for result in results if result.stage == LAST}
    return [Meeting(*key, tuple(mine)) for key, mine in found.items() if key not in looked_at]


def _number(result: AgentResult, name: str) -> int:
    value = result.check.get(name)
    return value if isinstance(value, int) else 0


class Coordinator:
    """Runs a plan through an engine and records the run."""

    def __init__(self, writer: TraceWriter, engine: Engine, look_again: LookAgain | None = None) -> None:
        """`look_again` is asked once all agents have ended; what it finds is run too, in the same run."""
        self._writer = writer
        self._engine = engine
        self._look_again = look_again

    async def run(self, plan: Plan) -> AsyncIterator[AgentResult]:
        """The agents' results, each as it ends and is recorded."""
        if not plan.taken_up:
            await self._record(plan, _start(plan), *(_scheduled(job) for job in plan.jobs))
        counts: Counter[str] = Counter()
        done, whole = list(plan.ended), False
        try:
            for stage in ("", LAST):
                jobs = await self._last_pass(plan, done) if stage == LAST else plan.jobs
                stages = {job.agent_id: job.stage for job in jobs}
                async for result in self._engine.run(jobs):
                    counts[result.outcome] += 1
                    await self._record(plan, _finished(result))
                    done.append(replace(result, stage=stages[result.agent_id]))
                    yield done[-1]
            whole = True
        finally:
            await self._record(plan, RunEndEvent(outcome="finished" if whole else "cancelled", counts=dict(counts)))
            await self._writer.close(f"runs/{plan.run_id}")

    async def _last_pass(self, plan: Plan, done: Sequence[AgentResult]) -> tuple[Job, ...]:
        """The agents that are needed for the whole, recorded like any."""
        if self._look_again is None:
            return ()
        found = await self._look_again(done)
        notices = [NoticeEvent(code="last_pass", message=problem) for problem in found.problems]
        drafts = [*notices, *map(_scheduled, found.jobs)]
        if drafts:
            await self._record(plan, *drafts)
        return found.jobs

    async def _record(self, plan: Plan, *drafts: Event) -> None:
        stamped = [draft.model_copy(update={"run_id": plan.run_id}) for draft in drafts]
        await self._writer.append(f"runs/{plan.run_id}", stamped)


def not_run(job: Job, reason: str, message: str) -> AgentResult:
    """The result of a job that was never begun: there is no stream of it."""
    return AgentResult(job.agent_id, job.node.node_id, job.operation, "cancelled", reason, message, verdict="failed")


def _start(plan: Plan) -> RunStartEvent:
    return RunStartEvent(
        format=FORMAT,
        remora=__version__,
        root=plan.root,
        paths=plan.paths,
        operations=plan.operations,
        policy=plan.policy,
        limits={"prompt_tokens": plan.limit} if plan.limit else {},
        settings=dict(plan.settings),
    )


def _scheduled(job: Job) -> AgentScheduledEvent:
    return AgentScheduledEvent(
        agent_id=job.agent_id,
        operation=job.operation,
        node_id=job.node.node_id,
        stage=job.stage,
        over=job.over,
        after=job.after,
        node=job.node.record() if job.stage else {},
    )


def _finished(result: AgentResult) -> AgentFinishedEvent:
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
    )
