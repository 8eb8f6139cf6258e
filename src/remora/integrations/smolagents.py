"""Both tracks for smolagents, `ToolCallingAgent` and `CodeAgent`:

    with TwoTracks(agent):
        agent.run("…")
        agent.run("…", reset=False)

The agent keeps its own loop and tools. The model gets the packet instead of the memory's messages, and everything that
happens is in the stream. The block is one stream; with a `conversation`, the next block continues it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self, Unpack

from remora.context.recall import RECALL
from remora.errors import MissingExtra, UsageError
from remora.events import Call
from remora.integrations._conversations import Conversations, Replaced, decision, system_text
from remora.sync import LoopThread
from remora.twotrack import TrackSettings, TwoTrack

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
        return self._tracks.run(self._tracks.track.recall(text or "", seq, lines or ""))


class TwoTracks:
    """Both tracks of an agent, as a context manager. `settings` are those of `remora.TwoTrack`."""

    def __init__(self, agent: Any, conversation: str = "", **settings: Unpack[TrackSettings]) -> None:
        self.agent, self.conversation, self.conversations = (
            agent,
            conversation,
            Conversations({"style": "account", **settings}),
        )
        self._thread = LoopThread()
        self.run = self._thread.run
        self._track: TwoTrack | None = None
        self._recorded: list[Any] = []
        """Steps of the agent's memory that are recorded."""
        self._waiting: list[Call] = []
        """Calls of the newest reply that have not begun."""
        self._numbers = itertools.count(1)

    @property
    def track(self) -> TwoTrack:
        """Both tracks of the current block, from its first task on."""
        if self._track is None:
            raise UsageError("There is no run yet: expected `agent.run(…)` inside the `with` block")
        return self._track

    def __enter__(self) -> Self:
        agent, model = self.agent, self.agent.model
        self._track, self._recorded, self._model = None, [*agent.memory.steps], model
        streams = {"generate_stream": self._stream} if hasattr(model, "generate_stream") else {}
        agent.model = Replaced(model, generate=self._generate, **streams)
        agent.write_memory_to_messages = self._messages
        agent.tools[RECALL.name] = RecallTool(self)
        if isinstance(agent, ToolCallingAgent):
            self._execute, agent.execute_tool_call = agent.execute_tool_call, self._call_tool
        else:
            self._execute, agent.python_executor = (
                agent.python_executor,
                Replaced(agent.python_executor, call=self._call_code),
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        agent = self.agent
        agent.model = self._model
        del agent.write_memory_to_messages, agent.tools[RECALL.name]
        if isinstance(agent, ToolCallingAgent):
            del agent.execute_tool_call
        else:
            agent.python_executor = self._execute
        if self._track is not None:
            self.run(self.conversations.end(self._track, error))
        self._thread.stop()

    def _observe(self) -> None:
        """Record new tasks, and replies that the agent could not read."""
        for step in [step for step in self.agent.memory.steps if not any(step is each for each in self._recorded)]:
            self._recorded.append(step)
            if isinstance(step, TaskStep) and self._track is None:
                self._track = self.run(self.conversations.begin(step.task, name=self.conversation))
            elif isinstance(step, TaskStep):
                self.run(self.track.user(step.task))
            elif isinstance(error := getattr(step, "error", None), AgentParsingError):
                self.run(self.track.error(str(error)))

    def _messages(self, summary_mode: bool = False) -> list[Any]:
        self._observe()
        agent = self.agent
        offered = {**agent.tools, **agent.managed_agents} if isinstance(agent, ToolCallingAgent) else {}
        tools = [get_tool_json_schema(tool) for name, tool in offered.items() if name != RECALL.name]
        system = system_text(agent.memory.system_prompt.system_prompt)
        prompt = self.run(self.track.request(tools=tools, system=system))
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
        reply = decision(message.content, message.tool_calls or (), usage=message.token_usage)
        self._waiting = list(reply.calls)
        self.run(
            self.track.response(reply) if self.track.awaits_reply else self.track.said(reply)
        )  # a plan has no request
        return message

    def _call_tool(self, tool_name: str, arguments: Any) -> Any:
        args = arguments if isinstance(arguments, dict) else {"input": arguments}
        value = self._perform(tool_name, args, lambda: self._execute(tool_name, arguments), lambda value: value)
        if tool_name == "final_answer":
            self.run(self.track.submit(str(value)))
        return value

    def _call_code(self, code: str) -> Any:
        done = self._perform("python_interpreter", {"code": code}, lambda: self._execute(code), _code_value)
        if done.is_final_answer:
            self.run(self.track.submit(str(done.output)))
        return done

    def _perform(self, tool: str, args: dict[str, Any], use: Callable[[], Any], value_of: Callable[[Any], Any]) -> Any:
        asked = next((call for call in self._waiting if (call.tool, call.args) == (tool, args)), None)
        if asked is not None:
            self._waiting.remove(asked)
        call = asked or Call(call_id=f"{tool}-{next(self._numbers)}", tool=tool, args=args)
        self.run(self.track.called(call))
        try:
            value = use()
        except Exception as error:
            self.run(self.track.returned(call.call_id, error=error))
            raise
        self.run(self.track.returned(call.call_id, value_of(value)))
        return value


def _code_value(done: Any) -> Any:
    return {"output": done.output, "logs": done.logs} if done.logs else done.output
