"""Both tracks for LangChain agents: `create_agent(…, middleware=[TwoTracks()])`, with `invoke`, `ainvoke` and `stream`.

The agent keeps its own loop and tools. The model gets the packet instead of the message history, and everything that
happens is in the stream. The id of the stream is part of the agent's state: with a checkpointer, the next run of a
thread continues the stream of the one before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NotRequired, Unpack

from remora.context.recall import RECALL
from remora.errors import MissingExtra
from remora.events import canonical
from remora.integrations._conversations import Conversations, decision, system_text
from remora.sync import LoopThread
from remora.twotrack import TrackSettings

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain.messages import SystemMessage, ToolMessage
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages
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
        self._thread = LoopThread()
        recall = {"description": RECALL.description, "args_schema": RECALL.parameters, "func": dict}
        self.tools = [StructuredTool(name=RECALL.name, **recall)]

    def close(self) -> None:
        """Seal the streams of runs that did not end, and stop the thread."""
        for track in [*self.conversations.active.values()]:
            self._thread.run(self.conversations.end(track, "The run did not end"))
        self._thread.stop()

    def before_agent(self, state: Any, runtime: Any) -> Any:
        return self._thread.run(self._begin(state))

    async def abefore_agent(self, state: Any, runtime: Any) -> Any:
        return await self._there(self._begin(state))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        with self._on_error(self._end, request.state):
            response = handler(self._thread.run(self._ask(request)))
        self._thread.run(self._answer(request, response))
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        with self._on_error(self._end, request.state):
            response = await handler(await self._there(self._ask(request)))
        await self._there(self._answer(request, response))
        return response

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        recalled = self._thread.run(self._call(request))
        with self._on_error(self._return, request):
            result = recalled or handler(request)
        self._thread.run(self._return(request, result))
        return result

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        recalled = await self._there(self._call(request))
        with self._on_error(self._return, request):
            result = recalled or await handler(request)
        await self._there(self._return(request, result))
        return result

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._thread.run(self._end(state))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        await self._there(self._end(state))

    @contextmanager
    def _on_error(self, record: Callable[..., Coroutine[Any, Any, None]], about: Any) -> Iterator[None]:
        """Record an exception, also a cancellation, before it goes on."""
        try:
            yield
        except BaseException as error:
            self._thread.run(record(about, error))
            raise

    async def _there(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await asyncio.wrap_future(self._thread.submit(work))

    async def _begin(self, state: Any) -> dict[str, Any]:
        history = convert_to_openai_messages(state["messages"])
        thread = get_config().get("configurable", {}).get("thread_id", "")
        track = await self.conversations.begin(name=thread, after=state.get("remora_stream", ""), history=history)
        return {"remora_stream": track.identity.agent_id}

    async def _ask(self, request: Any) -> Any:
        track = await self.conversations.get(request.state["remora_stream"])
        tools = [convert_to_openai_tool(tool) for tool in request.tools]
        system = system_text(request.system_message.text if request.system_message else "")
        own = [tool for tool in tools if tool["function"]["name"] != RECALL.name]
        prompt = await track.fold(convert_to_openai_messages(request.messages), tools=own, system=system)
        names = {tool.name for tool in prompt.tools}
        shown = [tool for tool, spec in zip(request.tools, tools, strict=True) if spec["function"]["name"] in names]
        messages = convert_to_messages([dict(message) for message in prompt.messages[1:]])
        return request.override(messages=messages, system_message=SystemMessage(prompt.system), tools=shown)

    async def _answer(self, request: Any, response: Any) -> None:
        track, reply = await self.conversations.get(request.state["remora_stream"]), response.result[0]
        model = reply.response_metadata.get("model_name", "")
        await track.response(decision(reply.text, reply.tool_calls, model=model, usage=reply.usage_metadata))

    async def _call(self, request: Any) -> Any:
        track = await self.conversations.get(request.state["remora_stream"])
        call = await track.called(request.tool_call)
        if call.tool != RECALL.name:
            return None
        found = await track.recall(**call.args)
        return ToolMessage(canonical(found).decode(), tool_call_id=call.call_id, name=call.tool, artifact=found)

    async def _return(self, request: Any, result: Any) -> None:
        track, call_id = await self.conversations.get(request.state["remora_stream"]), request.tool_call["id"]
        if isinstance(result, BaseException):
            await track.returned(call_id, error=result)
        else:
            value = getattr(result, "artifact", None) or getattr(result, "content", result)
            failed = getattr(result, "status", "") == "error"
            await track.returned(call_id, value, outcome="error" if failed else None)

    async def _end(self, state: Any, error: BaseException | None = None) -> None:
        track = await self.conversations.get(state["remora_stream"])
        last = state["messages"][-1]
        if error is None and last.type == "ai" and last.text:
            await track.submit(last.text)
        await self.conversations.end(track, error)
