"""The specification's runner: one agent, built from a definition, a node and a server, for programs and tests.

It opens the same session as `remora analyze` and runs the same `Runner`. Only the source of the parts differs.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from remora.app._ladder import LADDER_START
from remora.app._overrides import RunOverrides
from remora.app._session import open_session
from remora.config import RungConfig, RunnerConfig, ServerConfig
from remora.context.contracts import ToolSpec
from remora.context.manager import ContextManager
from remora.errors import AgentError, ConfigError
from remora.nodes import CodeNode
from remora.ports import AgentResult, Job, ToolOutput
from remora.runner import Runner
from remora.snapshot import Snapshot
from remora.subagent import SubagentDefinition
from remora.trace import forget_own
from remora.twotrack import Identity

if TYPE_CHECKING:
    from remora.app._project import Project
    from remora.scripts import Agent


class Executor(Protocol):
    """Runs tools by name, such as `GrailExecutor`."""

    async def execute(self, name: str, args: Mapping[str, Any]) -> Any:
        """Run a tool. Returns its result, or a tuple that begins with it."""
        ...


@dataclass
class FunctionGemmaRunner:
    """Runs one agent on one node: `remora.runner.FunctionGemmaRunner`.

    The tools are the scripts of the agent that the definition names, on a copy-on-write workspace over the project at
    `root`; `grail_executor`, if given, runs them instead. `escalation` names the models of a ladder above the one of
    `server_config`. Settings other than these and `runner_config` come from the project. Without `state_dir` the
    stream is written to a temporary folder and deleted after the run.
    """

    definition: SubagentDefinition
    node: CodeNode
    ctx: Identity
    server_config: ServerConfig
    runner_config: RunnerConfig
    root: Path = Path()
    state_dir: Path | None = None
    grail_executor: Executor | None = None
    escalation: tuple[str | RungConfig, ...] = ()

    def __post_init__(self) -> None:
        self._runner: Runner | None = None
        file = self.node.file_path.as_posix()
        goal = self.definition.goal.format(node=self.node.node_id, file=file)
        fields = {**self.ctx.fields(), "node_id": self.node.node_id, "goal": goal}
        self._before_run = ContextManager(fields)

    @property
    def context_manager(self) -> ContextManager:
        """The Short Track."""
        return self._runner.track.context if self._runner else self._before_run

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The run as a chat history, for debugging: what the model sees is the packet."""
        return self._runner.track.messages if self._runner else []

    @property
    def turn_count(self) -> int:
        return self.context_manager.packet.turn

    async def run(self) -> AgentResult:
        """Run the agent. Raises `AgentError` if it fails, or reaches a limit without `submit_result`."""
        operation = self.ctx.operation or self.definition.name
        job = Job(self.ctx.run_id, self.ctx.agent_id, operation, self.node)
        overrides = RunOverrides(executor=self._executor_tools(), keep_messages=True)
        async with self._project() as project:
            agents = {operation: self._agent(project)}
            async with open_session(project, agents, overrides) as session:
                self._runner = await session.runner(job)
                result = await session.finish(self._runner)
        if result.outcome != "success":
            raise AgentError(result.summary or result.reason, code=result.reason)
        return result

    @asynccontextmanager
    async def _project(self) -> AsyncIterator[Project]:
        from remora.app import open_project

        if self.state_dir is not None:
            yield self._with_settings(open_project(self.root, state_dir=self.state_dir))
            return
        with tempfile.TemporaryDirectory(prefix="remora-") as folder:
            state_dir = Path(folder).resolve() / "state"
            try:
                yield self._with_settings(open_project(self.root, state_dir=state_dir))
            finally:
                forget_own(state_dir)

    def _with_settings(self, project: Project) -> Project:
        named = [RungConfig(model=rung) if isinstance(rung, str) else rung for rung in self.escalation]
        ladder = (RungConfig(model=LADDER_START), *named) if named else ()
        update = {"server": self.server_config, "runner": self.runner_config, "escalation": ladder}
        project.config = project.config.model_copy(update=update)
        return project

    def _agent(self, project: Project) -> Agent:
        from remora.scripts import Agent

        name = self.definition.name
        if name in project.agents.sources():
            agent = project.agents.load([name])[name]
            # A definition built in a test may leave out the commands that its scripts need.
            commands = self.definition.commands or agent.definition.commands
            return replace(agent, definition=self.definition.model_copy(update={"commands": commands}))
        if self.grail_executor is None:
            raise ConfigError(
                f"There is no agent `{name}`, so it has no scripts to run",
                hint="Add it to the project's `agents` folder, or pass `grail_executor`",
            )
        return Agent(self.definition, {}, Snapshot(self.root, {}))

    def _executor_tools(self) -> _ExecutorTools | None:
        if self.grail_executor is None:
            return None
        specs = tuple(
            ToolSpec(name=tool.name, description=tool.description, effects=tool.effects)
            for tool in self.definition.tools
        )
        return _ExecutorTools(self.grail_executor, specs)


class _ExecutorTools:
    """Adapts an `Executor` to the `Tools` protocol."""

    def __init__(self, executor: Executor, specs: tuple[ToolSpec, ...]) -> None:
        self._executor = executor
        self.specs = specs

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        result = await self._executor.execute(name, args)
        return ToolOutput(result[0] if isinstance(result, tuple) else result)
