"""Both tracks for smolagents, `ToolCallingAgent` and `CodeAgent`:

    with TwoTracks(agent):
        agent.run("…")
        agent.run("…", reset=False)

The agent keeps its own loop and tools. The model gets the packet instead of the memory's messages, and everything that
happens is in the stream. The block is one stream; with a `conversation`, the next block continues it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self, Unpack

from remora.context.recall import RECALL
from remora.errors import MissingExtra
from remora.integrations._conversations import SyncBlockTracks, decision, system_text
from remora.integrations._hooks import Replaced, replace_attributes
from remora.twotrack import TrackSettings

try:
    from smolagents import AgentParsingError, ChatMessage, MessageRole, TaskStep, Tool, ToolCallingAgent
    from smolagents.models import agglomerate_stream_deltas, get_tool_json_schema
except ImportError:
    raise MissingExtra("smolagents", extra="smolagents") from None


class RecallTool(Tool):
    """Brings back what a prompt left out."""

    name, description, output_type = RECALL.name, RECALL.description, "object"
    inputs: ClassVar[dict[str, Any]] = {
        name: {**kind, "description": name, "nullable": True} for name, kind in RECALL.parameters["properties"].items()
    }

    def __init__(self, tracks: TwoTracks) -> None:
        super().__init__()
        self._tracks = tracks

    def forward(self, text: str | None = None, seq: int | None = None, lines: str | None = None) -> Any:
        return self._tracks.twin.recall(text or "", seq, lines or "")


class TwoTracks(SyncBlockTracks):
    """Both tracks of an agent, as a context manager. `settings` are those of `remora.TwoTrack`."""

    def __init__(self, agent: Any, conversation: str = "", **settings: Unpack[TrackSettings]) -> None:
        super().__init__(conversation, {"style": "account", **settings})
        self.agent, self._calls_tools = agent, isinstance(agent, ToolCallingAgent)

    def __enter__(self) -> Self:
        agent, self._model, self._track = self.agent, self.agent.model, None
        self._recorded = [*agent.memory.steps]
        streams = {"generate_stream": self._stream} if hasattr(self._model, "generate_stream") else {}
        model = Replaced(self._model, generate=self._generate, **streams)
        self._execute = agent.execute_tool_call if self._calls_tools else agent.python_executor
        execute: Any = self._call_tool if self._calls_tools else Replaced(self._execute, call=self._call_code)
        name = "execute_tool_call" if self._calls_tools else "python_executor"
        given = {"model": model, "write_memory_to_messages": self._messages, name: execute}
        self._undo = replace_attributes(agent, **given)
        agent.tools[RECALL.name] = RecallTool(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._undo()
        self.agent.tools.pop(RECALL.name, None)
        self._close(error)

    def _observe(self) -> None:
        """Record new tasks, and replies that the agent could not read."""
        for step in [step for step in self.agent.memory.steps if not any(step is each for each in self._recorded)]:
            self._recorded.append(step)
            if isinstance(step, TaskStep) and self._track is None:
                self._open(step.task)
            elif isinstance(step, TaskStep):
                self.twin.user(step.task)
            elif isinstance(error := getattr(step, "error", None), AgentParsingError):
                self.twin.error(str(error))

    def _messages(self, summary_mode: bool = False) -> list[Any]:
        self._observe()
        agent = self.agent
        offered = (*agent.tools.values(), *agent.managed_agents.values()) if self._calls_tools else ()
        system = system_text(agent.memory.system_prompt.system_prompt)
        prompt = self.twin.request(tools=[get_tool_json_schema(each) for each in offered], system=system)
        roles = ((MessageRole.SYSTEM, prompt.system), (MessageRole.USER, prompt.text))
        return [ChatMessage(role=role, content=[{"type": "text", "text": text}]) for role, text in roles]

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        return self._answered(self._model.generate(*args, **kwargs))

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        deltas = []
        for delta in self._model.generate_stream(*args, **kwargs):
            deltas.append(delta)
            yield delta
        self._answered(agglomerate_stream_deltas(deltas))

    def _answered(self, message: Any) -> Any:
        self._observe()
        self.twin.said(decision(message))  # a plan has no request
        return message

    def _call_tool(self, tool_name: str, arguments: Any) -> Any:
        args = arguments if isinstance(arguments, dict) else {"input": arguments}
        with self.twin.running({"tool": tool_name, "args": args}) as run:
            run.value = self._execute(tool_name, arguments)
        if tool_name == "final_answer":
            self.twin.submit(run.value)
        return run.value

    def _call_code(self, code: str) -> Any:
        with self.twin.running({"tool": "python_interpreter", "args": {"code": code}}) as run:
            done = self._execute(code)
            run.value = {"output": done.output, "logs": done.logs} if done.logs else done.output
        if done.is_final_answer:
            self.twin.submit(done.output)
        return done
