"""Running agents: from paths and operations to results, and on from where a run was interrupted."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remora.app._agents import Agents
from remora.app._changing import Changing
from remora.app._deciding import EMBEDDED, Deciders, deciders
from remora.app._decisions import NOT_TAKEN
from remora.app._functions import MixedTools
from remora.app._hub import hub_beside
from remora.app._instead import NOTHING, Instead
from remora.app._merging import Merging
from remora.app._target import Target, begin, contents, take_up
from remora.config import OperationConfig, RunnerConfig
from remora.context.budget import check_limit
from remora.context.contracts import ToolSpec
from remora.context.recall import RECALL
from remora.context.render import fixed_tokens, system_text
from remora.context.summarizers import FALLBACK
from remora.errors import BudgetError, ConfigError
from remora.events import AgentScheduledEvent, Event, ids_behind
from remora.nodes import CodeNode
from remora.orchestrator import Coordinator, LastPass, Plan, meetings, not_run, plan_jobs
from remora.ports import AgentResult, Job, SummaryGuard, Tools, Workspace
from remora.prompting import Memory
from remora.runner import RunLimits, Runner
from remora.subagent import SUBMIT_RESULT, SubagentDefinition
from remora.trace import FileTrace, new_stream_id, read_events
from remora.twotrack import Identity, TwoTrack

if TYPE_CHECKING:
    from remora.discovery import TreeSitterDiscovery
    from remora.hub import HubClient
    from remora.sandbox import SandboxReport
    from remora.scripts import Agent, ScriptPool
    from remora.workspaces import OverlayWorkspace

UNLIMITED = 1_000_000_000
"""Tokens of a chat history that nobody limits."""


@dataclass(frozen=True)
class _Shared:
    """What all agents of a run use together."""

    agents: dict[str, Agent]
    deciders: Deciders
    writer: FileTrace
    pool: ScriptPool
    guard: SummaryGuard
    until: float | None
    """When the whole run must end, by the monotonic clock."""
    instead: Instead = NOTHING
    hub: HubClient | None = None


class Running(Agents, Changing):
    """Plans and runs agents over the project."""

    def plan(
        self,
        paths: Sequence[Path],
        operations: Sequence[str],
        only: Callable[[CodeNode], bool] | None = None,
    ) -> Plan:
        """What a run over `paths` would do. Raises `ConfigError` before anything has run."""
        wanted = [name for name in operations if self._operation(name).enabled]
        agents = self.load_agents(wanted)
        self._check_state_dir()
        discovery = self._discovery()
        found = [node for node in discovery.find(paths) if node.file_path not in discovery.broken]
        nodes = [node for node in found if only is None or only(node)]
        run_id = new_stream_id(self.state_dir, self.clock.now())
        definitions = {name: agents[name].definition for name in sorted(agents, key=self._rank)}
        return Plan(
            run_id=run_id,
            root=str(self.root),
            paths=tuple(map(str, paths)),
            operations=tuple(definitions),
            policy=self.config.server.server,
            model=self._model_name(),
            settings=self._recorded_settings(),
            limit=self.config.runner.memory.packet_size_limit,
            jobs=plan_jobs(run_id, nodes, definitions, ids_behind(run_id)),
            problems=tuple(discovery.problems),
        )

    async def run(
        self, plan: Plan, past: Callable[[Job], Sequence[Event]] = lambda job: (), instead: Instead = NOTHING
    ) -> AsyncIterator[AgentResult]:
        """Run the plan's agents and give each result as it is recorded. `past`: what is recorded of a job already."""
        from remora.engines import LocalEngine
        from remora.sandbox import SummaryChild
        from remora.scripts import ScriptPool

        self.check_own_state()
        self.settle()
        agents = self.load_agents(plan.operations)
        total = self.config.runner.total_deadline_s
        until = None if total is None else self.clock.monotonic() + total
        async with AsyncExitStack() as open_:
            found = instead.deciders
            if found is None:
                found = await open_.enter_async_context(deciders(self.config.server))
            for agent in agents.values():
                self._check_limit(agent, found)
            shared = _Shared(
                agents,
                found,
                await open_.enter_async_context(self._writer()),
                await open_.enter_async_context(ScriptPool()),
                await open_.enter_async_context(SummaryChild()),
                until,
                instead,
                await open_.enter_async_context(hub_beside(self)),
            )

            async def execute(job: Job) -> AgentResult:
                if until is not None and self.clock.monotonic() >= until:
                    return not_run(job, "deadline", "The run's time was over before this agent began")
                return await (await self._runner(job, shared, past(job))).run()

            engine = LocalEngine(execute, at_once=self.config.runner.max_concurrent)
            view = await open_.enter_async_context(self.trace_view())
            # Who puts parts of its own in the place of a run's tries one agent: nothing is to come after it.
            again = partial(self._look_again, plan, shared) if instead is NOTHING else None
            async for result in Coordinator(shared.writer, engine, again).run(plan):
                if self.config.runner.memory.trace_store == "kv":
                    await view.catch_up(only=[f"traces/{result.agent_id}"])
                yield result

    async def _look_again(self, plan: Plan, shared: _Shared, done: Sequence[AgentResult]) -> LastPass:
        """The agents that what all changes come to together still needs."""

        async def count(job: Job) -> int | None:
            return (await (await self._runner(job, shared, ())).look()).count

        if shared.until is not None and self.clock.monotonic() >= shared.until:
            return LastPass()
        definitions = {name: agent.definition for name, agent in shared.agents.items()}
        order = {event.agent_id: place for place, event in enumerate(self._scheduled(plan.run_id))}
        found = meetings(sorted(done, key=lambda result: order[result.agent_id]), definitions, NOT_TAKEN)
        ids = ids_behind(max(order, default=plan.run_id))
        return await Merging(plan.run_id, self.blobs, ids, count, self._drop_workspace).last_pass(found)

    def _scheduled(self, run_id: str) -> list[AgentScheduledEvent]:
        """The agents of a run in the order in which their changes are accepted."""
        events = read_events(self.state_dir / "runs" / f"{run_id}.jsonl")
        return [event for event in events if isinstance(event, AgentScheduledEvent)]

    async def _runner(self, job: Job, shared: _Shared, past: Sequence[Event]) -> Runner:
        agent = shared.agents[job.operation]
        definition = shared.instead.definition(agent.definition)
        workspace = self._workspace(job.agent_id)
        target = await self._target_now(workspace, job, past)
        job = replace(job, node=target.node)
        tools = shared.instead.tools(self._tools(agent, job.node, job.agent_id, workspace, shared.pool, target.base))
        specs = (*tools.specs, *_built_in_tools(definition))
        track = self._track(job, definition, specs, shared)
        track.context.set_hub_client(shared.hub.seen_by(workspace) if shared.hub else None)
        return Runner(
            track,
            definition,
            job.node,
            policy=await shared.deciders.caught_up(definition, past),
            tools=tools,
            workspace=workspace,
            limits=self._limits(definition, shared),
            told=shared.deciders.told,
            past=past,
            problem=target.problem,
        )

    async def _target_now(self, workspace: OverlayWorkspace, job: Job, past: Sequence[Event]) -> Target:
        over = await contents(job.over, self.blobs)
        if past:
            return await take_up(workspace, job.node, past, self.blobs, over)
        await workspace.restore(over)
        if over:
            return Target(job.node, over.get(job.node.file_path.as_posix()))
        return await begin(workspace, job.node, self._discovery)

    def _discovery(self) -> TreeSitterDiscovery:
        """What finds the code that the settings leave in."""
        from remora.discovery import TreeSitterDiscovery

        settings = self.config.discovery
        return TreeSitterDiscovery(
            self.root,
            state_dir=self.state_dir,
            queries=self.folder_of("discovery.queries", settings.queries) if settings.queries else None,
            exclude=settings.exclude,
        )

    @asynccontextmanager
    async def hands(
        self, definition: SubagentDefinition, node: CodeNode, agent_id: str
    ) -> AsyncIterator[tuple[Tools, Workspace, CodeNode]]:
        """The tools of an agent, bound to a node and a workspace of its own; and the node as it is now.

        Raises `TargetChanged` if discovery found the node and it is gone.
        """
        from remora.scripts import ScriptPool

        agent = self.load_agents([definition.name])[definition.name]
        workspace = self._workspace(agent_id)
        # A node that someone made by hand is taken as it is.
        target = await begin(workspace, node, self._discovery) if node.digest else Target(node, None)
        async with ScriptPool() as pool:
            tools = self._tools(agent, target.node, agent_id, workspace, pool, target.base)
            yield tools, workspace, target.node

    def _drop_workspace(self, agent_id: str) -> None:
        """Nothing is left of the workspace of an agent that was not needed."""
        from remora.workspaces import workspace_folder

        shutil.rmtree(workspace_folder(self.state_dir, agent_id), ignore_errors=True)

    def _workspace(self, agent_id: str) -> OverlayWorkspace:
        from remora.workspaces import OverlayWorkspace, workspace_folder

        limits = self.config.workspace
        return OverlayWorkspace(
            self.root,
            workspace_folder(self.own_state_dir, agent_id),
            max_file_bytes=limits.max_file_bytes,
            max_files=limits.max_files,
        )

    def _tools(
        self,
        agent: Agent,
        node: CodeNode,
        agent_id: str,
        workspace: OverlayWorkspace,
        pool: ScriptPool,
        base: bytes | None = None,
    ) -> Tools:
        from remora.discovery import PythonCode
        from remora.sandbox import LocalSpawner
        from remora.scripts import ScriptTools

        scripts = ScriptTools(
            agent.definition,
            agent.scripts,
            node=node,
            agent_id=agent_id,
            workspace=workspace,
            spawner=LocalSpawner(
                allow_unsandboxed=self.config.sandbox.allow_unsandboxed,
                extra={item.name: item.flags for item in agent.definition.commands if not isinstance(item, str)},
            ),
            root=self.root,
            pool=pool,
            code=PythonCode(),
            base=base,
        )
        return MixedTools(agent.definition, scripts, self.functions(agent))

    def _track(self, job: Job, definition: SubagentDefinition, specs: Sequence[ToolSpec], shared: _Shared) -> TwoTrack:
        node, found = job.node, shared.deciders
        return TwoTrack(
            Identity(job.agent_id, job.run_id, job.operation, node.node_id),
            goal=definition.goal.format(node=node.node_id, file=node.file_path.as_posix()),
            tools=specs,
            system_prompt=definition.system_prompt,
            limit=found.limit(self._wanted_limit()),
            writer=shared.writer,
            blobs=self.blobs,
            counter=found.counter,
            clock=self.clock,
            summarizers=self._summarizers_of(definition, shared.agents[job.operation].files),
            secrets=self.secrets,
            guard=shared.guard,
            fallback=FALLBACK,
            extensions=definition.extensions,
            style=definition.rendering,
            calling=found.calling,
            memory=self._memory(),
            rules=definition.candidate_rules,
        )

    def _limits(self, definition: SubagentDefinition, shared: _Shared) -> RunLimits:
        left = None if shared.until is None else max(0.001, shared.until - self.clock.monotonic())
        return run_limits(definition, self.config.runner, self._operation(definition.name).max_turns, left)

    def _recorded_settings(self) -> dict[str, Any]:
        server, runner = self.config.server, self.config.runner
        return {
            "server.server": server.server,
            "server.model": server.model,
            "runner.memory.enabled": runner.memory.enabled,
            "runner.max_turns": runner.max_turns,
        }

    def _model_name(self) -> str:
        server = self.config.server
        if server.server != EMBEDDED:
            return server.model
        return server.gguf.stem if server.gguf else "SmolLM2-135M"

    def _memory(self) -> Memory:
        memory = self.config.runner.memory
        if memory.enabled:
            return "packet"
        return "history" if memory.history_limit is None else "cut history"

    def _wanted_limit(self) -> int:
        memory = self.config.runner.memory
        return memory.packet_size_limit if memory.enabled else memory.history_limit or UNLIMITED

    def _operation(self, name: str) -> OperationConfig:
        return self.config.operations.get(name, OperationConfig())

    def _rank(self, name: str) -> int:
        return -self._operation(name).priority

    def _check_limit(self, agent: Agent, found: Deciders) -> None:
        """Raises `ConfigError` if a prompt of this agent could ever be over the limit."""
        from remora.scripts import tool_specs

        definition, counter = agent.definition, found.counter
        functions = (function.spec for function in self.functions(agent).values())
        tools = (*tool_specs(definition, agent.scripts), *functions, *_built_in_tools(definition))
        beside = tools if found.calling == "native" else ()
        fixed = fixed_tokens(system_text(definition.system_prompt, tools, found.calling), counter, beside)
        try:
            check_limit(fixed, found.limit(self._wanted_limit()), counter.count)
        except BudgetError as error:
            # Tools as the server's own take twice the tokens of tools in the prompt's text.
            shorter = "Set `server.mode: json` if the server can hold a reply to a schema. " if beside else ""
            raise ConfigError(f"Agent `{definition.name}`: {error.message}", hint=f"{shorter}{error.hint}") from error

    def _check_state_dir(self) -> None:
        """Raises `ConfigError` if nothing could be recorded."""
        self.check_own_state()
        there = next(folder for folder in (self.state_dir, *self.state_dir.parents) if folder.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            raise ConfigError(
                f"`{self.state_dir}` cannot hold Remora's state: `{there}`: {error.strerror}",
                hint="Name a folder that you may write to with `--state-dir`",
            ) from error


def run_limits(
    definition: SubagentDefinition, runner: RunnerConfig, max_turns: int | None = None, left_s: float | None = None
) -> RunLimits:
    """An agent's limits: each the smallest that anyone has set."""
    turns = [definition.max_turns, runner.max_turns, max_turns]
    deadlines = [seconds for seconds in (runner.deadline_s, left_s) if seconds is not None]
    return RunLimits(
        max_turns=min(number for number in turns if number is not None),
        max_errors=runner.max_errors,
        max_repeats=runner.max_repeats,
        retries=runner.retries,
        deadline_s=min(deadlines, default=None),
    )


def _built_in_tools(definition: SubagentDefinition) -> tuple[ToolSpec, ...]:
    return (RECALL, SUBMIT_RESULT) if definition.recall else (SUBMIT_RESULT,)


def sandbox_name() -> str:
    """The OS sandbox that project code runs in on this machine, or `none`."""
    return sandbox_report().applies


def sandbox_report() -> SandboxReport:
    """Which OS sandboxes work on this machine, and why the others do not."""
    from remora.sandbox import probe

    return probe()
