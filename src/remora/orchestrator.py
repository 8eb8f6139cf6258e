"""Nodes × operations → agents, many at once, and a stream of the run that says which ran and how each ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remora._version import __version__
from remora.events import (
    FORMAT,
    AgentFinishedEvent,
    AgentScheduledEvent,
    Event,
    RunEndEvent,
    RunStartEvent,
)
from remora.nodes import CodeNode
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
    limit: int
    jobs: tuple[Job, ...]
    problems: tuple[str, ...] = ()
    """Files that could not be read; the run goes on without them, and says so."""
    model: str = ""
    """The name of the model that decides, where one does and it is known."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Who decides and how, for whoever goes on with it."""
    taken_up: bool = False
    """Whether the run began earlier and was interrupted: then its jobs are those that had not ended."""


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


class Coordinator:
    """Runs a plan through an engine and records the run."""

    def __init__(self, writer: TraceWriter, engine: Engine) -> None:
        self._writer = writer
        self._engine = engine

    async def run(self, plan: Plan) -> AsyncIterator[AgentResult]:
        """The agents' results, each as it ends and is recorded."""
        if not plan.taken_up:
            await self._record(plan, _start(plan), *(_scheduled(job) for job in plan.jobs))
        counts: Counter[str] = Counter()
        try:
            async for result in self._engine.run(plan.jobs):
                counts[result.outcome] += 1
                await self._record(plan, _finished(result))
                yield result
        finally:
            whole = counts.total() == len(plan.jobs)
            await self._record(plan, RunEndEvent(outcome="finished" if whole else "cancelled", counts=dict(counts)))
            await self._writer.close(f"runs/{plan.run_id}")

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
        limits={"prompt_tokens": plan.limit},
        settings=dict(plan.settings),
    )


def _scheduled(job: Job) -> AgentScheduledEvent:
    return AgentScheduledEvent(agent_id=job.agent_id, operation=job.operation, node_id=job.node.node_id)


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
