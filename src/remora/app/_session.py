"""The parts that a run opens, and the runner of each agent. Every way to start an agent uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from remora.analysis import continued_turns
from remora.app._deciding import Deciders, deciders
from remora.app._functions import MixedTools
from remora.app._hub import open_hub
from remora.app._ladder import AgentLadder, Rungs, check_ladder
from remora.app._mcp import open_mcp
from remora.app._overrides import NO_OVERRIDES, RunOverrides
from remora.app._project import Project
from remora.app._target import Target, contents_after, fork_target, pin_target, restore_target
from remora.config import EscalationConfig, RunnerConfig
from remora.context.budget import check_limit
from remora.context.contracts import ToolSpec
from remora.context.recall import RECALL
from remora.context.render import fixed_tokens, reserved_tokens, system_text
from remora.errors import BudgetError, ConfigError
from remora.escalation import Rung
from remora.events import Event, FileChange
from remora.orchestrator import not_run
from remora.ports import AgentResult, Job, SummaryGuard, Tools
from remora.runner import Advice, RunLimits, Runner
from remora.subagent import ESCALATE, NO_TOOL_FITS, SUBMIT_RESULT, SubagentDefinition
from remora.trace import KVTraceView, StreamWriter
from remora.twotrack import Identity, Memory, PromptSettings, Track, Wiring

if TYPE_CHECKING:
    from remora.hub import HubClient
    from remora.mcp import McpTools
    from remora.scripts import Agent, ScriptPool, Survey
    from remora.workspaces import OverlayWorkspace

UNLIMITED = 1_000_000_000
"""Token limit that stands for no limit, for chat history."""


@dataclass(frozen=True)
class Session:
    """The open parts that all agents of a run share."""

    project: Project
    agents: Mapping[str, Agent]
    deciders: Deciders
    writer: StreamWriter
    pool: ScriptPool
    guard: SummaryGuard
    hub: HubClient | None
    view: KVTraceView
    until: float | None
    """Deadline of the whole run, by the monotonic clock."""
    overrides: RunOverrides = NO_OVERRIDES
    rungs: Rungs | None = None
    """The ladder; None without one."""
    mcp: Mapping[str, McpTools] = field(default_factory=dict)
    """The tools of MCP servers by agent."""
    survey: Survey | None = None
    """How often the project's files break the rules of its linter."""
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the run's own stream failed: cancelled agents then leave their streams unsealed, for a resume."""

    async def execute(self, job: Job, past: Sequence[Event] = ()) -> AgentResult:
        """Run one agent to its end. It does not begin when the run's time is over."""
        if self.is_out_of_time and not past:
            return not_run(job, "deadline", "The run's time was over before this agent began")
        return await self.finish(await self.runner(job, past))

    async def finish(self, runner: Runner) -> AgentResult:
        """Run an agent to its end, and update the key-value view if the settings enable it."""
        result = await runner.run()
        if self.project.config.runner.memory.trace_store == "kv":
            await self.view.catch_up(only=[f"traces/{result.agent_id}"])
        return result

    async def runner(
        self, job: Job, past: Sequence[Event] = (), *, forks: Sequence[FileChange] | None = None, resumed: str = ""
    ) -> Runner:
        """Build the runner of one agent. With `past`, it resumes from the state that these events describe.

        `forks` are all changes of the agent that it forks; `resumed` says why it resumes.
        """
        agent = self.agents[job.operation]
        definition = self.overrides.definition(agent.definition)
        workspace = self.project.workspace(job.agent_id)
        target = await self._target(workspace, job, past, forks)
        job = replace(job, node=target.node)
        tools = self.overrides.executor or self.overrides.tools(self._tools(agent, job, workspace, target.base))
        wiring = self._wiring(job, definition, tools.specs, workspace)
        return Runner(
            Track.of(wiring),
            definition,
            job.node,
            policy=await self.deciders.resumed_policy(definition, past, self._first_rung),
            tools=tools,
            workspace=workspace,
            limits=self.limits(definition, continued_turns(past)),
            ladder=self._ladder(definition, wiring, past),
            rules=self._rules(definition),
            model=self.deciders.record | ({"ladder": list(self.rungs.names)} if self.rungs else {}),
            past=past,
            problem=target.problem,
            **({"resumed": resumed} if resumed else {}),
            advice=self._advice(job),
            by_rule=self.project.config.runner.by_rule,
            clean_by=job.clean_by,
            abandoned=self.abandoned.is_set,
        )

    def _advice(self, job: Job) -> Advice | None:
        """The larger model's answer that the agent starts with."""
        if not job.answer:
            return None
        delta = self.project.escalations.delta(job.answer)
        return Advice(f"escalation {job.answer}", delta, {"agent_id": job.answer, "relation": "escalation"})

    @property
    def _first_rung(self) -> str:
        return self.rungs.names[0] if self.rungs else ""

    def _rules(self, definition: SubagentDefinition) -> EscalationConfig:
        """The rules of the settings, with those that the agent's definition names instead."""
        own = {name: getattr(definition.escalation, name) for name in definition.escalation.model_fields_set}
        return self.project.config.runner.escalation.model_copy(update=own)

    def _ladder(self, definition: SubagentDefinition, wiring: Wiring, past: Sequence[Event]) -> AgentLadder | None:
        """The agent's ladder, if the settings name one."""
        if self.rungs is None:
            return None
        rungs, all_tools = self.rungs, wiring.specs
        self.count_past(past)

        async def build(name: str, found: Deciders) -> Rung:
            tools = tuple(tool for tool in all_tools if tool is not ESCALATE or name != rungs.names[-1])
            beside = tools if found.calling == "native" else ()
            system = system_text(wiring.secrets.clean(definition.system_prompt), tools, found.calling)
            limit = rungs.limit(name, found, fixed_tokens(system, found.counter, beside))
            return Rung(
                name=name,
                policy=await found.resumed_policy(definition, past, name),
                prompts=replace(
                    wiring.prompts,
                    limit=limit,
                    calling=found.calling,
                    rung=name,
                    memory="packet",
                    keep_messages=False,
                    done_key=found.done_key(definition),
                    check_tool=found.check_tool(definition),
                    drafts=definition.drafts if found.writes else (),
                ),
                counter=found.counter,
                tools=tools,
                model=found.record,
                reply_tokens=found.reserve,
                price=rungs.price(name),
            )

        return AgentLadder(rungs, build)

    def count_past(self, events: Sequence[Event]) -> None:
        """Count what an earlier part of the run asked of larger models, towards its limits."""
        if self.rungs is not None:
            self.rungs.meter.add_past(list(events), self.rungs.prices, self._first_rung)

    @property
    def is_out_of_time(self) -> bool:
        return self.until is not None and self.project.clock.monotonic() >= self.until

    def check_budgets(self) -> None:
        """Raises `ConfigError` if the fixed parts of an agent's prompt leave too little room within its limit."""
        from remora.scripts import tool_specs

        for agent in self.agents.values():
            functions = (function.spec for function in self.project.agents.functions(agent).values())
            servers = self.mcp[agent.definition.name].specs if agent.definition.name in self.mcp else ()
            own = (*tool_specs(agent.definition, agent.scripts), *functions, *servers)
            tools = self.overrides.executor.specs if self.overrides.executor else own
            self._check_budget(agent.definition, (*tools, *self._built_in_tools(agent.definition)))

    def _check_budget(self, definition: SubagentDefinition, tools: Sequence[ToolSpec]) -> None:
        fixed = self._fixed_tokens(definition, tools)
        try:
            check_limit(fixed, self._limit(fixed), reserved_tokens(definition.rendering, self.deciders.counter.count))
        except BudgetError as error:
            # Native tool schemas take about twice the tokens of tools that are listed in the prompt.
            native = self.deciders.calling == "native"
            shorter = "Set `server.mode: json` if the server can hold a reply to a schema. " if native else ""
            if any(tool.mcp for tool in definition.tools):
                shorter += "List fewer tools of MCP servers, or give them a shorter `description`. "
            raise ConfigError(f"Agent `{definition.name}`: {error.message}", hint=f"{shorter}{error.hint}") from error

    def _fixed_tokens(self, definition: SubagentDefinition, tools: Sequence[ToolSpec]) -> int:
        calling = self.deciders.calling
        beside = tools if calling == "native" else ()
        return fixed_tokens(system_text(definition.system_prompt, tools, calling), self.deciders.counter, beside)

    def _limit(self, fixed: int) -> int:
        """The limit of a whole prompt. `fixed` is the number of tokens of system text and tools."""
        memory = self.project.config.runner.memory
        if not memory.enabled:
            return self.deciders.limit(memory.history_limit or UNLIMITED)
        return self.deciders.limit(memory.packet_size_limit or self.deciders.default_limit(fixed))

    async def _target(
        self, workspace: OverlayWorkspace, job: Job, past: Sequence[Event], forks: Sequence[FileChange] | None
    ) -> Target:
        project = self.project
        over = await contents_after(job.over, project.blobs)
        if forks is not None:
            return await fork_target(workspace, job.node, past, project.blobs, over, forks)
        if past:
            return await restore_target(workspace, job.node, past, project.blobs, over)
        await workspace.restore(over)
        if over:
            return Target(job.node, over.get(job.node.file_path.as_posix()))
        if not job.node.digest:  # built by a caller, not found by discovery: there is no version to check
            return Target(job.node, None)
        return await pin_target(workspace, job.node, project.discovery)

    def _tools(self, agent: Agent, job: Job, workspace: OverlayWorkspace, base: bytes | None) -> Tools:
        from remora.discovery import PythonCode
        from remora.sandbox import LocalSpawner
        from remora.scripts import ScriptTools

        project = self.project
        scripts = ScriptTools(
            agent.definition,
            agent.scripts,
            node=job.node,
            agent_id=job.agent_id,
            workspace=workspace,
            spawner=LocalSpawner(
                allow_unsandboxed=project.config.sandbox.allow_unsandboxed,
                extra={item.name: item.flags for item in agent.definition.commands if not isinstance(item, str)},
            ),
            root=project.root,
            pool=self.pool,
            code=PythonCode(),
            base=base,
            stage=job.stage,
            survey=None if project.operation(job.operation).strict else self.survey,
        )
        return MixedTools(
            agent.definition, scripts, project.agents.functions(agent), self.mcp.get(agent.definition.name)
        )

    def _wiring(
        self, job: Job, definition: SubagentDefinition, specs: Sequence[ToolSpec], workspace: OverlayWorkspace
    ) -> Wiring:
        project, node, deciders = self.project, job.node, self.deciders
        identity = Identity(job.agent_id, job.run_id, job.operation, node.node_id)
        tools = (*specs, *self._built_in_tools(definition))
        return Wiring(
            identity=identity,
            goal=definition.goal.format(node=node.node_id, file=node.file_path.as_posix()),
            tools=tools,
            system_prompt=definition.system_prompt,
            prompts=PromptSettings(
                limit=self._limit(self._fixed_tokens(definition, tools)),
                style=definition.rendering,
                calling=deciders.calling,
                limit_name="runner.memory.packet_size_limit",
                memory=self._memory(),
                keep_messages=self.overrides.keep_messages,
                rung=self._first_rung,
                done_key=deciders.done_key(definition),
                check_tool=deciders.check_tool(definition),
                drafts=definition.drafts if deciders.writes else (),
            ),
            writer=self.writer,
            blobs=project.blobs,
            counter=deciders.counter,
            clock=project.clock,
            summarizers=project.agents.summarizers_of(definition, self.agents[job.operation].files),
            guard=self.guard,
            secrets=project.secrets,
            extensions=definition.extensions,
            rules=definition.candidate_rules,
            hub=self.hub.seen_by(workspace) if self.hub else None,
            path=project.state_dir / f"{identity.stream_id}.jsonl",
        )

    def _built_in_tools(self, definition: SubagentDefinition) -> tuple[ToolSpec, ...]:
        asks = self.rungs is not None and self._rules(definition).ask
        optional = ((RECALL, definition.recall), (ESCALATE, asks), (NO_TOOL_FITS, definition.decline))
        return (*(tool for tool, wanted in optional if wanted), SUBMIT_RESULT)

    def _memory(self) -> Memory:
        memory = self.project.config.runner.memory
        if memory.enabled:
            return "packet"
        return "history" if memory.history_limit is None else "cut history"

    def limits(self, definition: SubagentDefinition, earlier_turns: int = 0) -> RunLimits:
        """An agent's limits. `earlier_turns` are those before it was continued, which do not count."""
        project = self.project
        left = None if self.until is None else max(0.001, self.until - project.clock.monotonic())
        limits = run_limits(definition, project.config.runner, project.operation(definition.name).max_turns, left)
        return replace(limits, max_turns=limits.max_turns + earlier_turns)


