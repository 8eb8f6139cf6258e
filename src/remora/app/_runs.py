"""Plans and runs agents: from paths and operations to results."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remora.app._building import Building
from remora.app._deciding import EMBEDDED, NO_MODEL, TRAINED_LIMIT
from remora.app._decisions import NOT_TAKEN
from remora.app._interrupted import Interrupted
from remora.app._ladder import check_ladder, rung_names, servers_of
from remora.app._mcp import mcp_names
from remora.app._merging import Merging
from remora.app._naming import check_named, check_operations, selection, split_paths, turned_off
from remora.app._overrides import NO_OVERRIDES, RunOverrides
from remora.app._project import Project
from remora.app._retention import carry_out_retention
from remora.app._session import Session, open_session
from remora.config import EngineConfig
from remora.errors import ConfigError
from remora.events import AgentScheduledEvent, Event, ids_behind
from remora.nodes import CodeNode
from remora.orchestrator import Coordinator, LastPass, Plan, meetings, plan_jobs
from remora.ports import AgentResult, Engine, Job
from remora.trace import read_events

if TYPE_CHECKING:
    from remora.app._forking import ForkPlan
    from remora.sandbox import SandboxReport

Execute = Callable[[Job], Awaitable[AgentResult]]


class Runs:
    """Plans and runs agents over the project, and continues runs that were interrupted."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self.notices: list[str] = []
        """What a run did beside running its agents: the streams that retention deleted."""

    def plan(
        self,
        paths: Sequence[Path],
        operations: Sequence[str],
        only: Callable[[CodeNode], bool] | None = None,
        answer: str | None = None,
    ) -> Plan:
        """Plan a run over `paths` without starting it. Raises `ConfigError` if it cannot start.

        A path may name a definition, as agents' lines do: `src/cart.py:Cart.add`.
        With `answer`, a larger model's recorded answer, only the agent that it is about is planned, and starts with it.
        """
        check_ladder(self._project.config)
        self._check_engine()
        check_operations(self._project.settings, self._project.agents.sources())
        wanted = [name for name in operations if self._project.operation(name).enabled]
        off = turned_off(self._project.settings, operations)
        agents = self._project.agents.load(wanted)
        self._check_state_dir()
        discovery = self._project.discovery()
        named, root = split_paths(paths), self._project.root
        found = [
            node for node in discovery.find([each.path for each in named]) if node.file_path not in discovery.broken
        ]
        check_named(named, found, root)
        chosen = [check for check in (only, selection(named, root)) if check is not None]
        nodes = [node for node in found if all(check(node) for check in chosen)]
        run_id = self._project.library.new_id(self._project.clock.now())
        definitions = {name: agents[name].definition for name in sorted(agents, key=self._rank)}
        return Plan(
            run_id=run_id,
            root=str(self._project.root),
            paths=tuple(map(str, paths)),
            operations=tuple(definitions),
            policy=self._project.server.server,
            model=self.model_name(),
            settings=self.recorded_settings(),
            limit=self.prompt_limit(),
            ladder=rung_names(self._project.config),
            servers=servers_of(self._project.config),
            mcp=mcp_names(agents.values()),
            jobs=self._answered(
                plan_jobs(run_id, nodes, definitions, ids_behind(run_id), whole_files=not chosen and self._by_rule),
                answer,
            ),
            problems=(*off, *discovery.problems),
        )

    def _answered(self, jobs: tuple[Job, ...], answer: str | None) -> tuple[Job, ...]:
        """The jobs, or only the one that an answer is about."""
        if answer is None:
            return jobs
        found, start = self._project.escalations.read(answer)
        about = (start.operation, start.node_id)
        mine = [job for job in jobs if (job.operation, job.node.node_id) == about and not job.stage]
        if not mine:
            raise ConfigError(
                f"The answer is about `{start.operation}` on `{start.node_id:.200}`, which this run does not include",
                hint=f"Name its file, and the operation with `-o {start.operation}`",
            )
        return tuple(replace(job, answer=found.agent_id) for job in mine)

    async def run(
        self,
        plan: Plan,
        past: Callable[[Job], Sequence[Event]] = lambda job: (),
        overrides: RunOverrides = NO_OVERRIDES,
    ) -> AsyncIterator[AgentResult]:
        """Run the plan's agents and yield each result when it is recorded. `past` returns a job's earlier events."""
        agents = self._project.agents.load(plan.operations)
        async with open_session(self._project, agents, overrides) as session:
            for ended in plan.ended:
                session.count_past(self.past_events(ended.agent_id))

            async def execute(job: Job) -> AgentResult:
                return await session.execute(job, past(job))

            # A run with overrides compares single agents, so there is no last pass over merged changes.
            alone = overrides is not NO_OVERRIDES
            last_pass = None if alone else partial(self._last_pass, plan, session)
            build_on = None if alone else Building(self._project, self._has_begun).jobs
            async with self._engine(plan, execute, session, overrides) as engine:
                coordinator = Coordinator(session.writer, engine, last_pass, build_on)
                async with aclosing(coordinator.run(plan)) as results:
                    async for result in results:
                        yield result
            if sentence := await carry_out_retention(self._project, session.writer, plan.run_id):
                self.notices.append(sentence)

    @asynccontextmanager
    async def _engine(
        self, plan: Plan, execute: Execute, session: Session, overrides: RunOverrides
    ) -> AsyncIterator[Engine]:
        """The engine that the settings name. Only this method knows which one it is."""
        from remora.engines import LocalEngine

        if self._project.config.engine.name == "local" or overrides is not NO_OVERRIDES:
            at_once = self._project.config.runner.max_concurrent
            yield LocalEngine(execute, at_once=at_once, abandon=session.abandoned.set)
            return
        from remora.app._fleet import describe_placement, ray_engine

        async with ray_engine(session, plan) as engine:
            yield engine
            if event := describe_placement(engine.placed, plan.run_id):
                await session.writer.append(f"runs/{plan.run_id}", [event])
                self.notices.append(event.message)

    async def analyze(self, paths: Sequence[Path | str], operations: Sequence[str] = ("lint",)) -> list[AgentResult]:
        """Run agents over `paths`. Returns their results in the order of the code. Accepts nothing."""
        plan = self.plan([Path(path) for path in paths], operations)
        return plan.in_order([result async for result in self.run(plan)])

    def settings_of(self, run: str | None = None) -> dict[str, Any]:
        """The settings of a run, or of the latest one. Raises `ConfigError` for an unknown remote server."""
        return Interrupted(self._project).settings_of(run)

    def resume(self, run: str | None = None) -> tuple[Plan, AsyncIterator[AgentResult]]:
        """The plan of what is left of a run, or of the latest one, and the results of running it."""
        self._check_engine()
        return Interrupted(self._project).resume(run)

    def plan_fork(self, agent: str, at: int, *, say: str = "", knowledge: Mapping[str, Any] | None = None) -> ForkPlan:
        """Plan a new agent that goes on where `agent` was after turn `at`, with the same packet and files.

        `say` is what a person says to it, `knowledge` what its packet holds in addition. Raises `ConfigError`.
        """
        from remora.app._forking import Forking

        return Forking(self._project).plan(agent, at, say=say, knowledge=knowledge)

    def plan_again(self, agent: str, *, say: str = "") -> ForkPlan:
        """Plan a new agent that goes on where `agent` ended, with its packet and files, for as many turns again.

        `say` is what a person says to it. `fork` runs the plan. Raises `ConfigError`.
        """
        from remora.app._forking import Forking

        return Forking(self._project).plan_again(agent, say=say)

    def fork(self, plan: ForkPlan) -> AsyncIterator[AgentResult]:
        """Run a fork to its end, in a run of its own. Accepts nothing."""
        from remora.app._forking import Forking

        return Forking(self._project).run(plan)

    def watch(self, paths: Sequence[Path], operations: Sequence[str]) -> AsyncIterator[Plan]:
        """Yield a plan after each pause in editing, for the changed nodes. The first plan is empty."""
        from remora.app._watching import Watcher

        return Watcher(self._project).watch(paths, operations)

    def changed_nodes(self, reference: str) -> Callable[[CodeNode], bool]:
        """A function that tells whether a node's lines differ from a commit. Raises `ConfigError` if git fails."""
        from remora.sandbox import changed_lines

        changed = changed_lines(self._project.root, reference)

        def is_changed(node: CodeNode) -> bool:
            lines = changed.get(node.file_path.as_posix(), [])
            return any(mine.first <= last and first <= mine.last for mine in node.owned for first, last in lines)

        return is_changed

    async def _last_pass(self, plan: Plan, session: Session, done: Sequence[AgentResult]) -> LastPass:
        """Plan the agents for problems that appear when all changes are merged."""

        async def count(job: Job) -> int | None:
            return await (await session.runner(job)).count_problems()

        if session.is_out_of_time:
            return LastPass()
        definitions = {name: agent.definition for name, agent in session.agents.items()}
        scheduled = dict.fromkeys(event.agent_id for event in self._scheduled(plan.run_id))
        order = {agent_id: place for place, agent_id in enumerate(scheduled)}
        found = meetings(sorted(done, key=lambda result: order[result.agent_id]), definitions, NOT_TAKEN)
        ids = ids_behind(max(order, default=plan.run_id))
        return await Merging(plan.run_id, self._project.blobs, ids, count, self._drop_workspace).last_pass(found)

    def _scheduled(self, run_id: str) -> list[AgentScheduledEvent]:
        """The agents of a run in the order in which their changes are accepted."""
        events = read_events(self._project.library.file(f"runs/{run_id}"), torn_ok=True)
        return [event for event in events if isinstance(event, AgentScheduledEvent)]

    def past_events(self, agent_id: str) -> list[Event]:
        """The recorded events of an agent, without an unfinished last line; empty if it has no stream."""
        paths = self._project.library.files([f"traces/{agent_id}"])
        return [event for path in paths for event in read_events(path, torn_ok=True)]

    def _has_begun(self, agent_id: str) -> bool:
        return bool(self._project.library.files([f"traces/{agent_id}"]))

    def _drop_workspace(self, agent_id: str) -> None:
        """Delete the workspace of an agent that is not needed."""
        from remora.workspaces import workspace_folder

        shutil.rmtree(workspace_folder(self._project.state_dir, agent_id), ignore_errors=True)

    def recorded_settings(self) -> dict[str, Any]:
        """The settings that a run records, so that it can be resumed."""
        server, runner = self._project.server, self._project.config.runner
        return {
            "server.server": server.server,
            "server.model": server.model,
            **({"escalation": [rung.model for rung in self._project.config.escalation]} if self._is_ladder else {}),
            "runner.memory.enabled": runner.memory.enabled,
            "runner.max_turns": runner.max_turns,
            **({} if runner.by_rule else {"runner.by_rule": False}),
        }

    @property
    def _by_rule(self) -> bool:
        return self._project.config.runner.by_rule

    @property
    def _is_ladder(self) -> bool:
        return len(self._project.config.escalation) > 1

    def model_name(self) -> str:
        """The model that the settings name."""
        server = self._project.server
        if server.server != EMBEDDED:
            return server.model
        from remora.app._catalogue import chosen_model

        return chosen_model(server).title

    def prompt_limit(self) -> int | None:
        """The prompt limit, if it is known without asking the server for its context window."""
        server, own = self._project.server, self._project.config.runner.memory.packet_size_limit
        if own or server.server in NO_MODEL:
            return own or TRAINED_LIMIT
        if server.server != EMBEDDED:
            return None
        from remora.app._catalogue import chosen_model

        return chosen_model(server).entry.prompt_limit

    def _rank(self, name: str) -> int:
        return -self._project.operation(name).priority

    def _check_engine(self) -> None:
        """Raises `ConfigError` if the engine of the settings cannot be used, before anything is planned."""
        if self._project.config.engine != EngineConfig():
            from remora.app._fleet import check_engine

            check_engine(self._project)

    def _check_state_dir(self) -> None:
        """Raises `ConfigError` if the state folder is not writable."""
        self._project.check_own_state()
        existing = next(
            folder for folder in (self._project.state_dir, *self._project.state_dir.parents) if folder.exists()
        )
        try:
            with tempfile.TemporaryFile(dir=existing):
                pass
        except OSError as error:
            raise ConfigError(
                f"`{self._project.state_dir}` cannot hold Remora's state: `{existing}`: {error.strerror}",
                hint="Name a folder that you may write to with `--state-dir`",
            ) from error


def sandbox_name() -> str:
    """The OS sandbox that isolates project code on this machine, or `none`."""
    return sandbox_report().applies


def sandbox_report() -> SandboxReport:
    """Which OS sandboxes work on this machine, and why the others do not."""
    from remora.sandbox import probe

    return probe()
