"""Both tracks for LangChain agents: `create_agent(…, middleware=[TwoTracks()])`, with `invoke`, `ainvoke` and `stream`.

The agent keeps its own loop and tools. The model gets the packet instead of the message history, and everything that
happens is in the stream. The id of the stream is part of the agent's state: with a checkpointer, the next run of a
thread continues the stream of the one before.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, Unpack

from remora.context.recall import RECALL
from remora.errors import MissingExtra
from remora.events import canonical
from remora.integrations._conversations import Conversations, decision, system_text
from remora.integrations._hooks import Answer, HookThread, twins, twins_around
from remora.twotrack import GivenOutcome, TrackSettings, TwoTrack

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import SystemMessage, ToolMessage, convert_to_messages, convert_to_openai_messages
    from langchain_core.tools import StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config
except ImportError:
    raise MissingExtra("LangChain", extra="langchain") from None


class State(AgentState):
    """The agent's state, with the id of the run's stream."""

    remora_stream: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]


class TwoTracks(AgentMiddleware):
    """Middleware that records every run and gives the model the packet. `settings` are those of `remora.TwoTrack`.

    LangChain does not tell middleware that a tool's error ended the run: such a stream is sealed by the next run of
    its thread, or by `close()`.
    """

    state_schema = State

    def __init__(self, **settings: Unpack[TrackSettings]) -> None:
        super().__init__()
        self.conversations = Conversations(settings)
        self.thread = HookThread()
        recall = {"description": RECALL.description, "args_schema": RECALL.parameters, "func": dict}
        self.tools = [StructuredTool(name=RECALL.name, **recall)]

    def close(self) -> None:
        """Seal the streams of runs that did not end, and stop the thread."""
        self.thread.run(self.conversations.close())
        self.thread.stop()

    async def _track(self, state: Any) -> TwoTrack:
        return await self.conversations.get(state["remora_stream"])

    async def _begin(self, state: Any) -> dict[str, Any]:
        history = convert_to_openai_messages(state["messages"])
        thread = get_config().get("configurable", {}).get("thread_id", "")
        track = await self.conversations.begin(name=thread, after=state.get("remora_stream", ""), history=history)
        return {"remora_stream": track.identity.agent_id}

    async def _ask(self, request: Any) -> Any:
        track, specs = await self._track(request.state), [_function(tool) for tool in request.tools]
        system = system_text(request.system_message.text if request.system_message else "")
        history = convert_to_openai_messages(request.messages)
        prompt = await track.fold(history, tools=[spec for spec in specs if spec], system=system)
        pairs = zip(request.tools, specs, strict=True)
        shown = [tool for tool, spec in pairs if not spec or prompt.offers(spec["name"])]
        messages = convert_to_messages([dict(message) for message in prompt.messages[1:]])
        return request.override(messages=messages, system_message=SystemMessage(prompt.system), tools=shown)

    async def _answer(self, request: Any, response: Any) -> None:
        if isinstance(response, BaseException):
            await self._end(request.state, response)
        else:
            await (await self._track(request.state)).response(decision(response.result[0]))

    async def _call(self, request: Any) -> Any:
        track = await self._track(request.state)
        call = await track.called(request.tool_call)
        if call.tool != RECALL.name:
            return request
        found = await track.recall(**call.args)
        text = canonical(found).decode()
        return Answer(ToolMessage(text, tool_call_id=call.call_id, name=call.tool, artifact=found))

    async def _return(self, request: Any, result: Any) -> None:
        value = getattr(result, "artifact", None) or getattr(result, "content", result)
        outcome: GivenOutcome | None = "error" if getattr(result, "status", "") == "error" else None
        await (await self._track(request.state)).returned(request.tool_call["id"], value, outcome=outcome)

    async def _end(self, state: Any, error: BaseException | None = None) -> None:
        track, last = await self._track(state), state["messages"][-1]
        if error is None and last.type == "ai" and last.text:
            await track.submit(last.text)
        await self.conversations.end(track, error)

    before_agent, abefore_agent = twins(_begin)
    wrap_model_call, awrap_model_call = twins_around(_ask, _answer)
    wrap_tool_call, awrap_tool_call = twins_around(_call, _return)
    after_agent, aafter_agent = twins(_end)


def _function(tool: Any) -> dict[str, Any]:
    """The tool as a function; empty for one that the provider runs."""
    function: dict[str, Any] = convert_to_openai_tool(tool).get("function", {})
    return function