@asynccontextmanager
async def open_session(
    project: Project, agents: Mapping[str, Agent], overrides: RunOverrides = NO_OVERRIDES
) -> AsyncIterator[Session]:
    """Open what the agents of a run share. Raises `ConfigError` if there is no model or a budget is too small."""
    from remora.sandbox import LocalSpawner, SummaryChild
    from remora.scripts import ScriptPool, Survey

    project.check_own_state()
    project.changes.settle()
    total = project.config.runner.total_deadline_s
    until = None if total is None else project.clock.monotonic() + total
    async with AsyncExitStack() as stack:
        found = overrides.deciders
        if found is None:
            check_ladder(project.config)
            found = await stack.enter_async_context(deciders(project.server))
        session = Session(
            project=project,
            agents=agents,
            deciders=found,
            writer=await stack.enter_async_context(project.writer()),
            pool=await stack.enter_async_context(ScriptPool()),
            guard=await stack.enter_async_context(SummaryChild()),
            hub=await stack.enter_async_context(open_hub(project)),
            view=await stack.enter_async_context(project.trace_view()),
            until=until,
            overrides=overrides,
            rungs=_rungs(project, found, stack, overrides),
            mcp=await stack.enter_async_context(open_mcp(project, {} if overrides.executor else agents)),
            survey=Survey(LocalSpawner(), project.root),
        )
        session.check_budgets()
        yield session


def _rungs(project: Project, first: Deciders, stack: AsyncExitStack, overrides: RunOverrides) -> Rungs | None:
    """The ladder of the settings. A caller that chooses the decider itself has one only if it also gives its rungs."""
    if len(project.config.escalation) < 2 or (overrides.deciders is not None and not overrides.rungs):
        return None
    return Rungs(project.config, first, stack, overrides.rungs)


def run_limits(
    definition: SubagentDefinition, runner: RunnerConfig, max_turns: int | None = None, left_s: float | None = None
) -> RunLimits:
    """An agent's limits: the smallest of the definition, the settings and the time left."""
    turns = [definition.max_turns, runner.max_turns, max_turns]
    deadlines = [seconds for seconds in (runner.deadline_s, left_s) if seconds is not None]
    return RunLimits(
        max_turns=min(number for number in turns if number is not None),
        max_errors=runner.max_errors,
        max_repeats=runner.max_repeats,
        retries=runner.retries,
        deadline_s=min(deadlines, default=None),
    )
