"""Forks and continues agents: a new stream that continues from the end of a turn, with the same packet and files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from remora._version import __version__
from remora.analysis import CONTINUE, FORK, inherited_events
from remora.app._interrupted import recorded_node
from remora.app._ladder import rung_names, servers_of
from remora.app._mcp import mcp_names
from remora.app._project import Project
from remora.app._session import Session, open_session, run_limits
from remora.context.projection import PROJECTOR
from remora.errors import ConfigError, WorkspaceError
from remora.events import (
    AgentEndEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    Event,
    FileChange,
    KnowledgeDelta,
    NoticeEvent,
    PacketDelta,
    PacketUpdateEvent,
    ToolResultEvent,
    digest,
    ids_behind,
    short_id,
)
from remora.orchestrator import Coordinator, Plan
from remora.ports import AgentResult, Job
from remora.runner import Runner
from remora.subagent import SUBMIT_RESULT_TOOL
from remora.trace import pick_events, read_events
from remora.twotrack import Track, resume_state

if TYPE_CHECKING:
    from remora.scripts import Agent

STUCK = ("error_limit", "repeat_limit", "undecided")
"""Reasons of an end that would be reached again at once."""


@dataclass(frozen=True)
class ForkPlan:
    """A fork before it runs."""

    plan: Plan
    inherited: tuple[Event, ...]
    changes: tuple[FileChange, ...]
    """All changes of the agent that is forked, also later ones: they hold the old text of its files."""
    say: str = ""
    knowledge: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    """What differs from the files as they were."""

    @property
    def agent_id(self) -> str:
        """The id of the new agent."""
        return self.plan.jobs[0].agent_id


class Forking:
    """Forks agents of a project."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def plan(self, fragment: str, at: int, *, say: str = "", knowledge: Mapping[str, Any] | None = None) -> ForkPlan:
        """Plan a fork without starting it. Raises `ConfigError` if it cannot go on from there."""
        events = self._read(fragment)
        inherited = inherited_events(events, at)
        self._check_turn(_start_of(inherited), inherited, at, say)
        return self._plan(events, inherited, at, FORK, say, knowledge or {})

    def plan_again(self, fragment: str, *, say: str = "") -> ForkPlan:
        """Plan an agent that goes on where one ended. Raises `ConfigError` if there is nothing to go on with."""
        events = self._read(fragment)
        at = max(event.turn for event in events)
        inherited = inherited_events(events, at)
        _check_ended(events, inherited, say)
        return self._plan(events, inherited, at, CONTINUE, say, {})

    def _read(self, fragment: str) -> list[Event]:
        """The events of an agent. Raises `ConfigError` if it was not run by Remora."""
        self._project.check_own_state()
        path = self._project.library.find(fragment)
        events = list(read_events(path, torn_ok=True))
        start = events[0] if events else None
        if isinstance(start, AgentStartEvent) and not start.definition:
            raise ConfigError(
                f"Agent {short_id(path.stem)} cannot go on: it was not run by Remora, so there are no tools to run",
                hint="Name an agent of `remora analyze`; for your own loop, use `TwoTrack`",
            )
        return events

    def _plan(
        self,
        events: Sequence[Event],
        inherited: Sequence[Event],
        at: int,
        relation: str,
        say: str,
        knowledge: Mapping[str, Any],
    ) -> ForkPlan:
        project, start, last = self._project, _start_of(inherited), inherited[-1]
        changes = tuple(change for event in events if isinstance(event, ToolResultEvent) for change in event.files)
        was = self._scheduled(start)
        over, notices = self._bases(was.over, changes)
        run_id = project.library.new_id(project.clock.now())
        agent_id = next(ids_behind(run_id))
        scheduled = AgentScheduledEvent(agent_id=agent_id, operation=start.operation, node_id=start.node_id)
        node = recorded_node(scheduled, start.node)
        job = Job(run_id, agent_id, start.operation, node, stage=was.stage, over=over)
        parent = {"agent_id": start.agent_id, "run_id": start.run_id, "seq": last.seq, "turn": at, "relation": relation}
        head = {"head": events[last.seq + 1].prev} if last.seq + 1 < len(events) else {}
        plan = Plan(
            run_id=run_id,
            root=str(project.root),
            paths=(),
            operations=(start.operation,),
            policy=project.server.server,
            model=project.runs.model_name(),
            settings=project.runs.recorded_settings(),
            limit=project.runs.prompt_limit(),
            ladder=rung_names(project.config),
            servers=servers_of(project.config),
            mcp=mcp_names(project.agents.load([start.operation]).values()),
            jobs=(job,),
            parent=parent | head,
        )
        return ForkPlan(plan, tuple(inherited), changes, say, knowledge, notices)

    async def run(self, fork: ForkPlan) -> AsyncIterator[AgentResult]:
        """Run the fork to its end, in a run of its own."""
        from remora.engines import LocalEngine

        agents = self._project.agents.load(fork.plan.operations)
        async with open_session(self._project, agents) as session:

            async def execute(job: Job) -> AgentResult:
                return await session.finish(await _begin(session, agents[job.operation], job, fork))

            engine = LocalEngine(execute, at_once=1, abandon=session.abandoned.set)
            async with aclosing(Coordinator(session.writer, engine).run(fork.plan)) as results:
                async for result in results:
                    yield result

    def _check_turn(self, start: AgentStartEvent, inherited: Sequence[Event], at: int, say: str) -> None:
        """Raises `ConfigError` if the run could not go on after this turn."""
        project, name = self._project, short_id(start.agent_id)
        definition = project.agents.load([start.operation])[start.operation].definition
        state = resume_state(inherited)
        if state.turn_begun or state.open_call or state.open_check:
            raise ConfigError(f"Turn {at} of agent {name} was interrupted: fork it at turn {max(at - 1, 0)}")
        if (state.calls or state.answer) and not say:
            raise ConfigError(
                f"Agent {name} ended its work in turn {at}: a fork there would end at once",
                hint=f'Fork it at turn {at - 1}, or ask for more with `--say "…"`',
            )
        most = run_limits(definition, project.config.runner, project.operation(start.operation).max_turns).max_turns
        if at >= most:
            raise ConfigError(f"Agent {name} may have {most} turns, and turn {at} is the last: fork it earlier")

    def _bases(
        self, scheduled: Sequence[FileChange], changes: Sequence[FileChange]
    ) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
        """The files as they were before the agent, where the project has changed since, and what cannot be restored."""
        over = {change.path: change for change in scheduled}
        notices = []
        for path, change in _first_changes(changes).items():
            now = self._digest_now(path)
            if change.before is None and now is not None:
                notices.append(f"`{path}` exists now, but did not when the agent began: the fork sees it")
            elif change.before is not None and now != change.before:
                over[path] = FileChange(path=path, mode=change.mode, before=now, after=change.before)
        return tuple(over.values()), tuple(notices)

    def _scheduled(self, start: AgentStartEvent) -> AgentScheduledEvent:
        """How the agent was scheduled in its run: its stage, and what its workspace began with."""
        runs = self._project.library.files([f"runs/{start.run_id}"] if start.run_id else [])
        events = (event for run in runs for event in pick_events(run, ("agent_scheduled",)))
        mine = (event for event in events if event.agent_id == start.agent_id)
        found = [event for event in mine if isinstance(event, AgentScheduledEvent)]
        return found[-1] if found else AgentScheduledEvent()

    def _digest_now(self, path: str) -> str | None:
        from remora.workspaces import Door

        try:
            return digest(Door(self._project.root).read(path))
        except (OSError, WorkspaceError):
            return None


