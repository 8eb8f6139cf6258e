"""Running agents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from remora.app._project import Project
from remora.context.budget import check_limit
from remora.context.contracts import ToolSpec
from remora.context.recall import RECALL
from remora.context.render import fixed_tokens, system_text
from remora.context.summarizers import FALLBACK, Summarizer, SummarizerRegistry, is_built_in
from remora.errors import BudgetError, ConfigError
from remora.events import (
    new_id,
)
from remora.orchestrator import Coordinator, Plan, plan_jobs
from remora.ports import AgentResult, Job, Policy, SummaryGuard
from remora.runner import Runner
from remora.subagent import SUBMIT_RESULT, SubagentDefinition
from remora.trace import FileTrace
from remora.twotrack import Identity, TwoTrack

if TYPE_CHECKING:
    from remora.scripts import Agent, ScriptPool

PolicyName = Literal["scripted", "first-candidate", "random"]
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)


class Running(Project):
    """Plans and runs agents over the project."""

    @cached_property
    def summarizers(self) -> SummarizerRegistry:
        """By the names that agent definitions use."""
        return SummarizerRegistry(_installed_summarizers)

    def plan(self, paths: Sequence[Path], operations: Sequence[str], policy: PolicyName) -> Plan:
        """What a run over `paths` would do. Raises `ConfigError` before anything has run."""
        from remora.discovery import TreeSitterDiscovery

        agents = self._agents(operations)
        self._check_state_dir()
        for agent in agents.values():
            self._check_limit(agent)
        discovery = TreeSitterDiscovery(self.root, state_dir=self.state_dir)
        nodes = discovery.find(paths)
        run_id = new_id(self.clock.now())
        definitions = {name: agent.definition for name, agent in agents.items()}
        return Plan(
            run_id=run_id,
            root=str(self.root),
            paths=tuple(map(str, paths)),
            operations=tuple(operations),
            policy=policy,
            limit=self.config.runner.memory.packet_size_limit,
            jobs=plan_jobs(run_id, nodes, definitions, self.clock),
            problems=tuple(discovery.problems),
        )

    async def run(self, plan: Plan) -> AsyncIterator[AgentResult]:
        """Run the plan's agents and give each result as it is recorded."""
        from remora.engines import LocalEngine
        from remora.sandbox import SummaryChild
        from remora.scripts import ScriptPool

        agents = self._agents(plan.operations)
        async with ScriptPool() as pool, SummaryChild() as guard, self._writer() as writer:

            async def execute(job: Job) -> AgentResult:
                return await self._runner(job, agents[job.operation], plan.policy, writer, pool, guard).run()

            engine = LocalEngine(execute, at_once=self.config.runner.max_concurrent)
            async for result in Coordinator(writer, engine).run(plan):
                yield result

    def _runner(
        self, job: Job, agent: Agent, policy: str, writer: FileTrace, pool: ScriptPool, guard: SummaryGuard
    ) -> Runner:
        from remora.inference import EstimatedCounter
        from remora.sandbox import LocalSpawner
        from remora.scripts import ScriptTools
        from remora.workspaces import OverlayWorkspace

        definition, node = agent.definition, job.node
        workspace = OverlayWorkspace(self.root, self.state_dir / "workspaces" / job.agent_id)
        tools = ScriptTools(
            definition,
            agent.scripts,
            node=node,
            agent_id=job.agent_id,
            workspace=workspace,
            spawner=LocalSpawner(),
            root=self.root,
            pool=pool,
        )
        track = TwoTrack(
            Identity(job.agent_id, job.run_id, job.operation, node.node_id),
            goal=definition.goal.format(node=node.node_id, file=node.file_path.as_posix()),
            tools=(*tools.specs, *_built_in_tools(definition)),
            system_prompt=definition.system_prompt,
            limit=self.config.runner.memory.packet_size_limit,
            writer=writer,
            blobs=self.blobs,
            counter=EstimatedCounter(),
            clock=self.clock,
            summarizers=self._summarizers(definition),
            secrets=self.secrets,
            guard=guard,
            fallback=FALLBACK,
            extensions=definition.extensions,
            style=definition.rendering,
        )
        return Runner(
            track,
            definition,
            node,
            policy=_policy(policy, definition),
            tools=tools,
            workspace=workspace,
            max_turns=min(definition.max_turns, self.config.runner.max_turns or definition.max_turns),
        )

    def _check_limit(self, agent: Agent) -> None:
        """Raises `ConfigError` if a prompt of this agent could ever be over the limit."""
        from remora.inference import EstimatedCounter
        from remora.scripts import tool_specs

        counter, definition = EstimatedCounter(), agent.definition
        tools = (*tool_specs(definition, agent.scripts), *_built_in_tools(definition))
        fixed = fixed_tokens(system_text(definition.system_prompt, tools), counter)
        try:
            check_limit(fixed, self.config.runner.memory.packet_size_limit, counter.count)
        except BudgetError as error:
            raise ConfigError(error.message, hint=error.hint) from error

    def _check_state_dir(self) -> None:
        if self.state_dir.exists() and not self.state_dir.is_dir():
            raise ConfigError(f"`{self.state_dir}` is not a folder: expected one for Remora's state")

    def _agents(self, operations: Sequence[str]) -> dict[str, Agent]:
        from remora.scripts import load_agent

        agents = {name: load_agent(bundled_agents(), name) for name in operations}
        for agent in agents.values():
            self._check_summarizers(agent.definition)
        return agents

    def _summarizers(self, definition: SubagentDefinition) -> dict[str, Summarizer]:
        return self.summarizers.for_agent(definition.summarizers, self.config.runner.memory.summarizer_mode)

    def _check_summarizers(self, definition: SubagentDefinition) -> None:
        """Raises `ConfigError` for a summarizer that is not known, or that the guard could never run."""
        from remora.sandbox import SummaryChild

        for tool, summarizer in self._summarizers(definition).items():
            if not is_built_in(summarizer):
                SummaryChild().check(tool, summarizer)


def _built_in_tools(definition: SubagentDefinition) -> tuple[ToolSpec, ...]:
    return (RECALL, SUBMIT_RESULT) if definition.recall else (SUBMIT_RESULT,)


def bundled_agents() -> Path:
    """Where the agents that ship with Remora lie: in the wheel, or beside the sources of a checkout."""
    package = Path(__file__).parents[1]
    shipped = package / "agents"
    return shipped if shipped.is_dir() else package.parents[1] / "agents"


def _policy(name: str, definition: SubagentDefinition) -> Policy:
    from remora.inference import FirstCandidatePolicy, RandomPolicy, ScriptedPolicy

    if name == "scripted":
        return ScriptedPolicy(definition.script)
    return RandomPolicy() if name == "random" else FirstCandidatePolicy()


def _installed_summarizers() -> dict[str, str]:
    from remora.sandbox import installed_summarizers

    return installed_summarizers()


def sandbox_name() -> str:
    """The OS sandbox that project code would run in on this machine, or `none`."""
    from remora.sandbox import probe

    return probe().applies
