"""Both tracks for Pydantic AI: `Agent(…, capabilities=[TwoTracks()])`.

The agent keeps its own loop, tools and output types. The model gets the packet instead of the message history, and
everything that happens is in the stream. A `conversation_id`, or a `message_history` that has one, joins runs into a
conversation: the next run continues the stream of the one before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, Unpack

from remora.errors import MissingExtra, UsageError
from remora.integrations._conversations import Conversations, plain, system_text
from remora.ports import Prompt
from remora.twotrack import TrackSettings, TwoTrack

try:
    from pydantic_ai import messages
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.toolsets import FunctionToolset
except ImportError:
    raise MissingExtra("Pydantic AI", extra="pydantic-ai") from None


class TwoTracks(AbstractCapability[Any]):
    """A capability that records every run and gives the model the packet. `settings` are those of `remora.TwoTrack`."""

    def __init__(self, **settings: Unpack[TrackSettings]) -> None:
        self.conversations = Conversations(settings)
        self._track: TwoTrack | None = None

    @property
    def track(self) -> TwoTrack:
        """Both tracks of this run."""
        if self._track is None:
            raise UsageError("There is no run: `track` belongs to the capability of one run")
        return self._track

    async def for_run(self, ctx: Any) -> TwoTracks:
        return copy(self)

    def get_toolset(self) -> Any:
        """Offers `recall`, which brings back what a prompt left out."""
        toolset: Any = FunctionToolset()
        toolset.add_function(self.recall, takes_ctx=False)
        return toolset

    async def recall(self, text: str = "", seq: int | None = None, lines: str = "") -> Any:
        """Bring back what was left out: event `seq`, maybe only its `lines` 10-40, or all lines with a `text`."""
        return await self.track.recall(text, seq, lines)

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        self._track = await self.conversations.begin(_text(ctx.prompt), name=ctx.conversation_id or "")
        try:
            result = await handler()
            if result is not None:
                await self.track.submit(_report(result.output))
        except BaseException as error:
            await asyncio.shield(self.conversations.end(self.track, error))
            raise
        await self.conversations.end(self.track)
        return result

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        parameters = request_context.model_request_parameters
        sent = [part for message in request_context.messages for part in message.parts]
        fixed = [part.content for part in sent if isinstance(part, messages.SystemPromptPart)]
        fixed += [part.content for part in parameters.instruction_parts or ()]
        offered = [*parameters.function_tools, *parameters.output_tools]
        specs = [
            {"name": each.name, "description": each.description or "", "parameters": each.parameters_json_schema}
            for each in offered
            if each.name != "recall"
        ]
        prompt = await self.track.request(tools=specs, system=system_text(*fixed))
        names = {tool.name for tool in prompt.tools}
        return replace(
            request_context,
            messages=[*_messages(prompt)],
            model_request_parameters=replace(
                parameters,
                function_tools=[each for each in parameters.function_tools if each.name in names],
                instruction_parts=None,
            ),
        )

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        calls = [
            {"call_id": part.tool_call_id, "tool": part.tool_name, "args": part.args_as_dict()}
            for part in response.parts
            if isinstance(part, messages.ToolCallPart)
        ]
        text = "".join(part.content for part in response.parts if isinstance(part, messages.TextPart))
        await self.track.response(
            {"content": text, "model": response.model_name, "usage": _usage(response)}, calls=calls
        )
        return response

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        made = await self.track.called({"call_id": call.tool_call_id, "tool": call.tool_name, "args": plain(args)})
        try:
            value = await handler(args)
        except Exception as error:
            await self.track.returned(made.call_id, error=error)
            raise
        await self.track.returned(made.call_id, plain(value))
        return value

    async def on_tool_validate_error(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Any) -> Any:
        await self.track.error(f"Arguments of `{call.tool_name}` do not fit: {error}")
        raise error

    async def on_output_validate_error(self, ctx: Any, *, output_context: Any, output: Any, error: Any) -> Any:
        await self.track.error(f"The answer is not valid: {error}")
        raise error


def _messages(prompt: Prompt) -> Iterator[Any]:
    """The prompt as messages of Pydantic AI."""
    first: list[Any] = [messages.SystemPromptPart(prompt.system)]
    names: dict[str, str] = {}
    for message in prompt.messages[1:]:
        content = message["content"]
        if message["role"] == "assistant":
            parts: list[Any] = [messages.TextPart(content)] if content else []
            for call in message.get("tool_calls", ()):
                names[call["id"]] = call["function"]["name"]
                parts.append(messages.ToolCallPart(names[call["id"]], call["function"]["arguments"], call["id"]))
            yield messages.ModelResponse(parts=parts)
        elif message["role"] == "tool":
            made = message["tool_call_id"]
            yield messages.ModelRequest(parts=[messages.ToolReturnPart(names[made], content, made)])
        else:
            yield messages.ModelRequest(parts=[*first, messages.UserPromptPart(content)])
            first = []


def _text(prompt: Any) -> str:
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    return "\n".join(part for part in parts if isinstance(part, str))


def _report(output: Any) -> dict[str, Any]:
    return {"summary": output} if isinstance(output, str) else {"result": plain(output)}


def _usage(response: Any) -> dict[str, Any]:
    return {"input_tokens": response.usage.input_tokens, "output_tokens": response.usage.output_tokens}
