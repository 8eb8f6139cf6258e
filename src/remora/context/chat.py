"""Reads tools and replies in the shapes of OpenAI-compatible chat: dicts, or objects of the `openai` client.

Duck-typed, so that `openai` is never imported.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from remora.context.call_text import calls_in_text, marked_calls
from remora.context.calls import get, sort_calls, text_of, usage_of
from remora.context.contracts import ToolLike, ToolSpec
from remora.errors import ConfigError, DecisionError
from remora.ports import Decision


def tool_spec(tool: ToolLike) -> ToolSpec:
    """Convert a tool in any supported shape to a `ToolSpec`. Raises `ConfigError`."""
    if isinstance(tool, ToolSpec):
        return tool
    if isinstance(spec := getattr(tool, "spec", None), ToolSpec):
        return spec
    inner = get(tool, "function") or tool
    fields = {name: get(inner, name) for name in ToolSpec.model_fields}
    try:
        return ToolSpec.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise ConfigError(
            f"`{tool!r:.80}` is not a tool: expected a `ToolSpec` or a dict in OpenAI's shape",
            hint='{"type": "function", "function": {"name": …, "description": …, "parameters": {…}}}',
        ) from error


def read_reply(reply: object, tools: Sequence[ToolSpec], *, turn: int, in_text: bool = False) -> Decision:
    """Parse a completion, its message, or the dict of either. Raises `DecisionError` for anything else.

    With `in_text`, `{"tool": …, "args": …}` in the text is a call. FunctionGemma's markup always is.
    """
    choices = get(reply, "choices")
    first = choices[0] if isinstance(choices, list | tuple) and choices else None
    message = get(first, "message") if first is not None else reply
    if get(message, "role") is None and get(message, "tool_calls") is None and get(message, "content") is None:
        raise DecisionError(
            f"`{reply!r:.200}` is not a reply: expected a `Decision`, or a chat completion or its dict",
            hint="A stream is put together first: `stream=False`, or the client's own final completion",
        )
    text = text_of(get(message, "content"))
    written = get(message, "tool_calls") or (calls_in_text(text) if in_text else marked_calls(text))
    good, bad = sort_calls(written, tools, turn)
    return Decision(
        calls=good,
        text=text,
        model=text_of(get(reply, "model")),
        usage=usage_of(get(reply, "usage")),
        finish=text_of(get(first, "finish_reason")),
        bad=bad,
    )
