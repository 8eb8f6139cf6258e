"""Both tracks for Pydantic AI: `Agent(…, capabilities=[TwoTracks()])`.

The agent keeps its own loop, tools and output types. The model gets the packet instead of the message history, and
everything that happens is in the stream. A `conversation_id`, or a `message_history` that has one, joins runs into a
conversation: the next run continues the stream of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, Unpack

from remora.context.recall import RECALL
from remora.errors import MissingExtra
from remora.integrations._conversations import BlockTracks, decision, system_text
from remora.ports import Prompt
from remora.twotrack import TrackSettings

try:
    from pydantic_ai import Tool, messages
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.toolsets import FunctionToolset
except ImportError:
    raise MissingExtra("Pydantic AI", extra="pydantic-ai") from None


class TwoTracks(BlockTracks, AbstractCapability[Any]):
    """A capability that records every run and gives the model the packet. `settings` are those of `remora.TwoTrack`."""

    def __init__(self, **settings: Unpack[TrackSettings]) -> None:
        super().__init__("", settings)

    async def for_run(self, ctx: Any) -> TwoTracks:
        return copy(self)

    def get_toolset(self) -> Any:
        """Offers `recall`, which brings back what a prompt left out."""
        return FunctionToolset([Tool(self.recall, takes_ctx=False, description=RECALL.description)])

    async def recall(self, text: str = "", seq: int | None = None, lines: str = "") -> Any:
        return await self.track.recall(text, seq, lines)

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        async with self._run(_text(ctx.prompt), ctx.conversation_id or ""):
            result = await handler()
            if result is not None:
                await self.track.submit(result.output)
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
        ]
        prompt = await self.track.request(tools=specs, system=system_text(*fixed))
        tools = [each for each in parameters.function_tools if prompt.offers(each.name)]
        changed = replace(parameters, function_tools=tools, instruction_parts=None)
        return replace(request_context, messages=[*_messages(prompt)], model_request_parameters=changed)

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        calls = [_call(part) for part in response.parts if isinstance(part, messages.ToolCallPart)]
        text = "".join(part.content for part in response.parts if isinstance(part, messages.TextPart))
        await self.track.response(decision(text, calls, model=response.model_name, usage=response.usage))
        return response

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        async with self.track.running(_call(call)) as run:
            run.value = await handler(args)
        return run.value

    async def on_tool_validate_error(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Any) -> Any:
        await self.track.error(f"Arguments of `{call.tool_name}` do not fit: {error}")
        raise error

    async def on_output_validate_error(self, ctx: Any, *, output_context: Any, output: Any, error: Any) -> Any:
        await self.track.error(f"The answer is not valid: {error}")
        raise error


def _call(part: Any) -> dict[str, Any]:
    return {"call_id": part.tool_call_id, "tool": part.tool_name, "args": part.args}


def _messages(prompt: Prompt) -> Iterator[Any]:
    """The prompt as messages of Pydantic AI."""
    system: list[Any] = [messages.SystemPromptPart(prompt.system)]
    names: dict[str, str] = {}
    for message in prompt.anthropic_messages():
        if message["role"] == "assistant":
            yield messages.ModelResponse(parts=[_part(block, messages.TextPart, names) for block in message["content"]])
        else:
            parts = [_part(block, messages.UserPromptPart, names) for block in message["content"]]
            yield messages.ModelRequest(parts=[*system, *parts])
            system = []


def _part(block: Any, text_part: Any, names: dict[str, str]) -> Any:
    """A block of Anthropic's shape. `names` are the tools of the calls so far."""
    if block["type"] == "tool_use":
        names[block["id"]] = block["name"]
        return messages.ToolCallPart(block["name"], block["input"], block["id"])
    if block["type"] == "tool_result":
        return messages.ToolReturnPart(names[block["tool_use_id"]], block["content"], block["tool_use_id"])
    return text_part(block["text"])


def _text(prompt: Any) -> str:
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    return "\n".join(part for part in parts if isinstance(part, str))
