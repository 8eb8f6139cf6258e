"""The specification's runner: one agent, built from a definition, a node and a server, for programs and tests."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from remora.app._project import SystemClock
from remora.app._running import run_limits
from remora.config import RunnerConfig, ServerConfig
from remora.context.contracts import ToolSpec
from remora.context.manager import ContextManager
from remora.context.summarizers import FALLBACK, get_default_summarizers
from remora.errors import AgentError
from remora.nodes import CodeNode
from remora.ports import AgentResult, BlobStore, ToolOutput, Tools, TraceWriter, Workspace, Written
from remora.runner import Runner
from remora.subagent import SUBMIT_RESULT, SubagentDefinition
from remora.trace import FileBlobs, FileTrace, MemoryBlobs, MemoryTrace
from remora.twotrack import Identity, TwoTrack


class _Executed:
    """Tools that are whatever an executor does with their names, and a workspace of which nothing is taken."""

    def __init__(self, executor: Any, specs: tuple[ToolSpec, ...]) -> None:
        self._executor = executor
        self.specs = specs

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        done = await self._executor.execute(name, args)
        return ToolOutput(done[0] if isinstance(done, tuple) else done)

    def take_changes(self) -> tuple[Written, ...]:
        return ()


@dataclass
class FunctionGemmaRunner:
    """Runs one agent on one node with a served model: `remora.runner.FunctionGemmaRunner`.

    Without `state_dir` the stream is kept in memory. Its tools are the scripts of the agent of that name, on a
    copy-on-write workspace over the project at `root`; or what `grail_executor.execute(tool, args)` gives.
    """

    definition: SubagentDefinition
    node: CodeNode
    ctx: Identity
    server_config: ServerConfig
    runner_config: RunnerConfig
    root: Path = Path()
    state_dir: Path | None = None
    grail_executor: Any = None

    def __post_init__(self) -> None:
        from remora.inference import EstimatedCounter

        clock = SystemClock()
        self._specs = _specs(self.root, self.definition)
        writer: TraceWriter = FileTrace(self.state_dir, clock=clock) if self.state_dir else MemoryTrace(clock)
        blobs: BlobStore = FileBlobs(self.state_dir) if self.state_dir else MemoryBlobs()
        self.track = TwoTrack(
            self.ctx,
            goal=self.definition.goal.format(node=self.node.node_id, file=self.node.file_path.as_posix()),
            tools=(*self._specs, SUBMIT_RESULT),
            system_prompt=self.definition.system_prompt,
            limit=self.runner_config.memory.packet_size_limit,
            writer=writer,
            blobs=blobs,
            counter=EstimatedCounter(),
            clock=clock,
            summarizers=get_default_summarizers(),
            fallback=FALLBACK,
            calling="native",
            memory="packet" if self.runner_config.memory.enabled else "history",
            keep_messages=True,
            rules=self.definition.candidate_rules,
        )

    @property
    def context_manager(self) -> ContextManager:
        """The Short Track."""
        return self.track.context

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The run as a chat, for debugging: what the model sees is the packet."""
        return self.track.messages

    @property
    def turn_count(self) -> int:
        return self.track.packet.turn

    async def run(self) -> AgentResult:
        """The agent's result. Raises `AgentError` if it came to none: an error, or a limit without `submit_result`."""
        from remora.app._models import served_policy

        async with AsyncExitStack() as open_:
            policy = await open_.enter_async_context(served_policy(self.server_config))
            tools, workspace, node = await self._hands(open_)
            result = await Runner(
                self.track,
                self.definition,
                node,
                policy=policy,
                tools=tools,
                workspace=workspace,
                limits=run_limits(self.definition, self.runner_config),
            ).run()
        if result.outcome != "success":
            raise AgentError(result.summary or result.reason, code=result.reason)
        return result

    async def _hands(self, open_: AsyncExitStack) -> tuple[Tools, Workspace, CodeNode]:
        if self.grail_executor is not None:
            executed = _Executed(self.grail_executor, self._specs)
            return executed, cast(Workspace, executed), self.node
        from remora.app import open_app

        project = open_app(self.root, state_dir=self.state_dir)
        return await open_.enter_async_context(project.hands(self.definition, self.node, self.ctx.agent_id))


def _specs(root: Path, definition: SubagentDefinition) -> tuple[ToolSpec, ...]:
    """The tools as the scripts of the agent of that name declare them, else by name alone."""
    from remora.app import open_app
    from remora.scripts import tool_specs

    project = open_app(root)
    if definition.name in project.agent_sources():
        scripts = project.load_agents([definition.name])[definition.name].scripts
        if all(tool.name in scripts for tool in definition.tools):
            return tool_specs(definition, scripts)
    return tuple(
        ToolSpec(name=tool.name, description=tool.description, effects=tool.effects) for tool in definition.tools
    )
