"""Forks an agent: a new stream that goes on from the end of one of its turns, with the same packet and files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remora._version import __version__
from remora.analysis import FORK, inherited_events
from remora.app._interrupted import recorded_node
from remora.app._project import Project
from remora.app._session import Session, open_session, run_limits
from remora.context.projection import PROJECTOR
from remora.errors import ConfigError, WorkspaceError
from remora.events import (
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
from remora.trace import new_stream_id, pick_events, read_events
from remora.twotrack import Track, resume_state

if TYPE_CHECKING:
    from remora.scripts import Agent


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
        project = self._project
        project.check_own_state()
        path = project.library.find(fragment)
        events = list(read_events(path))
        inherited = inherited_events(events, at)
        start = inherited[0]
        if not isinstance(start, AgentStartEvent) or not start.definition:
            raise ConfigError(
                f"Agent {short_id(path.stem)} cannot go on: it was not run by Remora, so there are no tools to run",
                hint="Fork an agent of `remora analyze`; for your own loop, use `TwoTrack`",
            )
        self._check_turn(start, inherited, at, say)
        changes = tuple(change for event in events if isinstance(event, ToolResultEvent) for change in event.files)
        over, notices = self._bases(start, changes)
        run_id = new_stream_id(project.state_dir, project.clock.now())
        agent_id = next(ids_behind(run_id))
        scheduled = AgentScheduledEvent(agent_id=agent_id, operation=start.operation, node_id=start.node_id)
        job = Job(run_id, agent_id, start.operation, recorded_node(scheduled, start.node), over=over)
        last = inherited[-1]
        parent = {"agent_id": start.agent_id, "run_id": start.run_id, "seq": last.seq, "turn": at, "relation": FORK}
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
            jobs=(job,),
            parent=parent | head,
        )
        return ForkPlan(plan, tuple(inherited), changes, say, knowledge or {}, notices)

    async def run(self, fork: ForkPlan) -> AsyncIterator[AgentResult]:
        """Run the fork to its end, in a run of its own."""
        from remora.engines import LocalEngine

        agents = self._project.agents.load(fork.plan.operations)
        async with open_session(self._project, agents) as session:

            async def execute(job: Job) -> AgentResult:
                return await session.finish(await _begin(session, agents[job.operation], job, fork))

            engine = LocalEngine(execute, at_once=1)
            async for result in Coordinator(session.writer, engine).run(fork.plan):
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
        self, start: AgentStartEvent, changes: Sequence[FileChange]
    ) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
        """The files as they were before the agent, where the project has changed since, and what cannot be restored."""
        over = {change.path: change for change in self._scheduled_over(start)}
        notices = []
        for path, change in _first_changes(changes).items():
            now = self._digest_now(path)
            if change.before is None and now is not None:
                notices.append(f"`{path}` exists now, but did not when the agent began: the fork sees it")
            elif change.before is not None and now != change.before:
                over[path] = FileChange(path=path, mode=change.mode, before=now, after=change.before)
        return tuple(over.values()), tuple(notices)

    def _scheduled_over(self, start: AgentStartEvent) -> Sequence[FileChange]:
        run = self._project.state_dir / "runs" / f"{Path(start.run_id).name}.jsonl"
        events = pick_events(run, ("agent_scheduled",)) if start.run_id and run.exists() else ()
        mine = (event for event in events if event.agent_id == start.agent_id)
        found = [event.over for event in mine if isinstance(event, AgentScheduledEvent)]
        return found[-1] if found else ()

    def _digest_now(self, path: str) -> str | None:
        from remora.workspaces import Door

        try:
            return digest(Door(self._project.root).read(path))
        except (OSError, WorkspaceError):
            return None


def _first_changes(changes: Sequence[FileChange]) -> dict[str, FileChange]:
    first: dict[str, FileChange] = {}
    for change in changes:
        first.setdefault(change.path, change)
    return first


async def _begin(session: Session, agent: Agent, job: Job, fork: ForkPlan) -> Runner:
    """Write what the fork inherits into its stream, with what it changes, and return the runner that goes on."""
    track = (await session.runner(job, fork.inherited, forks=fork.changes)).track
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
    past = [event async for event in session.writer.read(track.identity.stream_id)]
    parent = fork.plan.parent or {}
    reason = f"forked from {parent.get('agent_id')} after turn {parent.get('turn')}"
    return await session.runner(job, past, forks=fork.changes, resumed=reason)


def _start(session: Session, agent: Agent, first: Event, fork: ForkPlan, track: Track) -> Event:
    """The first event of the fork: as its parent's, with the model, tools and limits that it goes on with."""
    definition = session.overrides.definition(agent.definition)
    return first.model_copy(
        update={
            "remora": __version__,
            "definition": definition.model_dump(mode="json", exclude_defaults=True),
            "tools": tuple(tool.model_dump() for tool in track.tools),
            "budget": {"limit": track.limit, "exact": session.deciders.counter.exact},
            "projector": PROJECTOR,
            "model": {"policy": session.deciders.policy(definition).name, **session.deciders.record},
            "parent": dict(fork.plan.parent or {}),
        }
    )