def _start_of(inherited: Sequence[Event]) -> AgentStartEvent:
    start = inherited[0]
    assert isinstance(start, AgentStartEvent)  # noqa: S101 - `inherited_events` checks it
    return start


def _check_ended(events: Sequence[Event], inherited: Sequence[Event], say: str) -> None:
    """Raises `ConfigError` for an agent that has not ended, or that would end again at once."""
    name, end = short_id(events[0].agent_id), events[-1]
    if not isinstance(end, AgentEndEvent):
        raise ConfigError(f"Agent {name} has not ended", hint="`remora resume` continues its run")
    state = resume_state(inherited)
    done = state.answer is not None or any(call.tool == SUBMIT_RESULT_TOOL for call in state.calls)
    if not say and (done or end.reason in STUCK):
        why = "it ended its work" if done else f"it was stuck ({end.reason})"
        raise ConfigError(f"Agent {name} would end again at once: {why}", hint='Say what is next with `--say "…"`')


def _first_changes(changes: Sequence[FileChange]) -> dict[str, FileChange]:
    first: dict[str, FileChange] = {}
    for change in changes:
        first.setdefault(change.path, change)
    return first


async def _begin(session: Session, agent: Agent, job: Job, fork: ForkPlan) -> Runner:
    """Write what the fork inherits into its stream, with what it changes, and return the runner that goes on."""
    track = (await session.runner(job, fork.inherited, forks=fork.changes)).track
    stream_id = track.identity.stream_id
    try:
        await _inherit(session, agent, fork, track)
        past = [event async for event in session.writer.read(stream_id)]
        return await session.runner(job, past, forks=fork.changes, resumed=_reason(fork))
    except asyncio.CancelledError:
        await asyncio.shield(session.writer.discard(stream_id))  # it holds nothing but copies
        raise


def _reason(fork: ForkPlan) -> str:
    parent = fork.plan.parent or {}
    went = "forked from" if parent.get("relation") == FORK else "continues"
    return f"{went} {parent.get('agent_id')} after turn {parent.get('turn')}"


async def _inherit(session: Session, agent: Agent, fork: ForkPlan, track: Track) -> None:
    """Write the inherited events, and what the fork changes, into its stream."""
    first, *rest = fork.inherited
    start = _start(session, agent, first, fork, track)
    stamped = [event.model_copy(update=track.identity.fields()) for event in (start, *rest)]
    for event in await session.writer.append(track.identity.stream_id, stamped):
        track.context.apply_event(event)
    track.begun = True
    for notice in fork.notices:
        await track.context.record(NoticeEvent(code="fork_files", message=notice))
    if fork.knowledge:
        known = {name: KnowledgeDelta(value=value, pinned=True) for name, value in fork.knowledge.items()}
        await track.context.record(PacketUpdateEvent(source=FORK, delta=PacketDelta(knowledge=known)))
    if fork.say:
        await track.user(fork.say)


def _start(session: Session, agent: Agent, first: Event, fork: ForkPlan, track: Track) -> Event:
    """The first event of the fork: as its parent's, with the model, tools and limits that it goes on with."""
    definition = session.overrides.definition(agent.definition)
    parent = dict(fork.plan.parent or {})
    constraints = dict(_start_of([first]).constraints)
    if parent.get("relation") == CONTINUE:
        constraints["max_turns"] = session.limits(definition, parent["turn"]).max_turns
    return first.model_copy(
        update={
            "remora": __version__,
            "definition": definition.model_dump(mode="json", by_alias=True, exclude_defaults=True),
            "tools": tuple(tool.model_dump() for tool in track.tools),
            "budget": {"limit": track.limit, "exact": session.deciders.counter.exact},
            "projector": PROJECTOR,
            "model": {"policy": session.deciders.policy(definition).name, **session.deciders.record},
            "constraints": constraints,
            "parent": parent,
        }
    )
