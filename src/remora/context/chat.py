"""Reads tools and replies in the shapes of chat APIs: dicts, or objects of the `openai` and `anthropic` clients.

Duck-typed, so that no client is ever imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from remora.context.call_text import calls_in_text, marked_calls
from remora.context.calls import get, sort_calls, text_of, usage_of
from remora.context.contracts import ToolLike, ToolSpec
from remora.errors import ConfigError, DecisionError
from remora.ports import Decision


class ChatCompletionReply(Protocol):
    """A chat completion of OpenAI's API."""

    @property
    def choices(self) -> Sequence[Any]: ...


class ChatMessageReply(Protocol):
    """The message of a chat completion."""

    @property
    def content(self) -> Any: ...

    @property
    def tool_calls(self) -> Any: ...


class ResponsesReply(Protocol):
    """A response of OpenAI's Responses API."""

    @property
    def output(self) -> Sequence[Any]: ...


class AnthropicReply(Protocol):
    """A message of Anthropic's Messages API."""

    @property
    def content(self) -> Any: ...

    @property
    def stop_reason(self) -> Any: ...


Reply = Decision | str | Mapping[str, Any] | ChatCompletionReply | ChatMessageReply | ResponsesReply | AnthropicReply
"""Accepted as a reply: a `Decision`, text, or what an OpenAI or Anthropic client returns, as an object or a dict."""


def tool_spec(tool: ToolLike) -> ToolSpec:
    """Convert a tool in any supported shape to a `ToolSpec`. Raises `ConfigError`."""
    if isinstance(tool, ToolSpec):
        return tool
    if isinstance(spec := getattr(tool, "spec", None), ToolSpec):
        return spec
    inner = get(tool, "function") or tool
    fields = {name: get(inner, name) for name in ToolSpec.model_fields}
    fields["parameters"] = fields["parameters"] or get(inner, "input_schema")
    try:
        spec = ToolSpec.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise ConfigError(
            f"`{tool!r:.80}` is not a tool: expected a `ToolSpec` or a dict in OpenAI's or Anthropic's shape",
            hint='{"type": "function", "function": {"name": …, "description": …, "parameters": {…}}}',
        ) from error
    properties = spec.parameters.get("properties", {})
    if not (isinstance(properties, Mapping) and all(isinstance(each, Mapping) for each in properties.values())):
        raise ConfigError(f"`properties` of tool `{spec.name:.80}` cannot be read: expected a schema for each name")
    return spec


def read_reply(
    reply: object,
    tools: Sequence[ToolSpec],
    *,
    turn: int,
    in_text: bool = False,
    calls: Iterable[object] | None = None,
) -> Decision:
    """Parse a reply. Raises `DecisionError` for anything that is not one.

    With `in_text`, `{"tool": …, "args": …}` in the text is a call. FunctionGemma's markup always is. `calls` are the
    reply's calls where the program has already separated them from the text.
    """
    text, written, finish = _parts(reply)
    if calls is not None:
        written = [*calls]
    good, bad = sort_calls(written or (calls_in_text(text) if in_text else marked_calls(text)), tools, turn)
    return Decision(
        calls=good,
        text=text,
        model=text_of(get(reply, "model")),
        usage=usage_of(get(reply, "usage")),
        finish=finish,
        bad=bad,
    )


def _parts(reply: object) -> tuple[str, list[Any], str]:
    """The text, the calls and the reason of the end."""
    if isinstance(reply, str):
        return text_of(reply), [], ""
    output = get(reply, "output")
    if isinstance(output, list | tuple):
        texts = [text_of(get(item, "content")) for item in output if get(item, "type") == "message"]
        calls = [item for item in output if get(item, "type") == "function_call"]
        return "\n".join(texts), calls, text_of(get(reply, "status"))
    choices = get(reply, "choices")
    first = choices[0] if isinstance(choices, list | tuple) and choices else None
    message = get(first, "message") if first is not None else reply
    content, calls = get(message, "content"), get(message, "tool_calls")
    if get(message, "role") is None and calls is None and content is None:
        raise DecisionError(
            f"`{reply!r:.200}` is not a reply: expected text, a `Decision`, or a reply of OpenAI's or Anthropic's API",
            hint="A stream is put together first: `stream=False`, or the client's own final reply",
        )
    if not calls and isinstance(content, list | tuple):
        calls = [block for block in content if get(block, "type") == "tool_use"]
    finish = get(first, "finish_reason") or get(message, "stop_reason")
    return text_of(content), list(calls or ()), text_of(finish)
